// Inputs that broke other systems, by their ids: hooks that hang, break, or cannot start must never let a call through.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { definePlugin } from '@blade-ai/agent-sdk';
import { calls, open, tool } from './support/pipeline.mjs';
import { ask, gate, only, results } from './support/run.mjs';

/** One call of T behind one hook; `release` lets a hook that hangs go at the end. */
async function behind(t, hook, options = {}) {
  let ran = 0;
  const { session } = await open(t, [calls('T'), 'done', 'again'], {
    tools: [
      tool('T', async () => {
        ran += 1;
        return 'ran';
      }),
    ],
    hooks: { PreToolUse: [hook] },
    hookTimeoutMs: 50,
    ...options,
  });
  const events = await ask(session);
  return { session, events, result: results(events)[0], ran: () => ran };
}

describe('PL01', () => {
  test('a hook that never resolves: the call does not run, in bounded time, and the error names the event', async (t) => {
    const stuck = gate();
    const { result, ran, session } = await behind(t, () => stuck.opened.then(() => ({ action: 'continue' })));
    assert.equal(ran(), 0);
    assert.equal(result.isError, true);
    assert.match(result.output, /hooks of PreToolUse did not finish within 50 ms/);
    // Until it settles nothing else may start; then everything works again.
    stuck.open();
    assert.equal(only(await ask(session), 'result')[0].content, 'again');
  });

  const bad = {
    'throws at once': () => {
      throw new Error('broken hook');
    },
    rejects: async () => Promise.reject(new Error('broken hook')),
    'answers nothing': async () => undefined,
    'answers a text': async () => 'continue',
    'answers an unknown action': async () => ({ action: 'allow' }),
    'answers an input that is no object': async () => ({ action: 'continue', modifiedInput: [1] }),
    'answers something that is no JSON': async () => ({ action: 'continue', modifiedInput: { a: 1n } }),
  };
  for (const [name, hook] of Object.entries(bad)) {
    test(`a hook that ${name}: the call does not run and the error names the event`, async (t) => {
      const { result, ran, session } = await behind(t, hook);
      assert.equal(ran(), 0);
      assert.equal(result.isError, true);
      assert.match(result.output, /PreToolUse/);
      assert.equal(only(await ask(session), 'result')[0].content, 'again');
    });
  }

  test('a hook that rejects after an abort is not an unhandled rejection and lets nothing run', async (t) => {
    const unhandled = [];
    const note = (reason) => unhandled.push(reason);
    process.on('unhandledRejection', note);
    t.after(() => process.off('unhandledRejection', note));
    let ran = false;
    const [entered, stuck] = [gate(), gate()];
    const { session } = await open(t, [calls('T'), 'done'], {
      tools: [
        tool('T', async () => {
          ran = true;
        }),
      ],
      hooks: {
        PreToolUse: [
          async () => {
            entered.open();
            await stuck.opened;
            throw new Error('too late');
          },
        ],
      },
    });
    const asked = ask(session);
    await entered.opened;
    const aborted = session.abort();
    stuck.open();
    await aborted;
    await asked;
    await session.close();
    await new Promise(setImmediate);
    assert.equal(ran, false);
    assert.deepEqual(unhandled, []);
  });

  test('a hook that changes its input in place changes nothing', async (t) => {
    const { session } = await open(t, [calls({ name: 'T', input: { a: { b: 1 } } }), 'done'], {
      tools: [tool('T', async (params) => params)],
      hooks: {
        PreToolUse: [
          async (input) => {
            input.toolInput.a.b = 2;
            input.toolName = 'Other';
            return { action: 'continue' };
          },
        ],
      },
    });
    assert.deepEqual(results(await ask(session))[0].output, { a: { b: 1 } });
  });
});

describe('PL02', () => {
  const missing = undefined;
  for (const [name, options] of Object.entries({
    'a callback that does not exist': { hooks: { PreToolUse: [missing] } },
    'the path of a module': { hooks: { PreToolUse: ['./hook.mjs'] } },
    'a command for a shell': { hooks: { PreToolUse: [{ type: 'command', command: 'exit 1' }] } },
    'a misspelt event': { hooks: { PreTooluse: [async () => ({ action: 'abort' })] } },
    'a single callback': { hooks: { PreToolUse: async () => ({ action: 'abort' }) } },
  })) {
    test(`${name} is refused when the Session opens, for hooks and for plugins`, async (t) => {
      await assert.rejects(open(t, ['x'], options), { code: 'CONFIG_ERROR', message: /hooks/ });
      assert.throws(() => definePlugin({ name: 'p', ...options }), {
        code: 'CONFIG_ERROR',
        message: /plugin p: hooks/,
      });
    });
  }
});
