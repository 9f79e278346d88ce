// Worker threads: the addon loads in each, and ends with each, whatever is under way.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { quiet, run } from '../support/program.mjs';

const MODES = [
  'stream',
  'tools',
  'hang',
  'generator',
  'permission',
  'decided',
  'sessions',
  'direct',
  'middleware',
  'chatter',
];

/** A worker in each mode; `worker(mode, once)` gives it with promises of its first message and its exit. */
const WORKERS = `
  const { Worker } = await import('node:worker_threads');
  const worker = (mode, once = false) => {
    const started = new Worker('./__test__/support/busy-worker.mjs', { workerData: { mode, once }, execArgv: [] });
    const failed = new Promise((_, reject) => started.once('error', reject));
    failed.catch(() => {});
    started.busy = Promise.race([new Promise((resolve) => started.once('message', resolve)), failed]);
    started.ended = Promise.race([new Promise((resolve) => started.once('exit', resolve)), failed]);
    return started;
  };
`;
/** The modes that come to an end by themselves. */
const FINITE = ['stream', 'tools', 'decided', 'sessions', 'direct', 'middleware'];

test('the addon works in one worker, in two at once, and again after they ended', async () => {
  const source = `
    for (const mode of ${JSON.stringify(FINITE)}) {
      say(mode + ' ' + await worker(mode, true).ended);
    }
    say((await Promise.all([worker('tools', true).ended, worker('stream', true).ended])).join());
    say(String(await worker('decided', true).ended));`;
  assert.deepEqual(await run(WORKERS + source), quiet(...FINITE.map((mode) => `${mode} 0`), '0,0', '0'));
});

test('the thread that loads the addon first may end before the others', async () => {
  // The main thread never loads it: what belongs to the first thread is gone when the next one begins.
  const source = `
    for (let round = 0; round < 8; round++) {
      const codes = await Promise.all([worker('tools', true).ended, worker('sessions', true).ended]);
      say(codes.join());
      const one = worker('hang'); await one.busy; await one.terminate();
    }`;
  const prelude = 'const say = (text) => console.log(text);';
  assert.deepEqual(await run(WORKERS + source, { prelude }), quiet(...Array(8).fill('0,0')));
});

test('a Session of the main thread works while workers come and go', async () => {
  const source = `
    const s = await open(() => ({ text: Array(200).fill('x'), }), {});
    let asked = 0;
    let over = false;
    const coming = (async () => {
      for (const mode of ['tools', 'hang', 'stream', 'permission']) {
        const one = worker(mode); await one.busy; await one.terminate();
      }
      over = true;
    })();
    while (!over) {
      await s.send('go');
      let deltas = 0;
      for await (const event of s.stream()) if (event.type === 'content') deltas++;
      if (deltas !== 200) say('lost deltas');
      asked++;
      await macrotask();
    }
    await coming;
    await s.close();
    say(asked > 0 ? 'done' : 'never asked');`;
  assert.deepEqual(await run(WORKERS + source), quiet('done'));
});

test('workers are terminated at any moment of their work without harm', async () => {
  const rounds = process.env.STRESS ? 500 : 104;
  const source = `
    const modes = ${JSON.stringify(MODES)};
    const s = await open(() => 'fine');
    let begun = 0;
    const lane = async () => {
      while (begun < ${rounds}) {
        const round = begun++;
        const one = worker(modes[round % modes.length]);
        // Some end while they load, some as soon as they work, the others a little later.
        if (round % 5 === 0) await new Promise((resolve) => setTimeout(resolve, Math.random() * 60));
        else await one.busy;
        if (round % 5 > 1) await new Promise((resolve) => setTimeout(resolve, Math.random() * 8));
        await one.terminate();
        await one.ended;
      }
    };
    await Promise.all(Array.from({ length: 6 }, lane));
    await s.send('go');
    for await (const event of s.stream()) if (event.type === 'result') say(event.content);
    say(String(begun));`;
  assert.deepEqual(await run(WORKERS + source), quiet('fine', String(rounds)));
});

test('process.exit() in a worker and in the main thread ends workers at work', async () => {
  const source = `
    const all = ${JSON.stringify(MODES)}.map((mode) => worker(mode));
    await Promise.all(all.map(({ busy }) => busy));
    process.exit(0);`;
  assert.deepEqual(await run(WORKERS + source), quiet());
});
