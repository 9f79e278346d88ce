// Interruption: who waits for whom when a request is cancelled while a callback of the application is at work.

import assert from 'node:assert/strict';
import { setImmediate as turnOfTheLoop } from 'node:timers/promises';
import { describe, test } from 'node:test';
import { anything, calls, open, tool } from './support/pipeline.mjs';
import { ask, gate, results } from './support/run.mjs';

const turns = () => [calls('T'), calls('T'), 'done'];
const execute = async () => 'ran';
/** Options with a callback of each kind, and the callback's view of its signal. */
const callbacks = {
  permissionHandler: (work) => ({
    permissionHandler: async ({ signal }) => {
      await work(signal);
      return { behavior: 'allow' };
    },
  }),
  confirmationHandler: (work) => ({
    permissionMode: 'default',
    confirmationHandler: {
      requestConfirmation: async ({ abortSignal }) => {
        await work(abortSignal);
        return { approved: true };
      },
    },
  }),
  'a hook': (work) => ({
    hooks: {
      PreToolUse: [
        async ({ abortSignal }) => {
          await work(abortSignal);
          return { action: 'continue' };
        },
      ],
    },
  }),
  'a tool': (work) => ({
    tools: [
      tool('T', async (_, { signal }) => {
        await work(signal);
        return 'ran';
      }),
    ],
  }),
};

/** A callback that needs a while to clean up after its signal, the first time it is called. */
function cleaning() {
  const began = gate();
  const state = { settled: false, began: began.opened };
  let first = true;
  state.work = async (signal) => {
    if (!first) return;
    first = false;
    began.open();
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    for (let round = 0; round < 50; round++) await turnOfTheLoop();
    state.settled = true;
  };
  return state;
}

const ways = {
  'abort()': async (session, began) => {
    const reading = (async () => {
      for await (const _ of session.stream());
    })();
    await began;
    await session.abort();
    return reading;
  },
  'leaving the stream': async (session, began) => {
    const stream = session.stream();
    // Turn and call; the result waits for the callback.
    for (let event = 0; event < 2; event++) await stream.next();
    await began;
    await stream.return();
  },
};

for (const [way, cancel] of Object.entries(ways)) {
  describe(`${way} waits until what cleans up has settled, and the next request finds the session quiet`, () => {
    for (const [name, options] of Object.entries(callbacks)) {
      test(name, async (t) => {
        const state = cleaning();
        const common = {
          permissionMode: 'yolo',
          tools: [tool('T', execute, { kind: 'execute', parameters: anything })],
        };
        const { session } = await open(t, turns(), { ...common, ...options(state.work) });
        await session.send('go');
        const cancelled = cancel(session, state.began);
        await cancelled;
        assert.ok(state.settled, `${name} was still at work`);
        const [result] = results(await ask(session));
        assert.deepEqual([result.isError, result.output], [false, 'ran']);
      });
    }
  });
}
