// Middleware around tool calls: order, what it may change, and what it may not.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { definePlugin } from '@blade-ai/agent-sdk';
import { calls, generator, open, tool, turn } from './support/pipeline.mjs';
import { ask, gate, only, results } from './support/run.mjs';

const echo = (name = 'Echo', more = {}) => tool(name, async (params) => ({ got: params }), more);

/** Runs one call of Echo inside of these layers and gives its result. */
async function around(t, tool_, options = {}) {
  const { results: list, ...rest } = await turn(t, [{ name: 'Echo', input: { a: 1 } }], {
    tools: [echo()],
    middleware: { tool: tool_ },
    ...options,
  });
  return { result: list[0], ...rest };
}

describe('the onion', () => {
  test('options are outside of plugins, plugins in their order, and the first layer is the outermost', async (t) => {
    const order = [];
    const layer = (name) =>
      async function* (request, next) {
        order.push(`> ${name}`);
        const result = yield* next(request);
        order.push(`< ${name}`);
        return result;
      };
    const plugin = (name) => definePlugin({ name, middleware: { tool: [layer(name)] } });
    const { result } = await around(t, [layer('first'), layer('second')], { plugins: [plugin('p1'), plugin('p2')] });
    assert.deepEqual(order, ['> first', '> second', '> p1', '> p2', '< p2', '< p1', '< second', '< first']);
    assert.deepEqual(result.output, { got: { a: 1 } });
  });

  test('a layer is told the name that was called, the input and the context of the call', async (t) => {
    let seen;
    const { session } = await around(t, [
      (request, next) => {
        seen = request;
        return next();
      },
    ]);
    assert.equal(seen.toolName, 'Echo');
    assert.deepEqual(seen.input, { a: 1 });
    assert.equal(seen.context.sessionId, session.sessionId);
    assert.equal(seen.context.permissionMode, 'default');
    assert.ok(seen.context.signal instanceof AbortSignal);
    assert.equal('runtime' in seen.context, false);
    assert.ok(Object.isFrozen(seen) && Object.isFrozen(seen.input) && Object.isFrozen(seen.context));
  });

  test('a changed input is validated like any other, and is what the tool and its hooks see', async (t) => {
    const hooked = [];
    const options = {
      hooks: { PreToolUse: [async ({ toolInput }) => void hooked.push(toolInput) ?? { action: 'continue' }] },
    };
    const change = (input) => (request, next) => next({ ...request, input });
    const good = await around(t, [change({ a: 2 })], options);
    assert.deepEqual(good.result.output, { got: { a: 2 } });
    assert.deepEqual(hooked, [{ a: 2 }]);
    const strict = tool('Echo', async () => 'ran', {
      parameters: { type: 'object', properties: { a: { type: 'integer' } }, additionalProperties: false },
    });
    const bad = await around(t, [change({ a: 'x' })], { tools: [strict] });
    assert.equal(bad.result.isError, true);
    assert.match(bad.result.output, /a.*integer/s);
  });

  test('yields of the tool and of the layers are published in order, and a layer may change or drop them', async (t) => {
    const chatty = generator('Echo', async function* () {
      for (const summary of ['one', 'two', 'three']) yield { kind: 'message', content: { summary } };
      return { status: 'success', model: 'done' };
    });
    async function* layer(request, next) {
      yield { kind: 'message', content: { summary: 'before' } };
      const inner = next(request);
      for (;;) {
        const { done, value } = await inner.next();
        if (done) return { ...value, model: `${value.model}!` };
        if (value.content.summary !== 'two') yield value;
      }
    }
    const { events, result } = await around(t, [layer], { tools: [chatty] });
    const said = only(events, 'tool_message').map((event) => event.content.summary);
    assert.deepEqual(said, ['before', 'one', 'three']);
    assert.equal(result.output, 'done!');
  });
});

test('a result that a layer changed is still of the same run', async (t) => {
  const runs = [];
  const layer = async function* (request, next) {
    const result = yield* next(request);
    runs.push(result.metadata.executionId);
    return { status: 'success', model: 'changed', metadata: { executionId: 'made up' } };
  };
  const onToolSettled = async ({ result }) => void runs.push(result.metadata.executionId);
  await around(t, [layer], { toolLifecycle: { onToolSettled } });
  assert.equal(runs.length, 2);
  assert.match(runs[0], /^exec_/);
  assert.equal(runs[1], runs[0]);
});

describe('answers in the tool’s place', () => {
  test('a layer that never calls next answers for the tool, which does not run', async (t) => {
    let ran = false;
    const tools = [tool('Echo', async () => (ran = true))];
    const answer = (result) =>
      // biome-ignore lint/correctness/useYield: an answer without updates
      async function* () {
        return result;
      };
    const cached = await around(t, [answer({ status: 'success', model: 'cached', data: { hit: true } })], { tools });
    assert.equal(cached.result.output, 'cached');
    const refused = await around(
      t,
      [answer({ status: 'error', model: 'not today', error: { type: 'permission_denied', message: 'not today' } })],
      { tools },
    );
    assert.equal(refused.result.isError, true);
    assert.equal(ran, false);
  });

  test('the model reads what the outermost layer returns; an error of the tool cannot become a success', async (t) => {
    const rewrite = async function* (request, next) {
      yield* next(request);
      return { status: 'success', model: 'rewritten' };
    };
    const good = await around(t, [rewrite]);
    assert.equal(good.result.output, 'rewritten');
    const failing = tool('Echo', async () => {
      throw new Error('broken');
    });
    const bad = await around(t, [rewrite], { tools: [failing] });
    assert.equal(bad.result.isError, true);
    assert.match(bad.result.output, /broken/);
  });

  test('a layer that leaves early does not stop the call: it runs to its end and its result counts', async (t) => {
    const held = gate();
    const slow = generator('Echo', async function* () {
      yield { kind: 'message', content: { summary: 'begun' } };
      await held.opened;
      yield { kind: 'message', content: { summary: 'ended' } };
      return { status: 'success', model: 'whole' };
    });
    // biome-ignore lint/correctness/useYield: it leaves before it says anything
    async function* leaves(request, next) {
      const inner = next(request);
      await inner.next();
      setImmediate(held.open);
      return { status: 'success', model: 'left' };
    }
    const { events, result } = await around(t, [leaves], { tools: [slow] });
    assert.equal(result.output, 'whole');
    assert.deepEqual(
      only(events, 'tool_message').map((event) => event.content.summary),
      ['ended'],
    );
  });
});

describe('what breaks', () => {
  const rules = {
    'another tool': [(request, next) => next({ ...request, toolName: 'Other' }), /toolName/],
    'another context': [(request, next) => next({ ...request, context: { ...request.context } }), /context/],
    'an input that is no object': [(request, next) => next({ ...request, input: [1] }), /JSON object/],
    'an input that is no JSON': [(request, next) => next({ ...request, input: { a: 1n } }), /bigint/],
    'a thrown error': [
      () => {
        throw new Error('mine');
      },
      /mine/,
    ],
    'a mutated input': [
      (request, next) => {
        request.input.a = 2;
        return next(request);
      },
      /read only|Cannot assign/,
    ],
    'no generator': [() => 'text', /async generator/],
    'no result': [
      // biome-ignore lint/correctness/useYield: it breaks the protocol on purpose
      async function* () {
        return 'text';
      },
      /ToolResult/,
    ],
    'next twice': [
      async function* (request, next) {
        yield* next(request);
        return yield* next(request);
      },
      /multiple times/,
    ],
  };
  for (const [name, [layer, expected]] of Object.entries(rules)) {
    test(`${name} is an error result that says so, and the Session goes on`, async (t) => {
      const { session } = await open(t, [calls({ name: 'Echo', input: { a: 1 } }), 'done', 'again'], {
        tools: [echo(), echo('Other')],
        middleware: { tool: [layer] },
      });
      const [result] = results(await ask(session));
      assert.equal(result.isError, true);
      assert.match(result.output, /^Tool middleware failed: /);
      assert.match(result.output, expected);
      assert.equal(only(await ask(session), 'result')[0].content, 'again');
    });
  }

  test('arguments that are no JSON object never reach middleware', async (t) => {
    let called = 0;
    const { session } = await open(t, [{ toolCalls: [{ name: 'Echo', input: '{' }] }, 'done'], {
      tools: [echo()],
      middleware: {
        tool: [
          (request, next) => {
            called += 1;
            return next(request);
          },
        ],
      },
    });
    const [result] = results(await ask(session));
    assert.equal(result.isError, true);
    assert.equal(called, 0);
  });

  test('an abort reaches a layer by its signal; one that ignores it keeps the Session from closing until it settles', async (t) => {
    const stuck = gate();
    const entered = gate();
    let signal;
    const { session } = await open(t, [calls('Echo'), 'done'], {
      tools: [echo()],
      middleware: {
        tool: [
          async function* (request, next) {
            signal = request.context.signal;
            entered.open();
            await stuck.opened;
            return yield* next(request);
          },
        ],
      },
    });
    const asked = ask(session);
    await entered.opened;
    const aborted = session.abort();
    while (!signal.aborted) await new Promise(setImmediate);
    stuck.open();
    await aborted;
    await asked;
    await session.close();
    assert.equal(session.isClosed, true);
  });

  test('64 parallel calls through two layers keep their order and their inputs', async (t) => {
    const layer = async function* (request, next) {
      const result = yield* next(request);
      return { ...result, model: { ...result.model, n: request.input.n } };
    };
    const list = Array.from({ length: 64 }, (_, n) => ({ name: 'Echo', input: { n } }));
    const { results: got } = await turn(t, list, { tools: [echo()], middleware: { tool: [layer, layer] } });
    assert.deepEqual(
      got.map(({ output }) => output),
      list.map(({ input }) => ({ got: input, n: input.n })),
    );
  });
});

describe('the model’s own numbers', () => {
  const bounded = tool('Echo', async (params) => params, {
    parameters: { type: 'object', properties: { n: { type: 'integer', maximum: 5 } } },
  });
  const layers = {
    'no layer': undefined,
    'next(request)': (request, next) => next(request),
    'next()': (_, next) => next(),
    'a copy of the request': (request, next) => next({ ...request }),
  };
  for (const [name, layer] of Object.entries(layers)) {
    test(`${name} leaves them as they are, also those that JavaScript cannot hold`, async (t) => {
      const { results: list } = await turn(t, [{ name: 'Echo', input: '{"n":9007199254740993}' }], {
        tools: [bounded],
        middleware: { tool: layer === undefined ? [] : [layer, layer] },
      });
      assert.match(list[0].output, /9007199254740993/);
    });
  }
});

describe('leaving early', () => {
  const said = ['0', '1', '2'];
  const chatty = generator('Echo', async function* () {
    for (const summary of said) yield { kind: 'message', content: { summary } };
    return { status: 'success', model: 'whole' };
  });
  const left = { status: 'success', model: 'left' };
  const turns = async (n) => {
    for (let at = 0; at < n; at++) await new Promise(setImmediate);
  };
  // How far the core ran ahead of a layer is no reason for another result.
  const ways = {
    'after a yield': async (inner) => void (await inner.next()),
    'long after a yield': async (inner) => {
      await inner.next();
      await turns(2_000);
    },
    'while a step is under way': async (inner) => void inner.next(),
    'long after a step was asked for': async (inner) => {
      inner.next();
      await turns(2_000);
    },
    'with several steps under way': async (inner) => {
      await Promise.race([inner.next(), inner.next(), inner.next()]);
    },
  };
  for (const [name, way] of Object.entries(ways)) {
    for (const depth of [1, 3]) {
      test(`${name}, ${depth} deep: the call runs to its end and its result counts`, async (t) => {
        // biome-ignore lint/correctness/useYield: it leaves before it says anything
        const layer = async function* (request, next) {
          await way(next(request));
          return left;
        };
        const { result } = await around(t, Array(depth).fill(layer), { tools: [chatty] });
        assert.equal(result.output, 'whole');
      });
    }
  }

  test('what the layer did not take is published in order', async (t) => {
    const layer = async function* (request, next) {
      const inner = next(request);
      yield (await inner.next()).value;
      await turns(500);
      return left;
    };
    const many = generator('Echo', async function* () {
      for (let n = 0; n < 300; n++) yield { kind: 'message', content: { summary: `${n}` } };
      return { status: 'success', model: 'whole' };
    });
    const { events } = await around(t, [layer], { tools: [many] });
    assert.deepEqual(
      only(events, 'tool_message').map(({ content }) => content.summary),
      Array.from({ length: 300 }, (_, n) => `${n}`),
    );
  });

  test('a core that is held and continued after its call is over says so', async (t) => {
    let inner;
    const layer = async function* (request, next) {
      inner = next(request);
      yield (await inner.next()).value;
      return left;
    };
    await around(t, [layer], { tools: [chatty] });
    await assert.rejects(inner.next(), { message: /the tool call is over/ });
  });
});
