// Model middleware inside Sessions: layers around the native model, over the scripted provider and over HTTP.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createAgent, createSession, definePlugin, prompt, SdkError } from '@blade-ai/agent-sdk';
import { scriptedProvider } from '@blade-ai/agent-sdk/testing';
import { frame, framesOf, startModelServer } from './support/model-server.mjs';
import { all, ask, calls, deferred, macrotask, ofType, open, textOf, tool, until } from './support/session.mjs';

/** Options of a Session with these functions as layers, outermost first. */
const around = (...layers) => ({ middleware: { model: layers.map((wrapStream) => ({ wrapStream })) } });

async function* pass(_, next) {
  yield* next();
}

/** A layer that keeps the requests it sees. */
const keeping = (requests) =>
  async function* keep(request, next) {
    requests.push(request);
    yield* next();
  };

/** A layer that answers by itself. */
const answering = (...chunks) =>
  async function* answer() {
    yield* chunks;
  };

/** How a request ended: its text, and its error. */
const endOf = (events) => [textOf(events), ofType(events, 'error')[0]?.code];

async function serve(t, script, options = {}) {
  const server = await startModelServer(script);
  t.after(server.close);
  const { provider, ...more } = options;
  const connection = { type: 'openai-compatible', baseUrl: server.url, apiKey: 'k', ...provider };
  connection.retry = { initialDelayMs: 1, maxDelayMs: 2 };
  const session = await createSession({ provider: connection, model: 'm', permissionMode: 'yolo', ...more });
  t.after(() => session.close().catch(() => {}));
  return { server, session };
}

describe('what a layer sees', () => {
  test('each model call of a request, with the conversation so far and the tools, frozen', async (t) => {
    const requests = [];
    const options = { systemPrompt: 'be kind', tools: [tool('T', async () => 'out')], ...around(keeping(requests)) };
    const { session, provider } = await open(t, [calls('T'), 'done', 'more'], options);
    assert.equal(textOf(await ask(session)), 'done');
    assert.equal(textOf(await ask(session, 'and')), 'more');
    assert.deepEqual(
      requests.map(({ messages }) => messages.map(({ role }) => role).join(' ')),
      ['system user', 'system user assistant tool', 'system user assistant tool assistant user'],
    );
    for (const [at, request] of requests.entries()) {
      const { operation, model, messages, tools, signal, ...rest } = request;
      assert.deepEqual([operation, model, rest], ['streamChat', 'scripted', {}]);
      assert.deepEqual(messages, provider.requests[at].messages);
      assert.deepEqual(tools, [{ name: 'T', description: 'T', parameters: { type: 'object' } }]);
      assert.ok(signal instanceof AbortSignal && !signal.aborted);
      const parts = [request, messages, messages[1], tools, tools[0].parameters];
      assert.ok(parts.every(Object.isFrozen));
    }
    assert.deepEqual(requests[1].messages.slice(0, 2), requests[0].messages);
  });

  test('a request without tools has none', async (t) => {
    const requests = [];
    const { session } = await open(t, ['ok'], around(keeping(requests)));
    await ask(session);
    assert.ok(!('tools' in requests[0]));
  });

  test('every kind of chunk, in the order of the model', async (t) => {
    const chunks = [];
    const keep = async function* (_, next) {
      for await (const chunk of next()) {
        chunks.push(chunk);
        yield chunk;
      }
    };
    const turn = { thinking: 'hm', text: ['a', 'b'], ...calls(['T', { n: 1 }]) };
    const { session } = await open(t, [turn, 'end'], { ...around(keep), tools: [tool('T', async () => 'out')] });
    await session.send('go');
    const events = await all(session.stream({ includeThinking: true }));
    assert.deepEqual(chunks.slice(0, 4), [
      { reasoningContent: 'hm' },
      { content: 'a' },
      { content: 'b' },
      {
        toolCalls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'T', arguments: '{"n":1}' } }],
      },
    ]);
    assert.deepEqual(Object.keys(chunks[4].usage).sort(), ['completionTokens', 'promptTokens', 'totalTokens']);
    assert.deepEqual(chunks[5], { finishReason: 'tool_calls' });
    assert.deepEqual(ofType(events, 'tool_use')[0].input, { n: 1 });
    assert.equal(ofType(events, 'thinking')[0].delta, 'hm');
  });

  test('options, then plugins in their order: the first is outermost', async (t) => {
    const order = [];
    const note = (name) => ({
      async *wrapStream(_, next) {
        order.push(name);
        yield* next();
        order.push(`/${name}`);
      },
    });
    const plugin = (name) => definePlugin({ name, middleware: { model: [note(name)] } });
    const { session } = await open(t, ['ok'], {
      middleware: { model: [note('o1'), note('o2')] },
      plugins: [plugin('p1'), { name: 'none' }, plugin('p2')],
    });
    await ask(session);
    assert.deepEqual(order, ['o1', 'o2', 'p1', 'p2', '/p2', '/p1', '/o2', '/o1']);
  });

  test('middleware survives setModel and is inherited by forks; an agent takes it through advanced', async (t) => {
    const requests = [];
    const options = around(keeping(requests));
    const { session } = await open(t, ['a', 'b', 'c'], options);
    await ask(session);
    await session.setModel('other');
    await ask(session);
    const child = await session.fork();
    await ask(child);
    await child.close();
    const agent = await createAgent({ provider: scriptedProvider(['d']), model: 'agent', advanced: options });
    assert.equal(await (await agent.send('hi')).text(), 'd');
    await agent.close();
    assert.deepEqual(
      requests.map(({ model, messages }) => [model, messages.length]),
      [
        ['scripted', 1],
        ['other', 3],
        ['other', 5],
        ['agent', 1],
      ],
    );
  });
});

describe('what a layer changes', () => {
  test('messages and tools reach the provider, unchanged messages as they were, and the history stays', async (t) => {
    const hint = { role: 'system', content: 'Answer in German.' };
    const extra = { name: 'Extra', description: 'e', parameters: { type: 'object', properties: {} } };
    const change = async function* (request, next) {
      yield* next({ ...request, messages: [hint, ...request.messages], tools: [...request.tools, extra] });
    };
    const image = [
      { type: 'text', text: 'what is this? \ud800' },
      { type: 'image_url', image_url: { url: 'https://example.test/x.png' } },
    ];
    const options = { tools: [tool('T', async () => 'out')], ...around(change) };
    const answers = [{ toolCalls: [{ name: 'T' }, { name: 'Extra' }] }, 'ok'];
    const { server, session } = await serve(t, answers, options);
    const events = await ask(session, image);
    assert.equal(textOf(events), 'ok');
    // A tool that only the model was told of is one that does not exist.
    const failed = ofType(events, 'tool_result').filter(({ isError }) => isError);
    assert.deepEqual(
      failed.map(({ name }) => name),
      ['Extra'],
    );
    assert.deepEqual(server.violations, []);
    for (const { body } of server.journal) {
      assert.deepEqual(body.messages[0], hint);
      assert.deepEqual(
        body.tools.map((declared) => declared.function.name),
        ['T', 'Extra'],
      );
    }
    assert.equal(server.journal[1].body.messages[1].content[0].text, 'what is this? \ufffd');
    assert.deepEqual(
      session.messages.map(({ role }) => role),
      ['user', 'assistant', 'tool', 'tool', 'assistant'],
    );
  });

  test('unchanged requests are byte for byte those without middleware', async (t) => {
    const answers = [{ text: 'x', toolCalls: [{ id: 'c1', name: 'T', input: { b: 1, a: 2 } }] }, 'ok'];
    const options = { tools: [tool('T', async () => ({ z: 1 }))], systemPrompt: 's', temperature: 0 };
    const bodies = [];
    for (const more of [{}, around(pass, pass)]) {
      const { server, session } = await serve(t, answers, { ...options, ...more });
      await ask(session);
      bodies.push(server.journal.map(({ text }) => text));
    }
    assert.deepEqual(bodies[1], bodies[0]);
  });

  test('the history may be cut and rewritten, and tools taken away', async (t) => {
    const cut = async function* (request, next) {
      const last = { ...request.messages.at(-1), content: 'rewritten' };
      yield* next({ ...request, messages: [last], tools: undefined });
    };
    const { session, provider } = await open(t, ['a', 'b'], { tools: [tool('T', async () => 1)], ...around(cut) });
    await ask(session, 'first');
    await ask(session, 'second');
    assert.deepEqual(
      provider.requests.map(({ messages, tools }) => [messages.map(({ content }) => content), tools]),
      [
        [['rewritten'], []],
        [['rewritten'], []],
      ],
    );
    assert.equal(session.messages[0].content, 'first');
  });

  test('what it yields is the answer: text, history and usage', async (t) => {
    const shout = async function* (_, next) {
      for await (const chunk of next()) {
        if (chunk.content) chunk.content = chunk.content.toUpperCase();
        if (chunk.usage) chunk.usage = { ...chunk.usage, promptTokens: 40, totalTokens: 42 };
        yield chunk;
      }
    };
    const { session } = await open(t, [{ text: ['ab', 'c'] }], around(shout));
    const events = await ask(session);
    assert.equal(textOf(events), 'ABC');
    assert.equal(ofType(events, 'result')[0].content, 'ABC');
    assert.equal(session.messages[1].content, 'ABC');
    assert.deepEqual(
      [ofType(events, 'usage')[0].usage.inputTokens, ofType(events, 'usage')[0].usage.totalTokens],
      [40, 42],
    );
  });

  test('a layer may answer without the model, with calls whole and in pieces, with ids and without', async (t) => {
    const turns = [
      [
        { content: 'let me see' },
        { toolCalls: [{ index: 1, function: { name: 'T', arguments: '{"n":' } }] },
        { toolCalls: [{ index: 0, id: 'first', type: 'function', function: { name: 'T', arguments: '{"n":1}' } }] },
        { toolCalls: [{ index: 1, function: { arguments: '2}' } }] },
      ],
      [{ toolCalls: [{ id: '', type: 'function', function: { name: 'T', arguments: '{"n":3}' } }] }],
      [{ content: 'done', finishReason: 'stop' }],
    ];
    const play = async function* () {
      yield* turns.shift();
    };
    const seen = [];
    const note = tool('T', async ({ n }) => seen.push(n), { kind: 'readonly' });
    const { session, provider } = await open(t, [], { tools: [note], ...around(play) });
    const events = await ask(session);
    assert.deepEqual(endOf(events), ['let me seedone', undefined]);
    assert.deepEqual(seen, [1, 2, 3]);
    const ids = ofType(events, 'tool_use').map(({ id }) => id);
    assert.equal(new Set(ids).size, 3);
    assert.ok(ids.every((id) => id !== ''));
    assert.equal(provider.requests.length, 0);
  });

  test('a layer that stops early closes the connection', async (t) => {
    const [start, end] = [framesOf({ text: 'one' })[0], framesOf({ text: 'two' })];
    const first = async function* (_, next) {
      for await (const chunk of next()) {
        yield chunk;
        return;
      }
    };
    const { server, session } = await serve(t, [{ pieces: [start], ending: 'hang' }, { pieces: end }], around(first));
    assert.deepEqual(endOf(await ask(session)), ['one', undefined]);
    await until(() => server.closedEarly === 1);
    assert.equal(textOf(await ask(session)), 'two');
  });
});

describe('streaming', () => {
  test('a layer that has heard enough closes the connection at once, and goes on by itself', async (t) => {
    let server;
    const first = async function* (_, next) {
      for await (const chunk of next()) {
        yield chunk;
        break;
      }
      await until(() => server.closedEarly === 1);
      yield { content: ' and mine' };
    };
    const script = [{ pieces: framesOf({ text: 'one' }).slice(0, 1), ending: 'hang' }];
    const opened = await serve(t, script, around(pass, first));
    ({ server } = opened);
    assert.equal(textOf(await ask(opened.session)), 'one and mine');
  });

  test('a chunk is seen while the model is silent', async (t) => {
    const script = [{ pieces: framesOf({ text: 'one' }).slice(0, 1), ending: 'hang' }];
    const { session } = await serve(t, script, around(pass, pass));
    await session.send('go');
    const seen = [];
    for await (const event of session.stream()) {
      if (event.type !== 'content') continue;
      seen.push(event.delta);
      break;
    }
    assert.deepEqual(seen, ['one']);
  });

  test('a chunk is seen while a layer waits for something of its own', async (t) => {
    const gate = deferred();
    const wait = async function* (_, next) {
      for await (const chunk of next()) {
        yield chunk;
        if (chunk.content === 'two') await gate.promise;
      }
    };
    const { session } = await open(t, [{ text: ['one', 'two', 'three'] }], around(pass, wait));
    await session.send('go');
    const seen = [];
    for await (const event of session.stream()) {
      if (event.type !== 'content') continue;
      seen.push(event.delta);
      if (event.delta === 'two') gate.resolve();
    }
    assert.deepEqual(seen, ['one', 'two', 'three']);
  });

  test('a consumer that is behind slows the layers and the model down', async (t) => {
    let yielded = 0;
    const endless = async function* ({ signal }) {
      for (; !signal.aborted; yielded++) yield { content: 'x'.repeat(1_000) };
    };
    const { session } = await open(t, [], around(endless));
    await session.send('go');
    const stream = session.stream();
    await stream.next();
    await until(() => yielded > 0);
    let before = -1;
    while (before !== yielded) {
      before = yielded;
      for (let n = 0; n < 20; n++) await macrotask();
    }
    assert.ok(yielded > 0 && yielded < 2_000, `${yielded} chunks were made for nobody`);
    await stream.return();
    const stopped = yielded;
    await macrotask();
    assert.equal(yielded, stopped);
  });

  test('many chunks arrive whole and in order through several layers', async (t) => {
    const text = Array.from({ length: 5_000 }, (_, n) => `${n} 世界 `);
    const { session } = await open(t, [{ text }], around(pass, pass, pass));
    assert.equal(textOf(await ask(session)), text.join(''));
  });
});

describe('errors', () => {
  test('of the model keep code, status and cause; retries stay below the layers', async (t) => {
    let runs = 0;
    const caught = [];
    const watch = async function* (_, next) {
      runs++;
      try {
        yield* next();
      } catch (error) {
        caught.push(error);
        throw error;
      }
    };
    const busy = { status: 503, body: { error: { message: 'busy' } } };
    const denied = { status: 401, body: { error: { message: 'no such key' } } };
    const { server, session } = await serve(t, [busy, busy, 'at last', denied], around(pass, watch));
    assert.equal(textOf(await ask(session)), 'at last');
    assert.deepEqual([runs, server.journal.length, caught.length], [1, 3, 0]);
    const [event] = ofType(await ask(session), 'error');
    assert.equal(event.code, 'MODEL_HTTP_ERROR');
    assert.match(event.message, /no such key/);
    assert.ok(caught[0] instanceof SdkError);
    assert.deepEqual([caught[0].code, caught[0].status], ['MODEL_HTTP_ERROR', 401]);
    const provider = { type: 'openai-compatible', baseUrl: server.url };
    const asked = prompt('x', { provider, model: 'm', ...around(pass) });
    await assert.rejects(asked, { code: 'MODEL_HTTP_ERROR', status: 400 });
  });

  test('of a stream that breaks come after what was delivered', async (t) => {
    const [start] = framesOf({ text: 'half' });
    const script = [{ pieces: [start, frame({ error: { message: 'boom', type: 'invalid_request_error' } })] }, 'whole'];
    const { session } = await serve(t, script, around(pass));
    assert.deepEqual(endOf(await ask(session)), ['half', 'MODEL_STREAM_ERROR']);
    assert.deepEqual(endOf(await ask(session)), ['whole', undefined]);
  });

  test('of the model can be answered by a layer', async (t) => {
    const fallback = async function* (_, next) {
      try {
        yield* next();
      } catch (error) {
        yield { content: `sorry: ${error.code}` };
      }
    };
    const turns = [{ text: ['a'], fault: { kind: 'disconnect', after: 1 } }];
    const { session } = await open(t, turns, around(fallback));
    assert.deepEqual(endOf(await ask(session)), ['asorry: MODEL_STREAM_ERROR', undefined]);
  });

  const throwing = (value) =>
    async function* fail(_, next) {
      yield* next();
      throw value;
    };
  for (const [what, layer, says, cause] of [
    [
      'throws',
      throwing(new RangeError('mine')),
      /model middleware failed: mine/,
      { name: 'RangeError', message: 'mine' },
    ],
    ['throws nothing much', throwing(undefined), /undefined/, { name: 'undefined' }],
    [
      'throws in place of the model’s error',
      async function* (_, next) {
        try {
          yield* next();
          throw new Error('came through');
        } catch (error) {
          throw new TypeError('other', { cause: error });
        }
      },
      /other/,
      { name: 'TypeError' },
    ],
    ['is no generator', async () => ({}), /must return an async generator/, { name: 'TypeError' }],
    [
      'calls next twice',
      async function* (_, next) {
        yield* next();
        yield* next();
      },
      /next\(\) called multiple times/,
      { name: 'Error' },
    ],
    [
      'changes the model',
      (request, next) => next({ ...request, model: 'cheap' }),
      /cannot change model/,
      { name: 'TypeError' },
    ],
    [
      'hands on a number as a message',
      (request, next) => next({ ...request, messages: [0] }),
      /messages\[0\] of a model request must be an object/,
      { name: 'TypeError' },
    ],
    ['yields text', answering('text'), /wrong form: chunk 1 is malformed/],
    ['yields nothing', answering(undefined), /the chunk is undefined/, { name: 'TypeError' }],
    [
      'yields what is no JSON',
      answering({ content: () => {} }),
      /the chunk\.content is a function/,
      { name: 'TypeError' },
    ],
    ['yields a wrong field', answering({}, { content: 5 }), /chunk 2 is malformed/],
    ['yields a call without a name', answering({ toolCalls: [{ index: 0, id: 'c' }] }), /has no function\.name/],
    ['yields wrong counts', answering({ usage: { promptTokens: 'many' } }), /chunk 1 is malformed/],
  ]) {
    test(`a layer that ${what} fails the request and leaves the Session usable`, async (t) => {
      let broken = true;
      const once = (request, next) => {
        if (!broken) return next();
        broken = false;
        return layer(request, next);
      };
      const provider = scriptedProvider(() => 'model');
      const { session } = await open(t, [], { provider, ...around(once) });
      await assert.rejects(
        prompt('go', { provider: scriptedProvider(['model']), model: 'm', ...around(layer) }),
        (error) => {
          assert.equal(error.code, 'MODEL_MIDDLEWARE_FAILED');
          assert.match(error.message, says);
          for (const [key, value] of Object.entries(cause ?? {})) assert.equal(error.cause[key], value);
          return true;
        },
      );
      assert.equal(ofType(await ask(session), 'error')[0].code, 'MODEL_MIDDLEWARE_FAILED');
      assert.deepEqual(endOf(await ask(session)), ['model', undefined]);
      await session.close();
    });
  }

  test('of a request that is none have the code of one, and the model is not asked', async (t) => {
    const bad = async function* (request, next) {
      yield* next({ ...request, messages: [{ role: 'robot', content: 'x' }] });
    };
    const { session, provider } = await open(t, ['x'], around(bad));
    const [error] = ofType(await ask(session), 'error');
    assert.deepEqual([error.code, provider.requests.length], ['INVALID_MODEL_REQUEST', 0]);
    assert.match(error.message, /messages\[0\].*robot/);
  });

  test('a layer that is silent for too long is a timeout; the time of the model is its own', async (t) => {
    const hang = async function* ({ signal }) {
      yield { content: 'a' };
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
    };
    const provider = scriptedProvider([{ text: 'slow', delayMs: 60 }], {
      streamIdleTimeoutMs: 40,
      requestTimeoutMs: 500,
    });
    const quick = await createSession({ provider, model: 'm', ...around(hang) });
    t.after(() => quick.close());
    assert.deepEqual(endOf(await ask(quick)), ['a', 'MODEL_STREAM_IDLE_TIMEOUT']);
  });
});

describe('cancellation', () => {
  test('the signal fires, the generators are closed, the connection too, and nothing is left', async (t) => {
    const order = [];
    const note = (name) =>
      async function* noting({ signal }, next) {
        signal.addEventListener('abort', () => order.push(`${name} signal`));
        try {
          yield* next();
        } catch (error) {
          order.push(`${name} ${error.name}`);
          throw error;
        } finally {
          order.push(`${name} closed`);
        }
      };
    const [start] = framesOf({ text: 'one' });
    const script = [{ pieces: [start], ending: 'hang' }, 'two'];
    const { server, session } = await serve(t, script, around(note('outer'), note('inner')));
    await session.send('go');
    const events = [];
    for await (const event of session.stream()) {
      events.push(event.type);
      if (event.type === 'content') await session.abort();
    }
    assert.deepEqual(events, ['turn_start', 'content']);
    assert.deepEqual(order, [
      'outer signal',
      'inner signal',
      'inner AbortError',
      'inner closed',
      'outer AbortError',
      'outer closed',
    ]);
    await until(() => server.closedEarly === 1);
    assert.equal(textOf(await ask(session)), 'two');
    await session.close();
  });

  test('a layer that goes on yielding after its signal is left at its next chunk', async (t) => {
    let closed = false;
    const stubborn = async function* () {
      try {
        for (;;) {
          yield { content: 'x' };
          await macrotask();
        }
      } finally {
        closed = true;
      }
    };
    const { session } = await open(t, [], around(stubborn));
    await session.send('go');
    for await (const event of session.stream()) if (event.type === 'content') break;
    assert.equal(closed, true);
    await session.close();
  });

  test('abort waits for a layer that cleans up', async (t) => {
    const [began, signalled, cleaned] = [deferred(), deferred(), deferred()];
    const layer = async function* ({ signal }, next) {
      signal.addEventListener('abort', signalled.resolve);
      began.resolve();
      try {
        yield* next();
      } finally {
        await cleaned.promise;
      }
    };
    const { session, provider } = await open(t, [{ fault: { kind: 'hang' } }, 'two'], around(layer));
    await session.send('go');
    const reading = all(session.stream());
    await began.promise;
    await until(() => provider.requests.length === 1);
    let aborted = false;
    const aborting = session.abort().then(() => {
      aborted = true;
    });
    await signalled.promise;
    for (let n = 0; n < 20; n++) await macrotask();
    assert.equal(aborted, false);
    cleaned.resolve();
    await aborting;
    assert.deepEqual(
      (await reading).map(({ type }) => type),
      ['turn_start'],
    );
    assert.equal(textOf(await ask(session)), 'two');
    await session.close();
  });

  test('leaving the stream early and closing the Session end a layer that waits for the model', async (t) => {
    for (const leave of ['return', 'close']) {
      let closed = false;
      const layer = async function* (_, next) {
        try {
          yield* next();
        } finally {
          closed = true;
        }
      };
      const { session } = await open(t, [{ text: ['a'], fault: { kind: 'hang', after: 1 } }], around(layer));
      await session.send('go');
      const stream = session.stream();
      while ((await stream.next()).value.type !== 'content');
      if (leave === 'return') await stream.return();
      else await session.close();
      assert.equal(closed, true, leave);
    }
  });

  test('a signal that fired before the stream began asks no layer', async (t) => {
    const requests = [];
    const { session } = await open(t, ['a'], around(keeping(requests)));
    await session.send('go', { signal: AbortSignal.abort() });
    assert.deepEqual(await all(session.stream()), []);
    assert.equal(requests.length, 0);
  });
});

describe('options', () => {
  const base = () => ({ provider: scriptedProvider(['ok']), model: 'm' });
  for (const [what, options, says] of [
    ['a list in place of lists', { middleware: [] }, /^middleware must be an object/],
    ['null', { middleware: null }, /^middleware must be an object/],
    ['a list of another name', { middleware: { models: [] } }, /no list models/],
    ['model middleware that is no list', { middleware: { model: {} } }, /middleware\.model must be an array/],
    ['a layer that is a function', { middleware: { model: [() => {}] } }, /middleware\.model\[0\] must be an object/],
    ['a layer that wraps nothing', { middleware: { model: [{}] } }, /middleware\.model\[0\] wraps nothing/],
    ['a wrapper that is no function', { middleware: { model: [{ wrapStream: 1 }] } }, /model\[0\]\.wrapStream/],
    ['tool middleware that is no list', { middleware: { tool: () => {} } }, /middleware\.tool must be an array/],
    ['tool middleware that is no function', { middleware: { tool: [{}] } }, /middleware\.tool\[0\] must be a function/],
    ['a plugin’s tool middleware', { plugins: [{ name: 'p', middleware: { tool: [1] } }] }, /plugin p: .*tool\[0\]/],
    ['a plugin’s broken layer', { plugins: [{ name: 'p', middleware: { model: [null] } }] }, /plugin p: .*model\[0\]/],
  ]) {
    test(`${what} is a ConfigError`, async () => {
      await assert.rejects(createSession({ ...base(), ...options }), { code: 'CONFIG_ERROR', message: says });
    });
  }

  test('definePlugin checks middleware at once', () => {
    assert.throws(() => definePlugin({ name: 'p', middleware: { model: 'x' } }), { code: 'CONFIG_ERROR' });
    assert.equal(definePlugin({ name: 'p', middleware: { model: [{ wrapStream: pass }], tool: [] } }).name, 'p');
  });

  test('layers around other operations and empty lists change nothing', async (t) => {
    const chat = {
      wrapChat() {
        throw new Error('never');
      },
    };
    const { session } = await open(t, ['ok'], { middleware: { model: [chat], tool: [] } });
    assert.deepEqual(endOf(await ask(session)), ['ok', undefined]);
  });

  test('later changes of the list reach nobody', async (t) => {
    const model = [{ wrapStream: answering({ content: 'mine' }) }];
    const { session } = await open(t, ['ok'], { middleware: { model } });
    model[0] = null;
    model.length = 0;
    assert.equal(textOf(await ask(session)), 'mine');
  });
});
