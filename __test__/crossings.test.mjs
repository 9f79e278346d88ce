// What crosses between the native core and JavaScript: only what somebody registered for, and a turn's calls together.
//
// Counted at the border itself, below the public package.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { native } from '../js/native.js';
import { calls, open, tool } from './support/pipeline.mjs';
import { ask, folder } from './support/run.mjs';

const CALL = 0;
const READY = 3;

/** Counts drains, entries and answers while `work` runs. */
async function count(work) {
  const { drain, settle, settleAll } = native;
  const seen = { drains: [], answers: [] };
  native.drain = (environment) => {
    const text = drain(environment);
    seen.drains.push(JSON.parse(text).flatMap(([, ...entries]) => entries));
    return text;
  };
  native.settle = (...args) => {
    seen.answers.push(1);
    return settle(...args);
  };
  native.settleAll = (...args) => {
    seen.answers.push(args[2].length);
    return settleAll(...args);
  };
  try {
    await work();
  } finally {
    Object.assign(native, { drain, settle, settleAll });
  }
  const entries = seen.drains.flat();
  /** Port → how often it was called. */
  const ports = {};
  for (const [kind, , port] of entries) if (kind === CALL) ports[port] = (ports[port] ?? 0) + 1;
  return { ...seen, ports, others: entries.filter(([kind]) => kind !== CALL && kind !== READY) };
}

const noop = (options) => tool('Noop', async () => 'ok', options);
const TURNS = 5;
const script = (each, call = 'Noop') => [
  ...Array.from({ length: TURNS }, () => calls(...Array(each).fill(call))),
  'done',
];

test('nothing is registered: calls of tools cross and nothing else', async (t) => {
  const { session } = await open(t, script(3), { tools: [noop()] });
  const { ports, others, answers } = await count(() => ask(session));
  assert.deepEqual(ports, { tool: 3 * TURNS });
  assert.deepEqual(others, []);
  assert.equal(
    answers.reduce((sum, one) => sum + one),
    3 * TURNS,
  );
});

test('a native tool crosses not at all', async (t) => {
  const root = folder(t);
  const { session } = await open(t, script(3, { name: 'Glob', input: { pattern: '*' } }), {
    profile: 'local',
    defaultContext: { capabilities: { filesystem: { roots: [root], cwd: root } } },
  });
  const { ports, others, answers, drains } = await count(() => ask(session));
  assert.deepEqual([ports, others, answers], [{}, [], []]);
  // The consumer is told that there are events, at most about once for each of them.
  assert.ok(drains.flat().length <= TURNS * (2 + 2 * 3) + 4, `${drains.flat().length} entries`);
});

test('what is registered crosses once for each call, and nothing beside it', async (t) => {
  const allow = async () => ({ behavior: 'allow' });
  const go = async () => ({ action: 'continue' });
  for (const [options, expected] of [
    [{ hooks: { PreToolUse: [go] } }, { hook: 10 }],
    [{ hooks: { PostToolUse: [go, go] } }, { hook: 20 }],
    [{ hooks: { PostToolUseFailure: [go] } }, {}],
    [{ permissionHandler: allow }, { permission: 10 }],
    [{ confirmationHandler: { requestConfirmation: async () => ({ approved: true }) } }, {}],
  ]) {
    const { session } = await open(t, script(2), { tools: [noop()], ...options });
    const { ports, others } = await count(() => ask(session));
    assert.deepEqual(ports, { tool: 2 * TURNS, ...expected }, JSON.stringify(Object.keys(options)));
    assert.deepEqual(others, []);
  }
});

test('64 calls of one turn cross together, and so do their answers', async (t) => {
  const { session } = await open(t, script(64), { tools: [noop()], toolConcurrency: { readonly: 64 } });
  const { drains, answers } = await count(() => ask(session));
  const together = drains.map((entries) => entries.filter(([kind]) => kind === CALL).length).filter((n) => n > 0);
  assert.deepEqual(answers, together, 'what came in one drain goes back in one answer');
  // A drain may come while the native side is still at it, so that a turn needs another one at times.
  assert.ok(together.length <= 3 * TURNS, `${together.length} crossings of calls: ${together}`);
  assert.ok(Math.max(...together) > 32, `${together}`);
});
