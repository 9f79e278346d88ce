// Random Sessions: layers, an observer, hooks, a permission handler, a person and a logger together, each of which may
// be slow or fail, and a caller who may abort, close or leave at any point. What must hold is held by the checkers.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createSession, defineTool } from '@blade-ai/agent-sdk';
import { scriptedProvider } from '@blade-ai/agent-sdk/testing';
import { checkBoundaries, checker } from './support/invariants.mjs';
import { random } from './support/run.mjs';

const RUNS = 150;

const turns = async (n) => {
  for (let at = 0; at < n; at++) await new Promise(setImmediate);
};

/** What parts share: chance, delays in macrotasks, and failures. */
function chanceOf(seed) {
  const r = random(seed);
  const chance = (p) => r.next() < p;
  const rate = chance(0.4) ? 0 : 0.04;
  const slow = () => (chance(0.5) ? undefined : turns(r.below(4)));
  const flaky = async (what) => {
    await slow();
    if (chance(rate)) throw chance(0.1) ? null : new Error(`${what} failed`);
    await slow();
  };
  return { ...r, chance, slow, flaky };
}

function toolsOf({ chance, pick, below, slow, flaky }) {
  return Array.from({ length: 4 }, (_, n) => {
    const parameters = { type: 'object', properties: { n: { type: 'integer' } } };
    const kind = pick(['readonly', 'write', 'execute']);
    const execute = async (params) => {
      await flaky('tool');
      return params;
    };
    const authored = defineTool({ name: `T${n}`, description: 'd', parameters, kind, execute });
    if (chance(0.5)) return authored;
    const runtime = {
      ...authored,
      async *execute(params) {
        for (let left = below(5); left > 0; left--) {
          yield { kind: 'message', content: { summary: 'm' } };
          await slow();
        }
        await flaky('tool');
        return { status: 'success', model: params };
      },
    };
    if (chance(0.4)) runtime.validate = () => flaky('validate');
    if (chance(0.4)) runtime.resolveBehavior = () => flaky('resolveBehavior').then(() => ({}));
    if (chance(0.4)) {
      runtime.checkPermissions = async () => {
        await flaky('checkPermissions');
        return chance(0.1) ? { behavior: 'deny', message: 'no' } : { behavior: 'allow' };
      };
    }
    return runtime;
  });
}

function layerOf({ chance, pick, slow, flaky }) {
  const left = { status: 'success', model: 'left' };
  const progress = (message) => ({ kind: 'progress', message });
  return pick([
    (request, next) => next(request),
    async function* (request, next) {
      yield progress('before');
      const result = yield* next({ ...request, input: { ...request.input } });
      await flaky('layer');
      yield progress('after');
      return { ...result };
    },
    async function* (_, next) {
      await flaky('layer');
      return chance(0.3) ? left : yield* next();
    },
    async function* (request, next) {
      const inner = next(request);
      if (chance(0.5)) inner.next().catch(() => {});
      await slow();
      if (chance(0.3)) return left;
      for (let step = await inner.next(); ; step = await inner.next()) {
        if (step.done) return step.value ?? left;
        if (chance(0.7)) yield step.value;
      }
    },
    async function* (request, next) {
      try {
        return yield* next(chance(0.1) ? { ...request, toolName: 'Other' } : request);
      } finally {
        yield progress('finally');
        await slow();
      }
    },
  ]);
}

function optionsOf(chances, stored) {
  const { chance, pick, below, flaky } = chances;
  const store = async (boundary, id) => {
    await flaky(boundary);
    stored.push([boundary, id]);
  };
  const toolLifecycle = {
    onToolScheduled: async ({ toolCallId: id }) => {
      await store('scheduled', id);
      return {
        onPermissionRequested: async () => {
          await store('requested', id);
          return `question-${id}`;
        },
        onPermissionResolved: () => store('resolved', id),
        onExecutionStarted: () => store('started', id),
      };
    },
    onToolSettled: ({ toolCallId: id }) => store('settled', id),
  };
  const hook = async () => {
    await flaky('hook');
    return { action: 'continue' };
  };
  const permissionHandler = async () => {
    await flaky('permissionHandler');
    return chance(0.1) ? { behavior: 'deny', message: 'no' } : { behavior: pick(['allow', 'ask']) };
  };
  const requestConfirmation = async () => {
    await flaky('confirmation');
    return { approved: !chance(0.05), scope: pick(['once', 'session']) };
  };
  const all = {
    middleware: { tool: Array.from({ length: below(4) }, () => layerOf(chances)) },
    toolLifecycle,
    hooks: { PreToolUse: [hook], PostToolUse: [hook], PostToolUseFailure: [hook] },
    permissionHandler,
    confirmationHandler: { requestConfirmation },
    logger: { log: () => flaky('logger') },
  };
  const some = Object.entries(all).filter(() => chance(0.6));
  const permissionMode = pick(['default', 'yolo', 'plan']);
  return {
    model: 'm',
    permissionMode,
    tools: toolsOf(chances),
    confirmationFallback: 'allow',
    ...Object.fromEntries(some),
  };
}

/** What callers may be told instead of what they asked for. */
const EXPECTED = ['ABORT', 'SESSION_CLOSED', 'SESSION_BUSY'];

async function unlessExpected(work) {
  try {
    await work;
  } catch (error) {
    if (!EXPECTED.includes(error.code)) throw error;
  }
}

async function run(seed) {
  const chances = chanceOf(seed);
  const { chance, pick, below, slow } = chances;
  const stored = [];
  const call = (_, n) => ({ name: chance(0.03) ? 'Unknown' : `T${below(4)}`, input: chance(0.03) ? '{' : { n } });
  const script = Array.from({ length: below(3) }, () => ({
    toolCalls: Array.from({ length: 1 + below(chance(0.1) ? 64 : 8) }, call),
  }));
  const session = await createSession({
    ...optionsOf(chances, stored),
    provider: scriptedProvider([...script, 'done', ...script, 'again']),
  });
  for (let request = 0; request < 2 && !session.isClosed; request++) {
    await session.send('go');
    const check = checker();
    const ids = { tool_use: new Set(), tool_result: new Set() };
    const after = below(60);
    const act = chance(0.4) ? pick(['abort', 'close']) : undefined;
    const acted = act === undefined ? undefined : turns(after).then(() => unlessExpected(session[act]()));
    const leaves = chance(0.1) ? below(20) : Number.POSITIVE_INFINITY;
    let count = 0;
    let last;
    for await (const event of session.stream()) {
      check(event);
      last = event;
      ids[event.type]?.add(event.id);
      if (event.type in ids) stored.push([event.type, event.id]);
      if (chance(0.05)) await slow();
      if (++count > leaves) break;
    }
    check(undefined);
    await acted;
    if (last?.type === 'result') assert.deepEqual(ids.tool_result, ids.tool_use, 'every call has a result');
  }
  checkBoundaries(stored);
  await session.close();
}

test(`${RUNS} random Sessions keep every rule of events and boundaries`, async () => {
  for (let seed = 1; seed <= RUNS; seed++) {
    try {
      await run(seed);
    } catch (cause) {
      throw new Error(`seed ${seed}: ${cause?.message ?? cause}`, { cause });
    }
  }
});
