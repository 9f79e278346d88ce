// `wrapModelService`: layers around a model service in JavaScript.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { wrapModelService } from '@blade-ai/agent-sdk';

const messages = [{ role: 'user', content: 'hi' }];
const tools = [{ name: 'T', description: 'd', parameters: { type: 'object' } }];

/** A service that notes what it is asked and whether its generators are closed. */
function serviceOf(more = {}) {
  const asked = [];
  const service = {
    closed: 0,
    asked,
    async chat(...args) {
      asked.push(['chat', ...args]);
      return { content: 'chat' };
    },
    async sideQuery(...args) {
      asked.push(['sideQuery', ...args]);
      return { content: 'side' };
    },
    async *streamChat(...args) {
      asked.push(['streamChat', ...args]);
      try {
        for (const content of ['a', 'b', 'c']) yield { content };
      } finally {
        service.closed++;
      }
    },
    config: { model: 'm' },
    getConfig() {
      return this.config;
    },
    updateConfig(change) {
      this.config = { ...this.config, ...change };
    },
    ...more,
  };
  return service;
}

const withRetries = (service) => ({
  async *chatWithRetryEvents(...args) {
    service?.asked.push(args);
    yield { type: 'retry', attempt: 1, maxRetries: 3, delayMs: 1, error: 'busy' };
    return { content: 'at last' };
  },
});

async function collect(generator) {
  const values = [];
  for (;;) {
    const step = await generator.next();
    if (step.done) return { values, result: step.value };
    values.push(step.value);
  }
}

const text = async (generator) => (await collect(generator)).values.map(({ content }) => content).join('');

describe('what layers are shown', () => {
  test('each operation has its request, frozen, in copies', async () => {
    const seen = [];
    const see = (request, next) => {
      seen.push(request);
      return next();
    };
    const spy = { wrapChat: see, wrapSideQuery: see, wrapStream: see, wrapChatWithRetryEvents: see };
    const service = serviceOf(withRetries());
    const wrapped = wrapModelService(service, [spy]);
    const { signal } = new AbortController();
    assert.deepEqual(await wrapped.chat(messages, tools, signal), { content: 'chat' });
    assert.deepEqual(await wrapped.sideQuery(messages, signal, { querySource: 'summary' }), { content: 'side' });
    assert.equal(await text(wrapped.streamChat(messages)), 'abc');
    assert.deepEqual((await collect(wrapped.chatWithRetryEvents(messages, tools))).result, { content: 'at last' });
    assert.deepEqual(seen, [
      { operation: 'chat', model: 'm', messages, tools, signal },
      { operation: 'sideQuery', model: 'm', messages, options: { querySource: 'summary' }, signal },
      { operation: 'streamChat', model: 'm', messages },
      { operation: 'chatWithRetryEvents', model: 'm', messages, tools },
    ]);
    for (const request of seen) {
      assert.ok(Object.isFrozen(request) && Object.isFrozen(request.messages) && Object.isFrozen(request.messages[0]));
      assert.notEqual(request.messages[0], messages[0]);
    }
    assert.ok(Object.isFrozen(seen[0].tools[0].parameters) && Object.isFrozen(seen[1].options));
    assert.equal(seen[0].signal, signal);
    assert.deepEqual(
      service.asked.map(([operation]) => operation),
      ['chat', 'sideQuery', 'streamChat'],
    );
    assert.deepEqual(service.asked[1], ['sideQuery', messages, signal, { querySource: 'summary' }]);
    assert.ok(!Object.isFrozen(messages[0]), 'what the caller holds stays the caller’s');
  });

  test('the first layer is outermost, and what one hands on is what the next one sees', async () => {
    const order = [];
    const layer = (name) => ({
      async wrapChat(request, next) {
        order.push(`${name} of ${request.messages.length}`);
        const added = { role: 'system', content: name };
        const response = await next({ ...request, messages: [...request.messages, added] });
        order.push(`${name} out`);
        return { content: `${name}(${response.content})` };
      },
    });
    const service = serviceOf();
    const wrapped = wrapModelService(service, [layer('a'), { wrapStream: (_, next) => next() }, layer('b')]);
    assert.deepEqual(await wrapped.chat(messages), { content: 'a(b(chat))' });
    assert.deepEqual(order, ['a of 1', 'b of 2', 'b out', 'a out']);
    assert.deepEqual(
      service.asked[0][1].map(({ content }) => content),
      ['hi', 'a', 'b'],
    );
  });

  test('a later change of what was handed on reaches nobody', async () => {
    const mine = { role: 'system', content: 'first' };
    const service = serviceOf();
    const wrapped = wrapModelService(service, [
      {
        wrapChat(request, next) {
          const answer = next({ ...request, messages: [mine] });
          mine.content = 'changed';
          return answer;
        },
      },
    ]);
    await wrapped.chat(messages);
    assert.equal(service.asked[0][1][0].content, 'first');
  });

  test('tools may be replaced and taken away, options changed', async () => {
    const service = serviceOf();
    const other = [{ name: 'U', description: 'u', parameters: {} }];
    const change = (more) => ({
      wrapChat: (request, next) => next({ ...request, ...more }),
      wrapSideQuery: (request, next) => next({ ...request, options: { temperature: 0 } }),
    });
    await wrapModelService(service, [change({ tools: other })]).chat(messages, tools);
    await wrapModelService(service, [change({ tools: undefined })]).chat(messages, tools);
    await wrapModelService(service, [change()]).sideQuery(messages);
    assert.deepEqual([service.asked[0][2], service.asked[1][2]], [other, undefined]);
    assert.deepEqual(service.asked[2].slice(3), [{ temperature: 0 }]);
  });

  test('settings are the service’s own, and the model is the one of the moment', async () => {
    const models = [];
    const wrapped = wrapModelService(serviceOf(), [
      {
        wrapChat(request, next) {
          models.push(request.model);
          return next();
        },
      },
    ]);
    await wrapped.chat(messages);
    wrapped.updateConfig({ model: 'other' });
    await wrapped.chat(messages);
    assert.deepEqual([models, wrapped.getConfig()], [['m', 'other'], { model: 'other' }]);
  });

  test('a service without retry events has none when it is wrapped', () => {
    const spy = { wrapChatWithRetryEvents: (_, next) => next() };
    assert.ok(!('chatWithRetryEvents' in wrapModelService(serviceOf(), [spy])));
    assert.equal(typeof wrapModelService(serviceOf(withRetries()), []).chatWithRetryEvents, 'function');
  });

  test('layers are methods of their middleware', async () => {
    class Counter {
      count = 0;
      async wrapChat(_, next) {
        this.count++;
        return await next();
      }
    }
    const counter = new Counter();
    await wrapModelService(serviceOf(), [counter]).chat(messages);
    assert.equal(counter.count, 1);
  });
});

describe('what layers may not do', () => {
  for (const [what, change] of [
    ['operation', { operation: 'streamChat' }],
    ['model', { model: 'cheap' }],
    ['signal', { signal: new AbortController().signal }],
  ]) {
    test(`change the ${what}`, async () => {
      const service = serviceOf();
      const wrapped = wrapModelService(service, [{ wrapChat: (request, next) => next({ ...request, ...change }) }]);
      await assert.rejects(wrapped.chat(messages), new RegExp(`cannot change ${what}`));
      assert.equal(service.asked.length, 0);
    });
  }

  for (const [what, change, says] of [
    ['no request', () => 'hi', /takes a model request/],
    ['a request without messages', (request) => ({ ...request, messages: undefined }), /messages.*must be an array/],
    [
      'what is no JSON',
      (request) => ({ ...request, messages: [{ role: 'user', content: () => {} }] }),
      /messages\[0\]/,
    ],
  ]) {
    test(`hand on ${what}`, async () => {
      const wrapped = wrapModelService(serviceOf(), [{ wrapChat: async (request, next) => next(change(request)) }]);
      await assert.rejects(wrapped.chat(messages), says);
    });
  }

  test('change what they are shown', async () => {
    const wrapped = wrapModelService(serviceOf(), [
      {
        async wrapChat(request, next) {
          request.messages[0].content = 'changed';
          return await next();
        },
      },
    ]);
    await assert.rejects(wrapped.chat(messages), TypeError);
  });

  test('call next twice', async () => {
    const service = serviceOf();
    const twice = {
      async wrapChat(_, next) {
        await next();
        return await next();
      },
      async *wrapStream(_, next) {
        yield* next();
        yield* next();
      },
    };
    const wrapped = wrapModelService(service, [twice]);
    await assert.rejects(wrapped.chat(messages), { message: 'next() called multiple times' });
    await assert.rejects(text(wrapped.streamChat(messages)), { message: 'next() called multiple times' });
    assert.equal(service.asked.length, 2);
    assert.deepEqual(await wrapped.sideQuery(messages), { content: 'side' }, 'the next call is a new run');
  });

  test('give a stream that is none', async () => {
    for (const answer of [undefined, 'text', Promise.resolve([]), { next() {} }]) {
      const wrapped = wrapModelService(serviceOf(), [{ wrapStream: () => answer }]);
      await assert.rejects(text(wrapped.streamChat(messages)), /wrapStream must return an async generator/);
    }
  });
});

describe('streams', () => {
  test('a layer changes chunks, and one that answers by itself asks nobody', async () => {
    const upper = {
      async *wrapStream(_, next) {
        for await (const { content } of next()) yield { content: content.toUpperCase() };
      },
    };
    const cache = {
      async *wrapStream() {
        yield { content: 'from memory' };
      },
    };
    const service = serviceOf();
    assert.equal(await text(wrapModelService(service, [upper]).streamChat(messages)), 'ABC');
    assert.equal(await text(wrapModelService(service, [upper, cache]).streamChat(messages)), 'FROM MEMORY');
    assert.equal(service.asked.length, 1);
  });

  for (const [how, wrapStream] of [
    [
      'returns',
      async function* wrapStream(_, next) {
        const inner = next();
        yield (await inner.next()).value;
      },
    ],
    [
      'breaks',
      async function* wrapStream(_, next) {
        for await (const chunk of next()) {
          yield chunk;
          break;
        }
      },
    ],
    [
      'throws',
      async function* wrapStream(_, next) {
        yield (await next().next()).value;
        throw new Error('enough');
      },
    ],
  ]) {
    test(`a layer that ${how} early closes the generator inside of it`, async () => {
      const service = serviceOf();
      const generator = wrapModelService(service, [{ wrapStream }]).streamChat(messages);
      if (how === 'throws') await assert.rejects(text(generator), { message: 'enough' });
      else assert.equal(await text(generator), 'a');
      assert.equal(service.closed, 1);
    });
  }

  test('a consumer that leaves closes every layer, in order', async () => {
    const order = [];
    const layer = (name) => ({
      async *wrapStream(_, next) {
        try {
          yield* next();
        } finally {
          order.push(name);
        }
      },
    });
    const service = serviceOf();
    for await (const _ of wrapModelService(service, [layer('outer'), layer('inner')]).streamChat(messages)) break;
    assert.deepEqual([order, service.closed], [['inner', 'outer'], 1]);
  });

  test('nothing is asked before the stream is read', async () => {
    const service = serviceOf();
    wrapModelService(service, [{ wrapStream: (_, next) => next() }]).streamChat(messages);
    assert.equal(service.asked.length, 0);
  });
});

describe('errors', () => {
  const failure = new Error('the model is gone');
  const broken = () =>
    serviceOf({
      async chat() {
        throw failure;
      },
      // biome-ignore lint/correctness/useYield: it fails before it yields
      async *streamChat() {
        throw failure;
      },
    });
  const pass = {
    async wrapChat(_, next) {
      return await next();
    },
    async *wrapStream(_, next) {
      yield* next();
    },
  };

  test('keep their identity through all layers', async () => {
    const wrapped = wrapModelService(broken(), [pass, pass]);
    await assert.rejects(wrapped.chat(messages), (thrown) => thrown === failure);
    await assert.rejects(text(wrapped.streamChat(messages)), (thrown) => thrown === failure);
  });

  test('can be answered by a layer', async () => {
    const fallback = {
      wrapChat: (_, next) => next().catch(() => ({ content: 'sorry' })),
      async *wrapStream(_, next) {
        try {
          yield* next();
        } catch {
          yield { content: 'sorry' };
        }
      },
    };
    const wrapped = wrapModelService(broken(), [fallback, pass]);
    assert.deepEqual(await wrapped.chat(messages), { content: 'sorry' });
    assert.equal(await text(wrapped.streamChat(messages)), 'sorry');
  });

  test('of the clean-up do not replace the one before them', async () => {
    const service = serviceOf({
      async *streamChat() {
        try {
          yield { content: 'a' };
        } finally {
          // biome-ignore lint/correctness/noUnsafeFinally: a broken service is what this is about
          throw new Error('cannot close');
        }
      },
    });
    // biome-ignore lint/correctness/useYield: it fails before it yields
    const wrapStream = async function* (_, next) {
      await next().next();
      throw failure;
    };
    await assert.rejects(
      text(wrapModelService(service, [{ wrapStream }]).streamChat(messages)),
      (thrown) => thrown === failure,
    );
  });
});

describe('what is no service or no middleware is named', () => {
  const cases = [
    [undefined, [], /needs chat/],
    [{ ...serviceOf(), sideQuery: undefined }, [], /sideQuery is missing/],
    [serviceOf(), {}, /must be an array/],
    [serviceOf(), [null], /\[0\] must be an object/],
    [serviceOf(), [{ wrapChat: 'x' }], /\[0\]\.wrapChat must be a function/],
    [serviceOf(), [{ wrapstream() {} }], /\[0\] wraps nothing/],
  ];
  for (const [service, list, says] of cases) {
    test(String(says), () => {
      assert.throws(() => wrapModelService(service, list), { code: 'CONFIG_ERROR', message: says });
    });
  }
});
