// The contract of tools, sentence by sentence: deadlines, waits for permissions, queues, abort and close.
// docs/parity.md names the test of each sentence. What must not happen within a time is given a multiple of that time.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createAgent, createToolLimiter, ToolErrorType } from '@blade-ai/agent-sdk';
import { scriptedProvider } from '@blade-ai/agent-sdk/testing';
import { calls, generator, open, tool, wait } from './support/pipeline.mjs';
import { ask, gate, only, results } from './support/run.mjs';
import { macrotask, until } from './support/session.mjs';

/** Resolves when the signal fires. */
const fired = (signal) =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', resolve, { once: true });
  });

/** Whether a promise has settled. */
function watch(promise) {
  const state = { settled: false, promise };
  const done = () => {
    state.settled = true;
  };
  promise.then(done, done);
  return state;
}

/** Some turns of the event loop, in which whatever was ready has happened. */
async function turns(count = 50) {
  for (let n = 0; n < count; n++) await macrotask();
}

/** Tries again while something is cleaning up: that it has ended is known to JavaScript first. */
async function retried(attempt) {
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (error.code !== 'SESSION_BUSY') throw error;
      await macrotask();
    }
  }
}

/** Notes the settled results of a Session's calls. */
const noting = (settled) => ({ onToolSettled: async ({ result }) => void settled.push(result) });

describe('interruptBehavior', () => {
  test('public defineTool() definitions use the conservative block default, whatever they say', async (t) => {
    const told = [];
    const { session } = await open(t, [calls('Authored', 'Runtime', 'Plain'), 'done'], {
      tools: [
        tool('Authored', async () => 1, { interruptBehavior: 'cancel' }),
        { ...generator('Runtime', () => completed), interruptBehavior: 'cancel' },
        generator('Plain', () => completed),
      ],
      toolLifecycle: {
        onToolScheduled: async ({ toolName, interruptBehavior }) => void told.push([toolName, interruptBehavior]),
      },
    });
    await ask(session);
    assert.deepEqual(told, [
      ['Authored', 'block'],
      ['Runtime', 'cancel'],
      ['Plain', 'block'],
    ]);
  });

  for (const method of ['abort', 'close']) {
    test(`session.${method}() is not blocked by interruptBehavior 'block' and waits for active tool cleanup`, async (t) => {
      const [started, told, cleaned] = [gate(), gate(), gate()];
      let cleanedUp = false;
      const busy = tool('Busy', async (_, { signal }) => {
        started.open();
        await fired(signal);
        told.open();
        await cleaned.opened;
        cleanedUp = true;
        return 'cleaned up';
      });
      const { session } = await open(t, [calls('Busy'), 'done'], { tools: [busy] });
      const events = ask(session);
      await started.opened;
      const ending = watch(session[method]());
      await told.opened;
      await turns();
      assert.equal(ending.settled, false, `${method}() waits`);
      cleaned.open();
      await ending.promise;
      assert.equal(cleanedUp, true);
      await events;
    });
  }
});

/** An execution that is over at once. */
const completed = {
  async next() {
    return { done: true, value: { status: 'success', model: 'ok' } };
  },
  async return() {
    return { done: true, value: undefined };
  },
};

describe('the deadline', { concurrency: true }, () => {
  test('starts after permission checks and the durable tool_started boundary', async (t) => {
    const [limit, each] = [500, 300];
    const order = [];
    const slow = async (name) => {
      order.push(name);
      await wait(each);
    };
    const patient = {
      ...generator('Patient', async function* () {
        order.push('runs');
        yield { kind: 'progress' };
        return { status: 'success', model: 'in time' };
      }),
      kind: 'execute',
      validate: async () => void (await slow('validate')),
      checkPermissions: async () => {
        await slow('checkPermissions');
        return { behavior: 'allow' };
      },
    };
    const { session } = await open(t, [calls('Patient'), 'done'], {
      tools: [patient],
      toolTimeoutMs: limit,
      permissionHandler: async () => {
        await slow('permissionHandler');
        return { behavior: 'ask' };
      },
      confirmationHandler: {
        requestConfirmation: async () => {
          await slow('confirmation');
          return { approved: true };
        },
      },
      toolLifecycle: { onToolScheduled: async () => ({ onExecutionStarted: () => slow('started') }) },
    });
    const [result] = results(await ask(session));
    assert.deepEqual([result.isError, result.output], [false, 'in time']);
    assert.deepEqual(order, ['validate', 'checkPermissions', 'permissionHandler', 'confirmation', 'started', 'runs']);
  });

  test('remains active across progress yields', async (t) => {
    const settled = [];
    let closed = false;
    const steady = generator('Steady', async function* () {
      try {
        for (let completed = 0; ; completed++) {
          yield { kind: 'progress', completed };
          await wait(20);
        }
      } finally {
        closed = true;
      }
    });
    const { session } = await open(t, [calls('Steady'), 'went on'], {
      tools: [steady],
      toolTimeoutMs: 500,
      toolLifecycle: noting(settled),
    });
    const events = await ask(session);
    assert.ok(only(events, 'tool_progress').length >= 2, 'there was progress in the meantime');
    assert.equal(settled[0].error.type, ToolErrorType.TIMEOUT_ERROR);
    assert.equal(closed, true);
    assert.equal(events.at(-1).content, 'went on');
  });

  test('remains active while the consumer is paused, and the tool can clean up without it', async (t) => {
    const settled = [];
    let closed;
    const chatty = generator('Chatty', async function* () {
      try {
        for (;;) yield { kind: 'message', content: { summary: 'x'.repeat(10_000) } };
      } finally {
        closed = true;
      }
    });
    for (const middleware of [undefined, { tool: [(request, next) => next(request)] }]) {
      closed = false;
      const { session } = await open(t, [calls('Chatty'), 'went on'], {
        tools: [chatty],
        toolTimeoutMs: 100,
        toolLifecycle: noting(settled),
        ...(middleware && { middleware }),
      });
      await session.send('go');
      const stream = session.stream();
      while ((await stream.next()).value.type !== 'tool_message');
      // Nobody reads any more: the tool waits for room, its deadline does not.
      await until(() => closed);
      // A layer that hands on what the tool said waits for the consumer itself.
      if (middleware === undefined) await until(() => settled.length > 0);
      let last;
      for await (const event of stream) last = event;
      assert.equal(settled.pop().error.type, 'timeout_error');
      assert.equal(last.content, 'went on');
      await session.close();
    }
  });

  test("aborts the tool's signal on expiry, and the terminal result has ToolErrorType.TIMEOUT_ERROR", async (t) => {
    const settled = [];
    let reason;
    const slow = tool('Slow', async (_, { signal }) => {
      await fired(signal);
      reason = signal.reason;
      return 'too late to count';
    });
    const { session } = await open(t, [calls('Slow'), 'done'], {
      tools: [slow],
      toolTimeoutMs: 50,
      toolLifecycle: noting(settled),
    });
    const [result] = results(await ask(session));
    assert.equal(reason.name, 'AbortError');
    assert.equal(settled[0].error.type, ToolErrorType.TIMEOUT_ERROR);
    assert.equal(result.isError, true);
  });

  test('bounds each tool invocation on its own', async (t) => {
    const settled = new Map();
    const quick = tool('Quick', async () => 'quick');
    const slow = tool('Slow', (_, { signal }) => fired(signal));
    const { session } = await open(t, [calls('Slow', 'Quick'), calls('Quick'), 'done'], {
      tools: [quick, slow],
      toolTimeoutMs: 400,
      toolLifecycle: {
        onToolSettled: async ({ toolCallId, toolName, result }) =>
          void settled.set(`${toolName} ${toolCallId}`, result.error?.type ?? result.status),
      },
    });
    await ask(session);
    const ends = [...settled].map(([name, end]) => `${name.split(' ')[0]} ${end}`).sort();
    assert.deepEqual(ends, ['Quick success', 'Quick success', 'Slow timeout_error']);
  });

  test('cleanup after the deadline is awaited, and then nothing is left behind', async (t) => {
    const order = [];
    const tidy = tool('Tidy', async (_, { signal }) => {
      await fired(signal);
      await wait(150);
      order.push('cleaned up');
    });
    const { session } = await open(t, [calls('Tidy'), calls('Fine'), 'done'], {
      tools: [tidy, tool('Fine', async () => 'ran')],
      toolTimeoutMs: 250,
      toolLifecycle: { onToolSettled: async ({ toolName }) => void order.push(`${toolName} settled`) },
    });
    const list = results(await ask(session));
    assert.deepEqual(order, ['cleaned up', 'Tidy settled', 'Fine settled']);
    assert.equal(list[1].output, 'ran');
    await session.close();
  });

  test('if cleanup is still pending after 5 seconds, new tool work and close fail closed until the generator exits, and can be retried', async (t) => {
    const release = gate();
    let exited = false;
    const deaf = generator('Deaf', async function* () {
      try {
        await release.opened;
        yield { kind: 'progress' };
      } finally {
        exited = true;
      }
    });
    let asked = 0;
    const model = () => [calls(asked === 0 ? 'Deaf' : 'Fine'), 'done'][asked++ % 2];
    const { session } = await open(t, scriptedProvider(model), {
      tools: [deaf, tool('Fine', async () => 'ran')],
      toolTimeoutMs: 30,
    });
    const before = performance.now();
    const [timedOut] = results(await ask(session));
    const waited = performance.now() - before;
    assert.ok(waited >= 5000 && waited < 9000, `${waited} ms`);
    assert.match(timedOut.output, /timeout/);
    const [refused] = results(await ask(session));
    assert.match(refused.output, /Deaf is still cleaning up/);
    await assert.rejects(session.close(), { code: 'SESSION_BUSY' });
    assert.equal(exited, false, 'JavaScript cannot preempt what ignores its cancellation');
    release.open();
    await until(() => exited);
    let output;
    do {
      [{ output }] = results(await ask(session));
    } while (/still cleaning up/.test(output));
    assert.equal(output, 'ran');
    await session.close();
    assert.equal(session.isClosed, true);
  });
});

/**
 * The callbacks around a call that the application gives: `options(callback)` puts one in its place, the callback is
 * given the signal it should observe.
 */
const CALLBACKS = {
  'input validation': (callback) => ({ tools: [judging({ validate: (_, { signal }) => callback(signal) })] }),
  'tool-level permission checks': (callback) => ({
    tools: [judging({ checkPermissions: (_, { signal }) => callback(signal) })],
  }),
  'the permissionHandler': (callback) => ({
    tools: [judging()],
    permissionHandler: ({ signal }) => callback(signal),
  }),
  'AgentOptions.advanced.permission': (callback) => ({
    tools: [judging()],
    permission: ({ signal }) => callback(signal),
  }),
  'the confirmation handler': (callback) => ({
    tools: [judging()],
    confirmationHandler: { requestConfirmation: ({ abortSignal }) => callback(abortSignal) },
  }),
};

const judging = (more) => ({
  ...generator('Judged', async function* () {
    yield { kind: 'progress' };
    return { status: 'success', model: 'ran' };
  }),
  kind: 'execute',
  ...more,
});

/** A Session, or an agent where the callback is one of an agent. */
async function judged(t, { permission, tools, ...options }, script) {
  if (permission === undefined)
    return (await open(t, script, { permissionMode: 'default', tools, ...options })).session;
  const agent = await createAgent({
    provider: scriptedProvider(script),
    model: 'm',
    tools,
    advanced: { permission, ...options },
  });
  t.after(() => agent.close());
  // What `ask` needs of a Session.
  let last;
  return {
    send: async (message) => {
      last = await agent.send(message);
    },
    stream: () => last.stream(),
    abort: () => agent.abort(),
    close: () => agent.close(),
  };
}

describe('waits for permissions', { concurrency: true }, () => {
  for (const [name, options] of Object.entries(CALLBACKS)) {
    test(`${name}: a callback that stops on its signal ends with the request and leaves nothing behind`, async (t) => {
      const asked = gate();
      let signal;
      const session = await judged(
        t,
        options(async (given) => {
          signal = given;
          asked.open();
          await fired(given);
          throw given.reason;
        }),
        [calls('Judged'), 'done'],
      );
      const events = ask(session);
      await asked.opened;
      assert.ok(signal instanceof AbortSignal && !signal.aborted);
      await session.abort();
      assert.equal(signal.aborted, true);
      await events;
      await session.close();
    });

    test(`${name}: a callback that ignores its signal does not hold the request, but new tool calls and close until it settles`, async (t) => {
      const [asked, release] = [gate(), gate()];
      let count = 0;
      const session = await judged(
        t,
        options(async () => {
          if (count++ === 0) {
            asked.open();
            await release.opened;
          }
          throw new Error('late');
        }),
        [calls('Judged'), calls('Judged'), 'done', 'again'],
      );
      const events = ask(session);
      await asked.opened;
      await session.abort();
      const last = (await events).at(-1);
      assert.notEqual(last.type, 'error', 'a cancelled request is no failed one');
      const [refused] = results(await ask(session));
      assert.match(refused.output, /still cleaning up; refusing to start another tool/);
      assert.equal(count, 1, 'nobody was asked');
      await assert.rejects(session.close(), { code: 'SESSION_BUSY' });
      release.open();
      await retried(() => session.close());
    });
  }

  test('are cancellation-bounded instead of time-bounded', async (t) => {
    const answer = gate();
    const asked = gate();
    const { session } = await open(t, [calls('Judged'), 'done'], {
      tools: [judging()],
      toolTimeoutMs: 250,
      confirmationHandler: {
        requestConfirmation: async () => {
          asked.open();
          await answer.opened;
          return { approved: true };
        },
      },
    });
    const events = ask(session);
    await asked.opened;
    await wait(600);
    answer.open();
    const [result] = results(await events);
    assert.deepEqual([result.isError, result.output], [false, 'ran']);
  });

  test("a durable permission request is resolved with decision 'cancel' before cancellation completes", async (t) => {
    const [asked, storing, stored] = [gate(), gate(), gate()];
    const log = [];
    const { session } = await open(t, [calls('Judged'), 'done'], {
      tools: [judging()],
      confirmationHandler: {
        requestConfirmation: async ({ permissionRequestId, abortSignal }) => {
          log.push(['asked', permissionRequestId]);
          asked.open();
          await fired(abortSignal);
          return { approved: true };
        },
      },
      toolLifecycle: {
        onToolScheduled: async () => ({
          onPermissionRequested: async () => 'question-1',
          onPermissionResolved: async (resolution) => {
            storing.open();
            await stored.opened;
            log.push(['resolved', resolution]);
          },
          onExecutionStarted: async () => void log.push(['started']),
        }),
      },
    });
    const events = ask(session);
    await asked.opened;
    const aborting = watch(session.abort());
    await storing.opened;
    await turns();
    assert.equal(aborting.settled, false, 'cancellation does not complete before the decision is stored');
    stored.open();
    await aborting.promise;
    assert.deepEqual(log, [
      ['asked', 'question-1'],
      ['resolved', { permissionRequestId: 'question-1', decision: 'cancel' }],
    ]);
    await events;
  });
});

describe('waits for slots and files', () => {
  /**
   * A Session with a tool that runs until it is released, or its signal fires. The calls of a turn ask in their order, so
   * the other one runs when the first one has what it needs or waits for it.
   */
  async function holder(t, name, options, input = {}) {
    const held = { asked: gate(), running: gate(), release: gate(), settled: [] };
    const mark = tool('Mark', async () => void held.asked.open() ?? 'asked');
    const hold = tool(
      'Hold',
      async (_, { signal }) => {
        held.running.open();
        await Promise.race([held.release.opened, fired(signal)]);
        return name;
      },
      { kind: 'execute' },
    );
    const { session } = await open(t, [calls({ name: 'Hold', input }, 'Mark'), 'done'], {
      tools: [hold, mark],
      permissionMode: 'yolo',
      toolLifecycle: {
        onToolSettled: async ({ toolName, result }) => void (toolName === 'Hold' && held.settled.push(result)),
      },
      ...options,
    });
    return Object.assign(held, { session });
  }

  for (const [what, limits, input] of [
    ['concurrency-slot', { execute: 1 }, {}],
    ['same-file lock', {}, { file_path: '/w/file' }],
  ]) {
    test(`${what} waits occur before the tool timeout starts`, async (t) => {
      const toolConcurrency = createToolLimiter(limits);
      const first = await holder(t, 'first', { toolConcurrency }, input);
      const second = await holder(t, 'second', { toolConcurrency, toolTimeoutMs: 250 }, input);
      const one = ask(first.session);
      await first.running.opened;
      const two = ask(second.session);
      await wait(600);
      assert.deepEqual(second.settled, [], 'the call that waits has not timed out');
      second.release.open();
      first.release.open();
      assert.equal(results(await two)[0].output, 'second');
      await one;
    });

    test(`${what} waits observe the active Request signal, and leave the queue without consuming capacity`, async (t) => {
      const toolConcurrency = createToolLimiter(limits);
      const users = [];
      for (const name of ['first', 'leaving', 'last']) users.push(await holder(t, name, { toolConcurrency }, input));
      const [first, leaving, last] = users;
      const one = ask(first.session);
      await first.running.opened;
      const controller = new AbortController();
      const two = ask(leaving.session, 'go', { send: { signal: controller.signal } });
      await leaving.asked.opened;
      const three = ask(last.session);
      await last.asked.opened;
      controller.abort();
      await two;
      assert.equal(leaving.settled[0].error.type, ToolErrorType.INTERRUPTED);
      first.release.open();
      await last.running.opened;
      last.release.open();
      assert.equal(results(await three)[0].output, 'last');
      await one;
    });
  }
});
