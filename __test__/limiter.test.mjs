// Slots and files that several Sessions share, and calls that leave their queue.

import assert from 'node:assert/strict';
import { linkSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { createSession, createToolLimiter } from '@blade-ai/agent-sdk';
import { scriptedProvider } from '@blade-ai/agent-sdk/testing';
import { calls, open, tool, turn } from './support/pipeline.mjs';
import { ask, folder, gate, only, random, results } from './support/run.mjs';

/**
 * A Session that uses something once for each message. `asked` resolves when its call has got what it needs, or waits for
 * it: the calls of a turn ask in their order, so that the second one runs when the first one has asked.
 */
async function user(t, name, log, toolConcurrency, input = {}) {
  const mark = tool('Mark', async () => void user.asked.open() ?? 'asked');
  const use = tool(
    'Use',
    async (_, { signal }) => {
      log.push(name);
      user.running.open();
      await Promise.race([user.release.opened, new Promise((resolve) => signal.addEventListener('abort', resolve))]);
      return name;
    },
    { kind: 'execute' },
  );
  const provider = scriptedProvider((request) =>
    request.messages.at(-1).role === 'user' ? calls({ name: 'Use', input }, 'Mark') : 'done',
  );
  const { session } = await open(t, provider, {
    tools: [use, mark],
    permissionMode: 'yolo',
    toolConcurrency,
  });
  const user = {
    name,
    session,
    /** Sends a message, and waits until its call has asked. */
    async ask() {
      for (const step of ['asked', 'running', 'release']) user[step] = gate();
      user.answer = ask(session);
      await user.asked.opened;
    },
  };
  return user;
}

const limited = (more) => createToolLimiter({ execute: 1, ...more });

/** What became of the one call of a request that was not aborted. */
const outcome = (events) => results(events)[0].output;

describe('a limiter that is shared', () => {
  test('Sessions take turns in order of arrival, and forks belong to it', async (t) => {
    const log = [];
    const limiter = limited();
    const [one, two] = [await user(t, 'one', log, limiter), await user(t, 'two', log, limiter)];
    const alone = await user(t, 'alone', log, { execute: 1 });
    const fork = await one.session.fork();
    t.after(() => fork.close());
    await one.ask();
    await two.ask();
    await alone.ask();
    await alone.running.opened;
    assert.deepEqual(log, ['one', 'alone']);
    // The fork shares tools and limiter with its Session: its call is third in the queue.
    one.asked = gate();
    const forked = ask(fork);
    await one.asked.opened;
    const { release } = one;
    one.release = gate();
    release.open();
    await two.running.opened;
    assert.deepEqual(log, ['one', 'alone', 'two']);
    two.release.open();
    one.release.open();
    alone.release.open();
    assert.deepEqual(
      [outcome(await one.answer), outcome(await two.answer), outcome(await forked)],
      ['one', 'two', 'one'],
    );
    assert.deepEqual(log, ['one', 'alone', 'two', 'one']);
    await alone.answer;
  });

  test('a Session that is closed takes its calls with it and nobody else', async (t) => {
    const log = [];
    const limiter = limited();
    const users = [];
    for (const name of ['holder', 'waiting', 'leaving', 'last']) users.push(await user(t, name, log, limiter));
    const [holder, waiting, leaving, last] = users;
    for (const one of users) await one.ask();
    await leaving.session.close();
    await holder.session.close();
    await waiting.running.opened;
    waiting.release.open();
    await last.running.opened;
    last.release.open();
    assert.deepEqual(log, ['holder', 'waiting', 'last']);
    assert.equal(outcome(await waiting.answer), 'waiting');
    assert.equal(outcome(await last.answer), 'last');
  });

  test('files are shared too, whatever they are called', async (t) => {
    const path = folder(t);
    mkdirSync(join(path, 'real'));
    symlinkSync('real', join(path, 'link'));
    writeFileSync(join(path, 'real/file'), '');
    linkSync(join(path, 'real/file'), join(path, 'hard link'));
    for (const [held, same] of [
      ['real/file', 'link/file'],
      ['real/file', 'hard link'],
      ['real/new', 'link/new'],
      ['real/New', 'real/nEW'],
    ]) {
      const log = [];
      const limiter = createToolLimiter();
      const one = await user(t, 'one', log, limiter, { file_path: join(path, held) });
      const two = await user(t, 'two', log, limiter, { file_path: join(path, same) });
      const other = await user(t, 'other', log, limiter, { file_path: join(path, 'other') });
      await one.ask();
      await one.running.opened;
      await two.ask();
      await other.ask();
      await other.running.opened;
      assert.deepEqual(log, ['one', 'other'], same);
      one.release.open();
      await two.running.opened;
      two.release.open();
      other.release.open();
      await Promise.all([one.answer, two.answer, other.answer]);
    }
  });

  test('more than the queue holds is answered at once, whichever Session asks', async (t) => {
    const limiter = limited({ queue: 1 });
    const log = [];
    const [one, two] = [await user(t, 'one', log, limiter), await user(t, 'two', log, limiter)];
    await one.ask();
    await two.ask();
    const third = await user(t, 'third', log, limiter);
    await third.ask();
    assert.match(outcome(await third.answer), /1 calls are already waiting/);
    one.release.open();
    two.release.open();
    await Promise.all([one.answer, two.answer]);
  });

  test('wrong limits and other objects are refused by name', async () => {
    const refused = (limits, says) =>
      assert.throws(
        () => createToolLimiter(limits),
        (error) => error.name === 'ConfigError' && error.code === 'CONFIG_ERROR' && says.test(error.message),
      );
    refused({ execute: 0 }, /execute.*from 1.*got 0/);
    refused({ readonly: 1.5 }, /readonly.*integer.*1\.5/);
    refused({ write: '3' }, /string "3"/);
    refused({ queue: Number.POSITIVE_INFINITY }, /queue is Infinity/);
    refused({ exec: 1 }, /unknown field `exec`/);
    refused(5, /object/);
    refused(null, /object/);
    refused([1], /object/);
    const limiter = createToolLimiter();
    // Another thread would have limits of its own and not know.
    assert.throws(() => structuredClone(limiter), { name: 'DataCloneError' });
    for (const toolConcurrency of [{ ...limiter }, { exec: 1 }, 'x']) {
      await assert.rejects(createSession({ provider: scriptedProvider([]), model: 'm', toolConcurrency }), {
        code: 'CONFIG_ERROR',
      });
    }
  });
});

describe('PL08: calls that wait for a file', () => {
  /** Five users of one file: the first has it, the others wait in their order. */
  async function users(t, log) {
    const limiter = createToolLimiter({ execute: 100 });
    const input = { file_path: '/w/file' };
    const all = [];
    for (const name of ['a', 'b', 'c', 'd', 'e']) all.push(await user(t, name, log, limiter, input));
    return all;
  }

  test('the middle one of three is aborted: the others keep their order and nothing leaks', async (t) => {
    const log = [];
    const [holder, first, middle, last, after] = await users(t, log);
    for (const one of [holder, first, middle, last]) await one.ask();
    await middle.session.abort();
    assert.deepEqual(only(await middle.answer, 'tool_result').length, 2, 'every call has its result');
    holder.release.open();
    await first.running.opened;
    first.release.open();
    await last.running.opened;
    last.release.open();
    await after.ask();
    await after.running.opened;
    after.release.open();
    assert.deepEqual(log, ['a', 'b', 'd', 'e']);
    for (const one of [holder, first, last, after]) assert.equal(outcome(await one.answer), one.name);
  });

  test('granted and aborted in the same turn: the next one gets the file', async (t) => {
    const log = [];
    const [holder, next, last] = await users(t, log);
    for (let round = 0; round < 100; round++) {
      log.length = 0;
      for (const one of [holder, next, last]) await one.ask();
      holder.release.open();
      // Whether the grant came first or the abort: the file goes on to the last one.
      const aborted = next.session.abort();
      await last.running.opened;
      last.release.open();
      await Promise.all([aborted, holder.answer, next.answer, last.answer]);
      assert.deepEqual(
        log.filter((name) => name !== next.name),
        [holder.name, last.name],
      );
    }
  });

  test('1,000 random orders of ending and aborting', async (t) => {
    const log = [];
    const dice = random(8);
    let all;
    for (let round = 0; round < 1000; round++) {
      // Fresh Sessions now and then, so that their histories stay short.
      if (round % 25 === 0) all = await users(t, log);
      log.length = 0;
      const asking = all.filter(() => dice.below(4) > 0);
      for (const one of asking) await one.ask();
      const open_ = [...asking];
      const aborted = [];
      while (open_.length > 0) {
        // The first one has the file; the others wait for it.
        const at = dice.below(3) === 0 ? dice.below(open_.length) : 0;
        const [one] = open_.splice(at, 1);
        if (at === 0) {
          await one.running.opened;
          one.release.open();
          if (dice.below(2) === 0) await one.answer;
        } else {
          aborted.push(one.name);
          const done = one.session.abort();
          if (dice.below(2) === 0) await done;
        }
      }
      await Promise.all(asking.map((one) => one.answer));
      const kept = asking.map((one) => one.name).filter((name) => !aborted.includes(name));
      const ran = log.filter((name) => !aborted.includes(name));
      assert.deepEqual(ran, kept, `round ${round}`);
    }
  });
});

test('parallel writes of one file through several Sessions all land', async (t) => {
  const path = join(folder(t), 'counter');
  writeFileSync(path, '');
  let inside = 0;
  const append = tool(
    'Append',
    async ({ file_path, text }) => {
      assert.equal(++inside, 1, 'one writer at a time');
      await new Promise(setImmediate);
      writeFileSync(file_path, text, { flag: 'a' });
      inside--;
      return 'ok';
    },
    { kind: 'execute' },
  );
  const options = { tools: [append], permissionMode: 'yolo', toolConcurrency: createToolLimiter({ execute: 50 }) };
  const list = (name) => Array.from({ length: 20 }, () => ({ name: 'Append', input: { file_path: path, text: name } }));
  const turns = await Promise.all(['a', 'b', 'c'].map((name) => turn(t, list(name), options)));
  for (const { results: all } of turns) assert.ok(all.every((result) => !result.isError));
});
