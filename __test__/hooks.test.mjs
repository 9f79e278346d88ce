// Hooks and plugins: order, merging, refusal, deadlines, and what a misbehaving callback does.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createAgent, createSession, defineTool, definePlugin, HookTimeoutError, prompt } from '@blade-ai/agent-sdk';
import { scriptedProvider } from '@blade-ai/agent-sdk/testing';

const go = async () => ({ action: 'continue' });
const parameters = { type: 'object', properties: { n: { type: 'integer' } } };
const echo = (execute = async (params) => params, extra = {}) =>
  defineTool({ name: 'Echo', description: 'gives back', parameters, execute, ...extra });
const callOnce = (input = { n: 1 }) => [{ toolCalls: [{ id: 'c1', name: 'Echo', input }] }, 'done'];

async function run(options, turns = callOnce(), message = 'go') {
  const provider = scriptedProvider(turns);
  const session = await createSession({ provider, model: 'm', permissionMode: 'yolo', tools: [echo()], ...options });
  await session.send(message);
  const events = [];
  for await (const event of session.stream()) events.push(event);
  const of = (type) => events.filter((event) => event.type === type);
  return { session, provider, events, of, result: of('tool_result')[0], error: of('error')[0] };
}

const told = (provider) => provider.requests[1].messages.find((message) => message.role === 'tool').content;

describe('order and inputs', () => {
  test('all events of a successful request come in order, and SessionEnd on close', async () => {
    const seen = [];
    const spy = (event) => async (input) => {
      assert.equal(input.event, event);
      assert.ok(input.abortSignal instanceof AbortSignal);
      seen.push(event);
      return { action: 'continue' };
    };
    const names = [
      'SessionStart',
      'UserPromptSubmit',
      'PreToolUse',
      'PermissionRequest',
      'PostToolUse',
      'TaskCompleted',
    ];
    const hooks = Object.fromEntries([...names, 'SessionEnd'].map((name) => [name, [spy(name)]]));
    const { session } = await run({ hooks });
    assert.deepEqual(seen, names);
    await session.close();
    await session.close();
    assert.deepEqual(seen, [...names, 'SessionEnd']);
  });

  test('a failing call, a refused call and an unknown tool all reach PostToolUseFailure with an Error', async () => {
    const errors = [];
    const hooks = {
      PostToolUse: [async () => assert.fail('nothing succeeded')],
      PostToolUseFailure: [
        async ({ error, toolName }) => {
          assert.ok(error instanceof Error);
          errors.push([toolName, error.message]);
          return { action: 'continue' };
        },
      ],
    };
    const failing = echo(async () => {
      throw new TypeError('kaputt');
    });
    const turns = [
      { toolCalls: [{ name: 'Echo', input: { n: 1 } }] },
      { toolCalls: [{ name: 'Echo', input: { n: 'x' } }] },
      { toolCalls: [{ name: 'Ghost' }] },
      'done',
    ];
    const { session } = await run({ hooks, tools: [failing] }, turns);
    assert.deepEqual(
      errors.map(([name]) => name),
      ['Echo', 'Echo', 'Ghost'],
    );
    assert.equal(errors[0][1], 'kaputt');
    assert.match(errors[1][1], /n must be integer/);
    await session.close();
  });

  test('changes of PreToolUse merge in order and are validated like any input', async () => {
    const change = (modifiedInput) => async () => ({ action: 'continue', modifiedInput });
    const good = await run({ hooks: { PreToolUse: [change({ n: 2 }), change({ extra: true })] } });
    assert.deepEqual(good.result.output, { n: 2, extra: true });
    const bad = await run({ hooks: { PreToolUse: [change({ n: 'two' })] } });
    assert.equal(bad.result.isError, true);
    assert.match(bad.result.output, /n must be integer/);
    await Promise.all([good.session.close(), bad.session.close()]);
  });

  test('a callback gets its own copy of the input', async () => {
    const hooks = {
      PreToolUse: [
        async (input) => {
          input.toolInput.n = 99;
          return { action: 'continue' };
        },
        async (input) => {
          assert.equal(input.toolInput.n, 1);
          return { action: 'continue' };
        },
      ],
    };
    const { session, result } = await run({ hooks });
    assert.deepEqual(result.output, { n: 1 });
    await session.close();
  });
});

describe('stopping', () => {
  for (const [action, isError] of [
    ['skip', false],
    ['abort', true],
  ]) {
    test(`PreToolUse ${action}: the tool does not run`, async () => {
      let ran = false;
      const tool = echo(async () => {
        ran = true;
      });
      const { session, provider, result } = await run({
        tools: [tool],
        hooks: { PreToolUse: [async () => ({ action, reason: 'BECAUSE' })] },
      });
      assert.deepEqual([ran, result.isError], [false, isError]);
      assert.match(told(provider), /BECAUSE/);
      await session.close();
    });

    test(`PermissionRequest ${action} denies`, async () => {
      const { session, result, of } = await run({
        hooks: { PermissionRequest: [async () => ({ action, reason: 'NOT-HERE' })] },
      });
      assert.equal(result.isError, true);
      assert.match(result.output, /NOT-HERE/);
      // An abort ends the request after the turn, a skip lets the model go on.
      assert.equal(of('turn_start').length, action === 'abort' ? 1 : 2);
      await session.close();
    });
  }

  test('PermissionRequest runs before the permission handler and its changes reach it', async () => {
    let seen;
    const { session } = await run({
      hooks: { PermissionRequest: [async () => ({ action: 'continue', modifiedInput: { n: 5 } })] },
      permissionHandler: async ({ input }) => {
        seen = input;
        return { behavior: 'allow' };
      },
    });
    assert.deepEqual(seen, { n: 5 });
    await session.close();
  });

  test('PostToolUse: the last changed output is what the model is told, and an abort makes a failure', async () => {
    const out = (modifiedOutput) => async () => ({ action: 'continue', modifiedOutput });
    const changed = await run({ hooks: { PostToolUse: [out('first'), out({ kept: 1 })] } });
    assert.equal(told(changed.provider), '{"kept":1}');
    const refused = await run({ hooks: { PostToolUse: [async () => ({ action: 'abort', reason: 'TAINTED' })] } });
    assert.equal(refused.result.isError, true);
    assert.match(refused.result.output, /TAINTED/);
    await Promise.all([changed.session.close(), refused.session.close()]);
  });

  test('a failure never becomes a success through its hooks', async () => {
    const failing = echo(async () => {
      throw new Error('no');
    });
    const { session, result } = await run({
      tools: [failing],
      hooks: { PostToolUseFailure: [async () => ({ action: 'continue', modifiedOutput: 'all fine' })] },
    });
    assert.deepEqual([result.isError, result.output], [true, 'all fine']);
    await session.close();
  });

  test('UserPromptSubmit may replace the prompt or fail the request before any model call', async () => {
    const polite = async ({ userPrompt }) => ({
      action: 'continue',
      modifiedInput: { userPrompt: `${userPrompt}, please` },
    });
    const asked = await run({ hooks: { UserPromptSubmit: [polite] } }, ['ok'], 'do it');
    assert.equal(asked.provider.requests[0].messages.at(-1).content, 'do it, please');
    const no = async () => ({ action: 'abort', reason: 'off topic' });
    const refused = await run({ hooks: { UserPromptSubmit: [no] } }, ['ok']);
    assert.deepEqual([refused.error.message, refused.error.code], ['off topic', 'HOOK_ABORTED']);
    assert.equal(refused.provider.requests.length, 0);
    assert.deepEqual(refused.session.messages, []);
    await Promise.all([asked.session.close(), refused.session.close()]);
  });

  test('TaskCompleted abort fails the request; SessionStart abort fails opening', async () => {
    const no = async () => ({ action: 'abort', reason: 'not done' });
    const options = { provider: scriptedProvider(['ok']), model: 'm' };
    await assert.rejects(prompt('x', { ...options, hooks: { TaskCompleted: [no] } }), { code: 'HOOK_ABORTED' });
    await assert.rejects(createSession({ ...options, hooks: { SessionStart: [no] } }), { message: 'not done' });
  });

  test('a failing SessionEnd hook fails the close once; the next close succeeds', async () => {
    let calls = 0;
    const hooks = {
      SessionEnd: [
        async () => {
          calls++;
          throw new Error('cannot say goodbye');
        },
      ],
    };
    const session = await createSession({ provider: scriptedProvider(['ok']), model: 'm', hooks });
    await assert.rejects(session.close(), /cannot say goodbye/);
    await session.close();
    assert.deepEqual([calls, session.isClosed], [1, true]);
  });
});

describe('misbehaving callbacks', () => {
  for (const [what, callback] of [
    [
      'throws',
      async () => {
        throw new Error('hook bug');
      },
    ],
    [
      'throws at once',
      () => {
        throw new Error('hook bug');
      },
    ],
    ['answers nothing', async () => {}],
    ['answers nonsense', async () => ({ action: 'maybe' })],
    ['answers with what is no JSON', async () => ({ action: 'continue', modifiedInput: { f() {} } })],
  ]) {
    test(`a PreToolUse hook that ${what} makes the call an error result, and the Session goes on`, async () => {
      let ran = false;
      const tool = echo(async () => {
        ran = true;
      });
      const { session, result, of } = await run({ tools: [tool], hooks: { PreToolUse: [callback] } });
      assert.deepEqual([ran, result.isError], [false, true]);
      assert.equal(of('result')[0].content, 'done');
      await session.close();
    });
  }

  test('a PostToolUseFailure hook that throws leaves the original error', async () => {
    const failing = echo(async () => {
      throw new Error('the real one');
    });
    const { session, result } = await run({
      tools: [failing],
      hooks: {
        PostToolUseFailure: [
          async () => {
            throw new Error('hook bug');
          },
        ],
      },
    });
    assert.match(result.output, /the real one/);
    await session.close();
  });

  test('a callback past its deadline is told by its signal; until it settles the Session does not close', async () => {
    let release;
    let signal;
    const hooks = {
      UserPromptSubmit: [
        (input) => {
          signal = input.abortSignal;
          return new Promise((resolve) => {
            release = () => resolve({ action: 'continue' });
          });
        },
      ],
    };
    const { session, error } = await run({ hooks, hookTimeoutMs: 30 }, ['ok']);
    assert.equal(error.code, 'HOOK_TIMEOUT');
    assert.equal(signal.aborted, true);
    const closing = session.close();
    release();
    await closing;
    assert.equal(session.isClosed, true);
  });

  test('a timeout is a HookTimeoutError for prompt', async () => {
    const slow = ({ abortSignal }) =>
      new Promise((resolve) => abortSignal.addEventListener('abort', () => resolve({ action: 'continue' })));
    const options = { provider: scriptedProvider(['ok']), model: 'm', hookTimeoutMs: 20 };
    await assert.rejects(prompt('x', { ...options, hooks: { UserPromptSubmit: [slow] } }), HookTimeoutError);
  });

  test('abort while a hook runs fires its signal and ends the request without an error', async () => {
    const provider = scriptedProvider(callOnce());
    let began;
    const running = new Promise((resolve) => {
      began = resolve;
    });
    const hooks = {
      PreToolUse: [
        ({ abortSignal }) =>
          new Promise((resolve) => {
            abortSignal.addEventListener('abort', () => resolve({ action: 'continue' }));
            began();
          }),
      ],
    };
    const session = await createSession({ provider, model: 'm', permissionMode: 'yolo', tools: [echo()], hooks });
    await session.send('go');
    const types = [];
    const reading = (async () => {
      for await (const { type } of session.stream()) types.push(type);
    })();
    await running;
    await session.abort();
    await reading;
    assert.ok(!types.includes('error') && !types.includes('result'), types.join(' '));
    await session.close();
  });
});

describe('options and plugins', () => {
  const base = { provider: { type: 'openai', apiKey: 'k' }, model: 'm' };
  for (const [what, options] of [
    ['an unknown event', { hooks: { BeforeTool: [go] } }],
    ['callbacks that are no functions', { hooks: { PreToolUse: ['x'] } }],
    ['callbacks that are no list', { hooks: { PreToolUse: go } }],
    ['a deadline of zero', { hookTimeoutMs: 0 }],
    ['a deadline that is no number', { sessionEndHookTimeoutMs: Number.NaN }],
    ['two plugins of one name', { plugins: [{ name: 'a' }, { name: 'a' }] }],
    ['a plugin without a name', { plugins: [{}] }],
    ['plugins that are no list', { plugins: {} }],
  ]) {
    test(`${what} is a ConfigError`, async () => {
      await assert.rejects(createSession({ ...base, ...options }), { code: 'CONFIG_ERROR' });
    });
  }

  test('hooks of plugins run after those of the options, and their tools are registered', async () => {
    const order = [];
    const note = (name) => async () => {
      order.push(name);
      return { action: 'continue' };
    };
    const own = defineTool({ name: 'FromPlugin', description: 'd', parameters, execute: async () => 'plugged' });
    const plugin = definePlugin({ name: 'p1', hooks: { PreToolUse: [note('p1')] }, tools: [own] });
    const { session, result } = await run(
      {
        hooks: { PreToolUse: [note('options')] },
        plugins: [plugin, { name: 'p2', hooks: { PreToolUse: [note('p2')] } }],
      },
      [{ toolCalls: [{ name: 'FromPlugin' }] }, 'done'],
    );
    assert.equal(result.output, 'plugged');
    assert.deepEqual(order, ['options', 'p1', 'p2']);
    await session.close();
  });

  test('createAgent takes hooks through advanced', async () => {
    const seen = [];
    const agent = await createAgent({
      model: 'm',
      provider: scriptedProvider(['hello']),
      advanced: {
        hooks: {
          TaskCompleted: [async ({ resultSummary }) => ({ action: seen.push(resultSummary) ? 'continue' : 'abort' })],
        },
      },
    });
    assert.equal(await (await agent.send('hi')).text(), 'hello');
    assert.deepEqual(seen, ['hello']);
    await agent.close();
  });

  test('a forked Session has the same hooks and its own start', async () => {
    let starts = 0;
    const hooks = { SessionStart: [async () => ({ action: ++starts ? 'continue' : 'abort' })] };
    const session = await createSession({ provider: scriptedProvider(['a']), model: 'm', hooks });
    const child = await session.fork();
    assert.equal(starts, 2);
    await Promise.all([session.close(), child.close()]);
  });
});
