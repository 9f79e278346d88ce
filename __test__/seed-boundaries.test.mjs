// The contract of tools, sentence by sentence: what a tool is handed, and the durable boundaries around it.
// docs/parity.md names the test of each sentence.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ToolKind, ToolSideEffect } from '@blade-ai/agent-sdk';
import { calls, generator, open, tool } from './support/pipeline.mjs';
import { ask, comparable, gate, only, results } from './support/run.mjs';
import { macrotask, until } from './support/session.mjs';

const allow = async () => ({ behavior: 'allow' });

/** Some turns of the event loop, in which whatever was ready has happened. */
async function turns(count = 50) {
  for (let n = 0; n < count; n++) await macrotask();
}

describe('ExecutionContext', () => {
  test('has exactly the documented fields in a Session', async (t) => {
    let seen;
    const confirmationHandler = { requestConfirmation: async () => ({ approved: true }) };
    const look = tool('Look', async (_, context) => {
      const { contextSnapshot, signal, bladeConfig } = context;
      seen = { context, contextSnapshot, signal, bladeConfig };
      return null;
    });
    const { session } = await open(t, [calls('Look'), 'done'], {
      tools: [look],
      confirmationHandler,
      toolTimeoutMs: 5000,
      maxTurns: 9,
      defaultContext: { id: 'own', environment: { A: '1' } },
      toolLifecycle: {},
    });
    await ask(session);
    const { context, contextSnapshot, signal, bladeConfig } = seen;
    assert.deepEqual(Object.keys(context).sort(), [
      'bladeConfig',
      'confirmationHandler',
      'contextSnapshot',
      'messageId',
      'permissionMode',
      'sessionId',
      'signal',
    ]);
    assert.equal(context.sessionId, session.sessionId);
    assert.equal(context.messageId, session.messages[1].id);
    assert.equal(context.permissionMode, 'default');
    assert.equal(context.confirmationHandler, confirmationHandler);
    assert.ok(signal instanceof AbortSignal);
    assert.deepEqual([contextSnapshot.context.id, contextSnapshot.environment], ['own', { A: '1' }]);
    assert.deepEqual(
      [bladeConfig.toolTimeoutMs, bladeConfig.maxTurns, bladeConfig.currentModelId],
      [5000, 9, 'default'],
    );
  });

  test('registry, exposure-planning, and durable lifecycle capabilities are not handed directly to tools', async (t) => {
    const reachable = new Set();
    const note = (value, depth) => {
      for (const key of Reflect.ownKeys(value ?? {})) {
        reachable.add(String(key).toLowerCase());
        if (depth > 0 && typeof value[key] === 'object') note(value[key], depth - 1);
      }
    };
    const services = ['discoverableCatalog'];
    const look = tool('Look', async (_, context) => note(context, 2) ?? null, { services, requiresRuntime: true });
    const { session } = await open(t, [calls('Look'), 'done'], { tools: [look], toolLifecycle: {} });
    assert.equal(results(await ask(session))[0].isError, false);
    assert.ok(reachable.has('runtime') && reachable.has('discoverablecatalog'));
    const handed = [...reachable].filter((key) => /registry|exposure|lifecycle|planner|pipeline|ontool/.test(key));
    assert.deepEqual(handed, []);
  });
});

/** Reads a stream step by step. `reached(type)` resolves with the event; `ahead` says whether it can be read yet. */
function reader(stream) {
  const read = [];
  const done = (async () => {
    for await (const event of stream) read.push(event);
  })();
  return { read, done, has: (type) => read.some((event) => event.type === type) };
}

describe('Durable lifecycle boundaries', () => {
  test('onToolScheduled completes before the call is published, onToolSettled before its result is', async (t) => {
    const [scheduling, scheduled, settling, settled] = [gate(), gate(), gate(), gate()];
    const { session } = await open(t, [calls('Echo'), 'done'], {
      tools: [tool('Echo', async () => 'ran')],
      toolLifecycle: {
        onToolScheduled: async () => {
          scheduling.open();
          await scheduled.opened;
        },
        onToolSettled: async () => {
          settling.open();
          await settled.opened;
        },
      },
    });
    await session.send('go');
    const events = reader(session.stream());
    await scheduling.opened;
    await turns();
    assert.equal(events.has('tool_use'), false, 'not published before it was scheduled');
    scheduled.open();
    await settling.opened;
    await until(() => events.has('tool_use'));
    await turns();
    assert.equal(events.has('tool_result'), false, 'not published before it was settled');
    settled.open();
    await events.done;
    assert.equal(events.has('tool_result'), true);
  });

  test('onPermissionRequested completes before the handler runs, onPermissionResolved before the decision is accepted', async (t) => {
    const order = [];
    const boundary = async (name, answer) => {
      order.push(`${name} begins`);
      await turns();
      order.push(`${name} completes`);
      return answer;
    };
    const { session } = await open(t, [calls({ name: 'Run', input: { a: 1 } }), 'done'], {
      tools: [tool('Run', async () => void order.push('runs') ?? 'ran', { kind: ToolKind.Execute })],
      confirmationHandler: {
        requestConfirmation: async ({ permissionRequestId }) => {
          order.push(`asked ${permissionRequestId}`);
          return { approved: true, scope: 'session', reason: 'fine' };
        },
      },
      toolLifecycle: {
        onToolScheduled: async () => ({
          onPermissionRequested: async (details, input) => {
            assert.equal(details.toolName, 'Run');
            assert.deepEqual(input, { a: 1 });
            return boundary('requested', 'question-7');
          },
          onPermissionResolved: async (resolution) => {
            assert.deepEqual(resolution, {
              permissionRequestId: 'question-7',
              decision: 'allow',
              scope: 'session',
              reason: 'fine',
            });
            return boundary('resolved');
          },
          onExecutionStarted: () => boundary('started'),
        }),
      },
    });
    await ask(session);
    assert.deepEqual(order, [
      'requested begins',
      'requested completes',
      'asked question-7',
      'resolved begins',
      'resolved completes',
      'started begins',
      'started completes',
      'runs',
    ]);
  });

  test('onExecutionStarted is told the final post-permission input and the resolved side-effect contract', async (t) => {
    const told = {};
    const git = {
      ...generator('Git', async function* (params) {
        yield { kind: 'progress' };
        return { status: 'success', model: params };
      }),
      kind: ToolKind.Execute,
      resolveBehavior: ({ verb }) => (verb === 'log' ? { sideEffect: ToolSideEffect.PURE } : {}),
    };
    const { session } = await open(t, [calls({ name: 'Git', input: { verb: 'push' } }), 'done'], {
      tools: [git],
      hooks: { PreToolUse: [async () => ({ action: 'continue', modifiedInput: { hooked: true } })] },
      permissionHandler: async () => ({ behavior: 'allow', updatedInput: { verb: 'log' } }),
      toolLifecycle: {
        onToolScheduled: async ({ modelInput, input, sideEffect }) => {
          told.scheduled = { modelInput, input, sideEffect };
          const onExecutionStarted = async (event) => {
            told.started = event;
          };
          return { onExecutionStarted };
        },
      },
    });
    const [result] = results(await ask(session));
    assert.deepEqual(told.scheduled, {
      modelInput: { verb: 'push' },
      input: { verb: 'push' },
      sideEffect: 'non_idempotent',
    });
    assert.deepEqual(told.started, { input: { verb: 'log', hooked: true }, sideEffect: 'pure' });
    assert.deepEqual(result.output, { verb: 'log', hooked: true }, 'it is what the tool ran with');
  });

  test('a durable write failure blocks the side effect', async (t) => {
    let acted = false;
    const { session } = await open(t, [calls('Act'), 'done'], {
      tools: [tool('Act', async () => (acted = true))],
      toolLifecycle: {
        onToolScheduled: async () => ({
          onExecutionStarted: async () => {
            throw new Error('disk full');
          },
        }),
      },
    });
    const [result] = results(await ask(session));
    assert.deepEqual([acted, result.isError], [false, true]);
    assert.match(result.output, /disk full/);
  });

  test('invalid JSON arguments do not enter the durable lifecycle', async (t) => {
    const told = [];
    const turn = { toolCalls: ['{', '[]', '"text"', '{"a":'].map((input) => ({ name: 'Echo', input })) };
    const { session } = await open(t, [turn, 'done'], {
      tools: [tool('Echo', async () => 'ran')],
      toolLifecycle: {
        onToolScheduled: async () => void told.push('scheduled'),
        onToolSettled: async () => void told.push('settled'),
      },
    });
    for (const { isError } of results(await ask(session))) assert.equal(isError, true);
    assert.deepEqual(told, []);
  });

  test('synthetic interruption results for calls that were never dispatched do not enter the durable lifecycle', async (t) => {
    const told = [];
    const [scheduling, release] = [gate(), gate()];
    const { session, provider } = await open(t, [calls('First', 'Second', 'Third'), 'next'], {
      tools: ['First', 'Second', 'Third'].map((name) => tool(name, async () => void told.push(`${name} runs`) ?? name)),
      toolLifecycle: {
        onToolScheduled: async ({ toolName }) => {
          told.push(`${toolName} scheduled`);
          scheduling.open();
          await release.opened;
        },
        onToolSettled: async ({ toolName }) => void told.push(`${toolName} settled`),
      },
    });
    const events = ask(session);
    await scheduling.opened;
    const aborted = session.abort();
    await events;
    release.open();
    await aborted;
    assert.deepEqual(
      told.filter((step) => !step.startsWith('First')),
      [],
    );
    assert.equal(told.includes('First runs'), false);
    // The conversation is one a provider accepts: each call in it has its result.
    await ask(session);
    const { messages } = provider.requests.at(-1);
    const made = messages.flatMap((message) => message.tool_calls ?? []).map(({ id }) => id);
    const answered = messages.filter(({ role }) => role === 'tool').map((message) => message.tool_call_id);
    assert.deepEqual(answered, made);
  });

  test('without a lifecycle observer, normal tool execution behavior is unchanged', async (t) => {
    const script = () => [
      calls({ name: 'Good', input: { n: 1 } }, { name: 'Bad' }, { name: 'Denied' }, { name: 'Good', input: 'x' }),
      'done',
    ];
    const tools = [
      tool('Good', async (params) => params),
      tool('Bad', async () => Promise.reject(new Error('broken'))),
      tool('Denied', async () => 'never', { kind: ToolKind.Execute }),
    ];
    const silent = {
      onToolScheduled: async () => ({ onPermissionRequested: async () => 'q', onPermissionResolved: async () => {} }),
      onToolSettled: async () => {},
    };
    const seen = [];
    for (const toolLifecycle of [undefined, {}, silent]) {
      const { session, provider } = await open(t, script(), {
        tools,
        confirmationHandler: { requestConfirmation: async () => ({ approved: false, reason: 'no' }) },
        ...(toolLifecycle && { toolLifecycle }),
      });
      const events = comparable(await ask(session));
      const byId = (one, other) => (one.id < other.id ? -1 : 1);
      seen.push({
        others: events.filter(({ type }) => type !== 'tool_result' && type !== 'tool_use'),
        uses: only(events, 'tool_use'),
        results: only(events, 'tool_result').sort(byId),
        read: provider.requests.at(-1).messages.map(({ role, content }) => [role, content]),
      });
    }
    assert.deepEqual(seen[1], seen[0]);
    assert.deepEqual(seen[2], seen[0]);
  });
});

describe('Side-effect contract', () => {
  test('parameter-dependent tools narrow the contract through resolveBehavior(), and permission decisions use it', async (t) => {
    const asked = [];
    const git = {
      ...generator('Git', async function* () {
        yield { kind: 'progress' };
        return { status: 'success', model: 'ran' };
      }),
      kind: ToolKind.Execute,
      resolveBehavior: ({ verb }) =>
        verb === 'log' ? { kind: ToolKind.ReadOnly, sideEffect: ToolSideEffect.PURE, isReadOnly: true } : {},
    };
    const list = ['log', 'push'].map((verb) => ({ name: 'Git', input: { verb } }));
    const { session } = await open(t, [calls(...list), 'done'], {
      tools: [git],
      confirmationHandler: {
        requestConfirmation: async ({ args, kind }) => {
          asked.push([args.verb, kind]);
          return { approved: true };
        },
      },
    });
    await ask(session);
    assert.deepEqual(asked, [['push', ToolKind.Execute]], 'what only reads runs without a question');
  });

  test('scheduling uses the resolved behavior too', async (t) => {
    const both = gate();
    let running = 0;
    const git = {
      ...generator('Git', async function* () {
        if (++running === 2) both.open();
        await both.opened;
        yield { kind: 'progress' };
        return { status: 'success', model: 'ran' };
      }),
      kind: ToolKind.Execute,
      resolveBehavior: () => ({ kind: ToolKind.ReadOnly, isReadOnly: true }),
    };
    const { session } = await open(t, [calls('Git', 'Git'), 'done'], { tools: [git], toolConcurrency: { execute: 1 } });
    // With one slot for executing calls they would wait for each other.
    for (const { output } of results(await ask(session))) assert.equal(output, 'ran');
  });

  test('ToolKind and sideEffect are independent: neither is inferred from the other', async (t) => {
    for (const kind of Object.values(ToolKind)) {
      for (const sideEffect of Object.values(ToolSideEffect)) {
        let told;
        const { session } = await open(t, [calls('T'), 'done'], {
          tools: [tool('T', async () => 1, { kind, sideEffect })],
          permissionHandler: async ({ toolKind, toolMeta }) => {
            told = [toolKind, toolMeta.sideEffect];
            return allow();
          },
        });
        await ask(session);
        assert.deepEqual(told, [kind, sideEffect]);
      }
    }
  });

  test('a failing non-idempotent call is never retried', async (t) => {
    let ran = 0;
    const failing = tool('Once', async () => {
      ran++;
      throw Object.assign(new Error('reset'), { code: 'ECONNRESET' });
    });
    const { session } = await open(t, [calls('Once'), 'done'], { tools: [failing] });
    assert.equal(results(await ask(session))[0].isError, true);
    assert.equal(ran, 1);
  });
});
