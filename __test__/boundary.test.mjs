// What crosses between the native core and callbacks written in JavaScript, and what must not get through.

import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { after, describe, test } from 'node:test';
import { getErrorMessage, SdkError } from '@blade-ai/agent-sdk';
import {
  all,
  ask,
  calls,
  deferred,
  generatorTool,
  macrotask,
  ofType,
  open,
  textOf,
  tool,
  until,
} from './support/session.mjs';

const unhandled = [];
const listener = (reason) => unhandled.push(reason);
process.on('unhandledRejection', listener);
after(async () => {
  await macrotask();
  assert.deepEqual(unhandled, [], 'nothing in this file may leave a rejection behind');
  process.off('unhandledRejection', listener);
});

const hostile = {
  'an error whose message throws': () =>
    Object.defineProperty(new Error('x'), 'message', {
      get() {
        throw new Error('gotcha');
      },
    }),
  'an error whose every property throws': () =>
    new Proxy(new Error('x'), {
      get() {
        throw new Error('gotcha');
      },
    }),
  'a proxy that traps everything': () => {
    const trap = () => {
      throw new Error('gotcha');
    };
    return new Proxy({}, { get: trap, has: trap, getPrototypeOf: trap, ownKeys: trap, getOwnPropertyDescriptor: trap });
  },
  'a revoked proxy': () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    return proxy;
  },
  'an object with a throwing toString': () => ({
    toString() {
      throw new Error('gotcha');
    },
  }),
  'a message that is an object without prototype': () => ({ message: Object.create(null) }),
  'an object without prototype': () => Object.create(null),
  'a frozen error': () => Object.freeze(new Error('frozen')),
  'a string': () => 'plain text',
  'lone surrogates': () => new Error('half \ud83d of a pair \udc00'),
  'a symbol': () => Symbol('s'),
  'a function': () => () => {},
  'a BigInt': () => 10n,
  null: () => null,
  undefined: () => undefined,
};

describe('a callback that throws', () => {
  for (const [name, make] of Object.entries(hostile)) {
    for (const [how, execute] of [
      [
        'throws',
        () => {
          throw make();
        },
      ],
      ['rejects with', () => Promise.reject(make())],
    ]) {
      test(`a tool that ${how} ${name} gives an error result, and the next request works`, async (t) => {
        const { session } = await open(t, [calls('Bad'), 'noticed', 'fine'], { tools: [tool('Bad', execute)] });
        const events = await ask(session);
        const [result] = ofType(events, 'tool_result');
        assert.equal(result.isError, true);
        assert.match(result.output, /^Tool execution failed: ./);
        assert.equal(textOf(events), 'noticed');
        assert.equal(textOf(await ask(session)), 'fine');
      });
    }

    test(`a permission handler that throws ${name} denies`, async (t) => {
      let ran = false;
      const { session } = await open(t, [calls('Never'), 'done'], {
        tools: [
          tool('Never', async () => {
            ran = true;
            return 'ran';
          }),
        ],
        permissionHandler: () => {
          throw make();
        },
      });
      const [result] = ofType(await ask(session), 'tool_result');
      assert.equal(result.isError, true);
      assert.match(result.output, /permission handler failed/);
      assert.equal(ran, false);
    });

    test(`${name} can be described`, () => {
      const value = make();
      assert.equal(typeof getErrorMessage(value), 'string');
      assert.equal(typeof JSON.stringify(new SdkError('outer', { cause: value })), 'string');
    });
  }

  test('name, message, stack and code of a thrown error are kept', () => {
    class Custom extends RangeError {
      name = 'Custom';
      code = 'E_CUSTOM';
    }
    const cause = new Custom('out of range');
    const { cause: kept } = new SdkError('outer', { cause }).toJSON();
    assert.deepEqual(kept, { name: 'Custom', message: 'out of range', stack: cause.stack, code: 'E_CUSTOM' });
  });

  test('the message of a thrown error reaches the model, and siblings are not disturbed', async (t) => {
    const tools = [
      tool('Throws', () => {
        throw new TypeError('boom: 世界 🙂');
      }),
      tool('Works', async () => 'ok'),
    ];
    const { session, provider } = await open(t, [calls('Throws', 'Works', 'Throws', 'Works'), 'done'], { tools });
    await ask(session);
    const results = provider.requests[1].messages.slice(-4).map(({ content }) => content);
    const failed = 'Tool execution failed: boom: 世界 🙂';
    assert.deepEqual(results, [failed, 'ok', failed, 'ok']);
  });
});

const statefulToJson = () => {
  let times = 0;
  return { toJSON: () => (times++ === 0 ? 'first' : undefined) };
};
const cycle = () => {
  const value = { inner: {} };
  value.inner.outer = value;
  return value;
};
const nested = (depth) => {
  let value = 'core';
  for (let i = 0; i < depth; i++) value = [value];
  return value;
};

describe('what a tool may return', () => {
  const good = {
    'a string': ['text', 'text'],
    'an empty string': ['', 'Execution completed'],
    null: [null, 'Execution completed'],
    'a number beyond 2^53': [2 ** 53 + 2, 2 ** 53 + 2],
    'negative zero': [-0, 0],
    'a date': [new Date(0), '1970-01-01T00:00:00.000Z'],
    'an object with toJSON': [{ toJSON: () => ({ a: 1 }) }, { a: 1 }],
    'undefined properties': [{ a: 1, b: undefined }, { a: 1 }],
    'a key named __proto__': [JSON.parse('{"__proto__":{"a":1},"b":2}'), JSON.parse('{"__proto__":{"a":1},"b":2}')],
    'line separators and quotes': ['\u2028\u2029"\\\u0000', '\u2028\u2029"\\\u0000'],
    'nesting of 500': [nested(500), nested(500)],
    'text with lone surrogates': ['a\ud83d', 'a\ufffd'],
    'JSON with lone surrogates': [
      { a: '\udc00\ud83d', b: '\\ud83d', '\ud83d': 1 },
      { a: '\ufffd\ufffd', b: '\\ud83d', '\ufffd': 1 },
    ],
  };
  for (const [name, [value, expected]] of Object.entries(good)) {
    test(`${name} arrives as JSON has it`, async (t) => {
      const { session } = await open(t, [calls('Give'), 'done'], { tools: [tool('Give', async () => value)] });
      const [result] = ofType(await ask(session), 'tool_result');
      assert.equal(result.isError, false, String(result.output).slice(0, 300));
      assert.deepEqual(result.output, expected);
    });
  }

  const bad = {
    undefined: () => undefined,
    'a function': () => () => {},
    'a symbol': () => Symbol('s'),
    'a BigInt': () => 1n,
    'a BigInt inside': () => ({ a: [1n] }),
    'a cycle': cycle,
    NaN: () => Number.NaN,
    'Infinity inside': () => [Number.POSITIVE_INFINITY],
    'a Map': () => new Map([[1, 2]]),
    'binary data': () => new Uint8Array(8),
    'an error': () => new Error('returned, not thrown'),
    'a hole in a list': () => Array(2),
    'nesting of 100,000': () => nested(100_000),
    'a toJSON that throws': () => ({
      toJSON() {
        throw new Error('no JSON here');
      },
    }),
    'a toJSON that changes its mind': statefulToJson,
    'a getter that throws': () => ({
      get a() {
        throw new Error('no');
      },
    }),
    'a revoked proxy': hostile['a revoked proxy'],
    'a thenable that throws': () => ({
      // biome-ignore lint/suspicious/noThenProperty: the point of the test
      then() {
        throw new Error('no then');
      },
    }),
    'a promise whose own then throws': () =>
      Object.assign(Promise.resolve(1), {
        // biome-ignore lint/suspicious/noThenProperty: the point of the test
        then() {
          throw new Error('no then');
        },
      }),
    'a thenable with a throwing getter': () => ({
      // biome-ignore lint/suspicious/noThenProperty: the point of the test
      get then() {
        throw new Error('no then');
      },
    }),
    '50 MB of text': () => 'x'.repeat(50_000_000),
    '50 MB of objects': () => Array.from({ length: 50 }, () => ({ text: 'y'.repeat(1_000_000) })),
  };
  for (const [name, make] of Object.entries(bad)) {
    test(`${name} gives an error result, and the Session stays usable`, async (t) => {
      const { session } = await open(t, [calls('Give'), 'done', 'again'], { tools: [tool('Give', () => make())] });
      const events = await ask(session);
      const [result] = ofType(events, 'tool_result');
      assert.equal(result.isError, true);
      assert.ok(JSON.stringify(result.output).length < 2_000, 'the error itself is short');
      assert.equal(textOf(events), 'done');
      assert.equal(textOf(await ask(session)), 'again');
    });
  }

  test('thenables are awaited, and only their first answer counts', async (t) => {
    const thenable = {
      // biome-ignore lint/suspicious/noThenProperty: the point of the test
      then(resolve, reject) {
        resolve('first');
        resolve('second');
        reject(new Error('third'));
        throw new Error('fourth');
      },
    };
    const { session } = await open(t, [calls('Give'), 'done'], { tools: [tool('Give', () => thenable)] });
    const [result] = ofType(await ask(session), 'tool_result');
    assert.deepEqual([result.output, result.isError], ['first', false]);
  });
});

describe('answers of handlers', () => {
  const wrong = [
    undefined,
    null,
    42,
    'allow',
    true,
    [],
    {},
    { behavior: 'perhaps' },
    { behavior: 1 },
    { behavior: 'allow', updatedInput: 'text' },
    () => {},
    Symbol('s'),
  ];
  for (const [index, answer] of wrong.entries()) {
    test(`permission answer ${index} (${typeof answer}) is no permission`, async (t) => {
      let ran = false;
      const execute = async () => {
        ran = true;
        return null;
      };
      const { session } = await open(t, [calls('Never'), 'done'], {
        tools: [tool('Never', execute)],
        permissionHandler: async () => answer,
      });
      const [result] = ofType(await ask(session), 'tool_result');
      assert.equal(result.isError, true);
      assert.match(result.output, /permission handler/);
      assert.equal(ran, false);
    });
  }

  const unconfirmed = [undefined, null, 'yes', true, {}, { approved: 'yes' }, { approved: 1 }, { approved: null }];
  for (const [index, answer] of unconfirmed.entries()) {
    test(`confirmation answer ${index} (${typeof answer}) is no approval`, async (t) => {
      let ran = false;
      const execute = async () => {
        ran = true;
        return null;
      };
      const { session } = await open(t, [calls('Never'), 'done'], {
        permissionMode: 'default',
        tools: [tool('Never', execute)],
        confirmationHandler: { requestConfirmation: async () => answer },
      });
      const [result] = ofType(await ask(session), 'tool_result');
      assert.equal(result.isError, true);
      assert.equal(ran, false);
    });
  }

  for (const handler of [{}, { requestConfirmation: 1 }, null, 5, () => {}]) {
    test(`a confirmation handler that is ${typeof handler} ${JSON.stringify(handler)} is refused, or approves nothing`, async (t) => {
      await assert.rejects(open(t, [], { confirmationHandler: handler }), { code: 'CONFIG_ERROR' });
      const { session } = await open(t, [calls('Never'), 'done'], {
        permissionMode: 'default',
        tools: [tool('Never', async () => 'ran')],
        confirmationHandlerFactory: () => handler,
      });
      const [result] = ofType(await ask(session), 'tool_result');
      assert.equal(result.isError, true);
    });
  }
});

describe('the context of a tool', () => {
  test('it is frozen, its signal is genuine and always the same, its snapshot too', async (t) => {
    let seen;
    const { session } = await open(t, [calls('Look'), 'done'], {
      defaultContext: { environment: { A: '1' } },
      tools: [
        tool('Look', async (_, context) => {
          seen = {
            frozen: Object.isFrozen(context) && Object.isFrozen(context.contextSnapshot),
            genuine: context.signal instanceof AbortSignal,
            same:
              new Set([context.signal, context.signal, context.contextSnapshot, context.contextSnapshot]).size === 2,
            aborted: context.signal.aborted,
            session: context.sessionId,
          };
          assert.throws(() => {
            context.signal = null;
          }, TypeError);
          assert.throws(() => {
            context.extra = 1;
          }, TypeError);
          return null;
        }),
      ],
    });
    const [result] = ofType(await ask(session), 'tool_result');
    assert.equal(result.isError, false, result.output);
    assert.deepEqual(seen, { frozen: true, genuine: true, same: true, aborted: false, session: session.sessionId });
  });

  test('a signal that is looked at before or after the abort says so, with an AbortError as reason', async (t) => {
    const started = deferred();
    const ended = deferred();
    const { session } = await open(t, [calls('Early', 'Late'), 'never'], {
      tools: [
        tool('Early', async (_, { signal }) => {
          await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
          return ended.resolve(signal.reason);
        }),
        tool('Late', async (_, context) => {
          started.resolve();
          await ended.promise;
          assert.equal(context.signal.aborted, true);
          assert.equal(context.signal.reason.name, 'AbortError');
          return null;
        }),
      ],
    });
    await session.send('go');
    const events = all(session.stream());
    await started.promise;
    await session.abort();
    const reason = await ended.promise;
    assert.equal(reason.name, 'AbortError');
    assert.match(reason.message, /abort/);
    await events;
  });
});

describe('late answers', () => {
  test('a tool that settles after the abort, twice, or by rejecting, disturbs nothing', async (t) => {
    for (let round = 0; round < 40; round++) {
      const started = deferred();
      let settle;
      const { session } = await open(t, [calls('Slow'), 'second'], {
        tools: [
          tool('Slow', (_, { signal }) => {
            const answer = deferred();
            settle = answer;
            signal.addEventListener('abort', () => {
              if (round % 2 === 0) answer.resolve('late');
              else answer.reject(new Error('late'));
              answer.resolve('later');
            });
            started.resolve();
            return answer.promise;
          }),
        ],
      });
      await session.send('go');
      const events = all(session.stream());
      await started.promise;
      await session.abort();
      settle.resolve('latest');
      const last = (await events).at(-1);
      assert.notEqual(last.type, 'error');
      assert.equal(textOf(await ask(session)), 'second');
      await session.close();
    }
  });

  test('a hanging tool is cut off by the tool timeout with its signal aborted', async (t) => {
    let reason;
    const { session } = await open(t, [calls('Hang'), 'went on'], {
      toolTimeoutMs: 20,
      tools: [
        tool('Hang', (_, { signal }) => {
          return new Promise((resolve) => {
            signal.addEventListener('abort', () => {
              reason = signal.reason;
              resolve('too late');
            });
          });
        }),
      ],
    });
    const events = await ask(session);
    const [result] = ofType(events, 'tool_result');
    assert.deepEqual([result.isError, result.output], [true, 'Tool execution timeout after 20ms']);
    assert.match(reason.message, /deadline/);
    assert.equal(textOf(events), 'went on');
  });

  test('a permission handler that answers after the abort grants nothing', async (t) => {
    const asked = deferred();
    const answer = deferred();
    let ran = 0;
    const { session } = await open(t, [calls('Never'), 'second'], {
      tools: [tool('Never', async () => ran++)],
      permissionHandler: ({ signal }) => {
        assert.ok(signal instanceof AbortSignal);
        asked.resolve(signal);
        return answer.promise;
      },
    });
    await session.send('go');
    const events = all(session.stream());
    const signal = await asked.promise;
    const aborted = session.abort();
    await events;
    await until(() => signal.aborted);
    answer.resolve({ behavior: 'allow' });
    await aborted;
    assert.equal(textOf(await ask(session)), 'second');
    assert.equal(ran, 0);
  });
});

describe('generator tools', () => {
  const run = async (t, execute, options = {}) => {
    const { session, provider } = await open(t, [calls('Gen'), 'done'], {
      tools: [generatorTool('Gen', execute)],
      ...options,
    });
    return { session, provider, events: await ask(session) };
  };

  test('yields arrive in order before the result', async (t) => {
    const { events } = await run(t, async function* () {
      for (let n = 0; n < 50; n++) yield { kind: 'progress', message: `step ${n}`, data: { n } };
      yield { kind: 'message', content: { summary: 'nearly' } };
      return { status: 'success', model: 'end', data: { fine: true } };
    });
    const progress = ofType(events, 'tool_progress').map(({ progress }) => progress.data.n);
    assert.deepEqual(progress, [...Array(50).keys()]);
    assert.deepEqual(ofType(events, 'tool_message')[0].content, { summary: 'nearly' });
    assert.deepEqual(ofType(events, 'tool_result')[0].output, 'end');
  });

  const garbage = {
    undefined: undefined,
    null: null,
    'a number': 5,
    'a string': 'progress',
    'an unknown kind': { kind: 'what' },
    'no kind': {},
    'a function': { kind: 'progress', message: () => {} },
    'a BigInt': { kind: 'progress', data: 1n },
    'a cycle': { kind: 'message', content: cycle() },
    'a wrong effect': { kind: 'effect', effect: { type: 'explode' } },
  };
  for (const [name, item] of Object.entries(garbage)) {
    test(`a yield of ${name} fails the call, and the generator is closed`, async (t) => {
      let closed = false;
      const { events } = await run(t, async function* () {
        try {
          yield item;
          return { status: 'success', model: 'must not get here' };
        } finally {
          closed = true;
        }
      });
      const [result] = ofType(events, 'tool_result');
      assert.equal(result.isError, true);
      assert.equal(closed, true);
      assert.equal(textOf(events), 'done');
    });
  }

  for (const [name, value] of Object.entries({
    undefined: undefined,
    null: null,
    'no status': { model: 'x' },
    'an unknown status': { status: 'maybe', model: 'x' },
    'an error without facts': { status: 'error', model: 'x' },
    'a cycle': { status: 'success', model: cycle() },
  })) {
    test(`a generator that returns ${name} fails the call`, async (t) => {
      // biome-ignore lint/correctness/useYield: a generator that yields nothing is one
      const { events } = await run(t, async function* () {
        return value;
      });
      assert.equal(ofType(events, 'tool_result')[0].isError, true);
      assert.equal(textOf(events), 'done');
    });
  }

  for (const [name, execute] of Object.entries({
    'throws at once': () => {
      throw new Error('no generator');
    },
    'is no generator': () => 5,
    'is a promise': async () => ({ status: 'success', model: 'x' }),
    'has a next that throws': () => ({
      next() {
        throw new Error('next');
      },
    }),
    'has a next that gives no object': () => ({ next: async () => undefined }),
    'has a return that throws': () => ({
      next: async () => ({ done: false, value: 'garbage' }),
      return() {
        throw new Error('return');
      },
    }),
    async *'throws after a yield'() {
      yield { kind: 'progress', message: 'going' };
      throw new Error('then it broke');
    },
  })) {
    test(`an execution that ${name} gives an error result`, async (t) => {
      const { events } = await run(t, execute);
      assert.equal(ofType(events, 'tool_result')[0].isError, true);
      assert.equal(textOf(events), 'done');
    });
  }

  test('one that never ends and never looks at its signal is left at its next yield after the abort', async (t) => {
    let closed = 0;
    let yields = 0;
    const { session } = await open(t, [calls('Endless'), 'second'], {
      tools: [
        generatorTool('Endless', async function* () {
          try {
            for (;;) yield { kind: 'progress', message: String(yields++) };
          } finally {
            closed++;
          }
        }),
      ],
    });
    await session.send('go');
    for await (const event of session.stream()) if (event.type === 'tool_progress') break;
    assert.equal(closed, 1);
    const after = yields;
    assert.equal(textOf(await ask(session)), 'second');
    assert.equal(yields, after);
    await session.close();
  });

  test('several that wait for a slow consumer all end when it leaves', async (t) => {
    const big = 'x'.repeat(80_000);
    let closed = 0;
    const chatty = async function* () {
      try {
        for (;;) yield { kind: 'message', content: { summary: big } };
      } finally {
        closed++;
      }
    };
    const names = ['A', 'B', 'C', 'D'];
    const { session } = await open(t, [calls(...names), 'second'], {
      tools: names.map((name) => generatorTool(name, chatty, { kind: 'readonly' })),
    });
    await session.send('go');
    for await (const event of session.stream()) if (event.type === 'tool_message') break;
    assert.equal(closed, 4);
    assert.equal(textOf(await ask(session)), 'second');
  });
});

describe("the caller's AbortSignal", () => {
  test('one that has fired already ends the stream before the model is asked', async (t) => {
    const { session, provider } = await open(t, ['never', 'next']);
    assert.deepEqual(await ask(session, 'go', { signal: AbortSignal.abort() }), []);
    assert.equal(provider.requests.length, 0);
    assert.equal(textOf(await ask(session)), 'never');
  });

  test('one that fires between send and stream does the same', async (t) => {
    const { session, provider } = await open(t, ['first']);
    const controller = new AbortController();
    await session.send('go', { signal: controller.signal });
    controller.abort();
    assert.deepEqual(await all(session.stream()), []);
    assert.equal(provider.requests.length, 0);
    assert.equal(getEventListeners(controller.signal, 'abort').length, 0);
    assert.equal(textOf(await ask(session)), 'first');
  });

  test('one that fires during the stream ends it without an error, and the tool is told', async (t) => {
    const controller = new AbortController();
    let told;
    const { session } = await open(t, [calls('Wait'), 'second'], {
      tools: [
        tool('Wait', (_, { signal }) => {
          queueMicrotask(() => controller.abort());
          return new Promise((resolve) => {
            signal.addEventListener('abort', () => {
              told = true;
              resolve(null);
            });
          });
        }),
      ],
    });
    const events = await ask(session, 'go', { signal: controller.signal });
    assert.deepEqual([ofType(events, 'error'), ofType(events, 'result')], [[], []]);
    assert.equal(told, true);
    assert.equal(textOf(await ask(session)), 'second');
  });

  test('leaving after the signal fired still waits for the cleanup', async (t) => {
    const controller = new AbortController();
    const started = deferred();
    let clean = false;
    const { session } = await open(t, [calls('Wait'), 'second'], {
      tools: [
        tool('Wait', async (_, { signal }) => {
          started.resolve();
          await new Promise((resolve) => signal.addEventListener('abort', resolve));
          for (let i = 0; i < 20; i++) await macrotask();
          clean = true;
          return null;
        }),
      ],
    });
    await session.send('go', { signal: controller.signal });
    for await (const event of session.stream()) {
      if (event.type !== 'tool_use') continue;
      await started.promise;
      controller.abort();
      break;
    }
    assert.equal(clean, true);
    assert.equal(textOf(await ask(session)), 'second');
  });

  test('one that fires after the end, or after its request was dropped, touches no other request', async (t) => {
    const controller = new AbortController();
    const { signal } = controller;
    const { session } = await open(t, ['one', 'two', 'three']);
    assert.equal(textOf(await ask(session, 'go', { signal })), 'one');
    await session.send('dropped', { signal });
    await session.abort();
    controller.abort();
    assert.equal(textOf(await ask(session)), 'two');
    assert.equal(textOf(await ask(session)), 'three');
    assert.equal(getEventListeners(signal, 'abort').length, 0);
  });

  test('a shared one gathers no listeners over a thousand requests, however they end', async (t) => {
    const { signal } = new AbortController();
    const { session } = await open(t, () => ({ text: ['a', 'b'] }));
    const listeners = () => getEventListeners(signal, 'abort').length;
    for (let n = 0; n < 1_000; n++) {
      await session.send('go', { signal });
      const stream = session.stream();
      if (n % 4 === 0) await session.abort();
      else if (n % 4 === 1) for await (const event of stream) if (event.type === 'content') break;
      if (n % 4 === 2) {
        // Read up to the result by hand and never asked for more.
        for (let step = await stream.next(); step.value.type !== 'result'; ) step = await stream.next();
        await session.abort();
      }
      if (n % 4 === 3) await all(stream);
      assert.ok(listeners() <= 1, `${listeners()} listeners after request ${n}`);
    }
    await session.close();
    assert.equal(listeners(), 0);
  });

  test('two thousand tool calls under one signal leave no listener on it', async (t) => {
    const { signal } = new AbortController();
    const warnings = [];
    const warned = (warning) => warnings.push(warning.name);
    process.on('warning', warned);
    t.after(() => process.off('warning', warned));
    const turns = [...Array.from({ length: 20 }, () => calls(...Array(100).fill('Look'))), 'done'];
    const { session } = await open(t, turns, {
      tools: [tool('Look', async (_, context) => context.signal.aborted, { kind: 'readonly' })],
    });
    const events = await ask(session, 'go', { signal });
    assert.equal(ofType(events, 'tool_result').length, 2_000);
    assert.equal(getEventListeners(signal, 'abort').length, 0);
    await macrotask();
    assert.deepEqual(warnings, []);
  });

  for (const signal of [null, {}, { aborted: false, addEventListener() {} }, 5]) {
    test(`${JSON.stringify(signal)} is refused as a signal`, async (t) => {
      const { session } = await open(t, ['x']);
      await assert.rejects(session.send('go', { signal }), { code: 'CONFIG_ERROR' });
      assert.equal(textOf(await ask(session)), 'x');
    });
  }
});
