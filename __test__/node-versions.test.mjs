// The package works under every major version of Node that it claims. The binaries come from the registry's own
// packages of Node and are kept between runs.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { quiet, run } from './support/program.mjs';

const MAJORS = [20, 22, 24];
const cache = fileURLToPath(new URL('../node_modules/.cache/node-versions', import.meta.url));

const system = process.platform === 'win32' ? 'win' : process.platform;
const binaries = `node-${system}-${process.arch}`;
const binary = process.platform === 'win32' ? 'node.exe' : 'node';

/** Runs npm of this Node; its failures are told with what it said. */
function npm(args, cwd) {
  return new Promise((resolve, reject) => {
    const child = spawn('npm', args, { cwd, shell: process.platform === 'win32', stdio: ['ignore', 'pipe', 'pipe'] });
    let said = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (said += text));
    child.on('error', reject);
    child.on('close', (code) => (code === 0 ? resolve() : reject(new Error(`npm ${args.join(' ')}: ${said}`))));
  });
}

/** The binary of a major version, from the cache or the registry. */
async function nodeOf(major) {
  const installed = join(cache, String(major), 'node_modules', binaries, 'bin', binary);
  if (existsSync(installed)) return installed;
  mkdirSync(cache, { recursive: true });
  // Made beside the cache and moved in whole: a run that was cut off leaves nothing half there.
  const making = mkdtempSync(join(cache, 'making-'));
  try {
    writeFileSync(join(making, 'package.json'), '{"private":true}');
    await npm(['install', `${binaries}@${major}`, '--no-audit', '--no-fund', '--ignore-scripts', '--no-save'], making);
    assert.ok(
      existsSync(join(making, 'node_modules', binaries, 'bin', binary)),
      `${binaries}@${major} holds no binary`,
    );
    if (!existsSync(dirname(installed))) renameSync(making, join(cache, String(major)));
  } finally {
    rmSync(making, { recursive: true, force: true });
  }
  return installed;
}

/** A Session with a tool of ours and a built-in one, an abort, an early break, a worker, an idle end. */
const SMOKE = `
  const { Worker } = await import('node:worker_threads');
  say('node ' + process.versions.node.split('.')[0]);
  const session = await open([calls('Add'), { text: ['4', '2', ' 世界 🙂'] }, { text: Array(5_000).fill('x') }, 'last'], {
    tools: [tool('Add', async (_, { signal }) => ({ genuine: signal instanceof AbortSignal }), { kind: 'readonly' })],
  });
  await session.send('go');
  for await (const event of session.stream()) {
    if (event.type === 'tool_result') say(JSON.stringify(event.output));
    if (event.type === 'result') say(event.content);
  }
  await session.send('go');
  for await (const event of session.stream()) if (event.type === 'content') break;
  await session.send('go', { signal: AbortSignal.timeout(60_000) });
  for await (const event of session.stream()) if (event.type === 'result') say(event.content);
  const work = (mode, once) =>
    new Worker('./__test__/support/busy-worker.mjs', { workerData: { mode, once }, execArgv: [] });
  say('worker ' + (await new Promise((resolve) => work('decided', true).once('exit', resolve))));
  for (const mode of ['stream', 'tools', 'hang', 'generator', 'permission', 'sessions', 'direct']) {
    const worker = work(mode, false);
    await new Promise((resolve) => worker.once('message', resolve));
    await worker.terminate();
  }
  await session.close();
  say(String(session.isClosed));`;

describe('the package works under', { concurrency: 2 }, () => {
  for (const major of MAJORS) {
    test(`Node ${major}`, async (t) => {
      let node;
      try {
        node = process.versions.node.startsWith(`${major}.`) ? process.execPath : await nodeOf(major);
      } catch (error) {
        // A machine without a network still tests the rest; the build machine must test all of it.
        if (process.env.CI === 'true') throw error;
        t.skip(`no binary of Node ${major}: ${error.message}`);
        return;
      }
      const expected = quiet(`node ${major}`, '{"genuine":true}', '42 世界 🙂', 'last', 'worker 0', 'true');
      assert.deepEqual(await run(SMOKE, { node }), expected);
    });
  }
});
