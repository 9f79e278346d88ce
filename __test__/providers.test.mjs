// HTTP providers against a server that misbehaves in every documented way: each failure has its code, reaches the
// consumer once, and leaves the Session usable.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { describe, test } from 'node:test';
import { createSession, defineTool, ModelTimeoutError, prompt, SdkError } from '@blade-ai/agent-sdk';
import { frame, framesOf, startModelServer } from './support/model-server.mjs';
import { ask, comparable, gate, joined, only, random, results, textOf } from './support/run.mjs';

const QUICK = { initialDelayMs: 1, maxDelayMs: 2 };
const KEY = 'sk-test-0123456789abcdef';

const stored = (name) => readFileSync(new URL(`./fixtures/sse/${name}`, import.meta.url));

async function serve(t, script) {
  const server = await startModelServer(script);
  t.after(server.close);
  return server;
}

const connection = (server, more) => ({
  type: 'openai-compatible',
  baseUrl: server.url,
  apiKey: KEY,
  retry: QUICK,
  ...more,
});

async function open(t, server, { provider, ...options } = {}) {
  const session = await createSession({ provider: connection(server, provider), model: 'm', ...options });
  t.after(() => session.close());
  return session;
}

const http = (status, body = { error: { message: `number ${status}` } }, headers = {}) => ({ status, body, headers });
const html = { status: 200, type: 'text/html', body: '<!doctype html><h1>Welcome</h1>' };
const stream = (...pieces) => ({ pieces });
const [hello] = framesOf({ text: ['one', 'two'] });

/** name → the answers, the code, how many requests, what the message must say, and the status. */
const FAILURES = {
  unauthorized: { answers: [http(401)], code: 'MODEL_HTTP_ERROR', says: /401.*number 401/, status: 401 },
  forbidden: { answers: [http(403)], code: 'MODEL_HTTP_ERROR', says: /403/, status: 403 },
  'not found': { answers: [http(404)], code: 'MODEL_HTTP_ERROR', says: /404/, status: 404 },
  'PS14 bad request': { answers: [http(400)], code: 'MODEL_HTTP_ERROR', says: /number 400/, status: 400 },
  'PS14 too large': { answers: [http(413)], code: 'MODEL_HTTP_ERROR', says: /413/, status: 413 },
  'PS14 unprocessable': { answers: [http(422)], code: 'MODEL_HTTP_ERROR', says: /422/, status: 422 },
  redirect: {
    answers: [http(307, '', { location: 'https://elsewhere.test/v1' })],
    code: 'MODEL_HTTP_ERROR',
    says: /redirects are not followed.*elsewhere\.test/,
    status: 307,
  },
  'rate limit that stays': { answers: Array(4).fill(http(429)), code: 'MODEL_HTTP_ERROR', says: /429/, status: 429 },
  'server error that stays': { answers: Array(4).fill(http(500)), code: 'MODEL_HTTP_ERROR', says: /500/, status: 500 },
  'unavailable that stays': { answers: Array(4).fill(http(503)), code: 'MODEL_HTTP_ERROR', says: /503/, status: 503 },
  'overload that stays': { answers: Array(3).fill(http(529)), code: 'CANNOT_RETRY', says: /overloaded/, status: 529 },
  'wait longer than anybody waits': {
    answers: [http(429, { error: { message: 'slow down' } }, { 'retry-after': '7200' })],
    code: 'MODEL_HTTP_ERROR',
    says: /7200000 ms/,
    status: 429,
  },
  'no retry by the word of the provider': {
    answers: [http(429, undefined, { 'x-should-retry': 'false' })],
    code: 'MODEL_HTTP_ERROR',
    says: /429/,
    status: 429,
  },
  'HTML in place of a stream': { answers: [html], code: 'MODEL_PROTOCOL_ERROR', says: /text\/html.*baseUrl/ },
  'HTML error page': { answers: [{ ...html, status: 404 }], code: 'MODEL_HTTP_ERROR', says: /404/, status: 404 },
  'JSON that is no completion': {
    answers: [{ body: { hello: 'world' } }],
    code: 'MODEL_PROTOCOL_ERROR',
    says: /not a chat completion/,
  },
  'JSON error with status 200': {
    answers: [{ body: { error: { message: 'no such model' } } }],
    code: 'MODEL_STREAM_ERROR',
    says: /no such model/,
  },
  'malformed frame': {
    answers: [stream('data: {"choices":[}\n\n')],
    code: 'MODEL_PROTOCOL_ERROR',
    says: /cannot be read/,
  },
  'frame that is no object': {
    answers: [stream('data: [1,2]\n\n')],
    code: 'MODEL_PROTOCOL_ERROR',
    says: /cannot be read/,
  },
  'nothing but end': { answers: Array(4).fill(stream()), code: 'MODEL_STREAM_ERROR', says: /ended early/ },
  'PS08 silent end after text': { answers: [stream(hello)], code: 'MODEL_STREAM_ERROR', says: /ended early/ },
  'break before the first delta': {
    answers: Array(4).fill({ pieces: [': wait\n\n'], ending: 'break' }),
    code: 'MODEL_CONNECTION_ERROR',
    says: /broke/,
  },
  'break after the first delta': {
    answers: [{ pieces: [hello], ending: 'break' }],
    code: 'MODEL_STREAM_ERROR',
    says: /broke/,
  },
  'PS12 error frame before output': {
    answers: Array(3).fill(stream(frame({ error: { type: 'overloaded_error', message: 'busy' } }))),
    code: 'CANNOT_RETRY',
    says: /overloaded/,
  },
  'PS12 error frame after output': {
    answers: [stream(hello, frame({ error: { type: 'overloaded_error', message: 'busy' } }))],
    code: 'MODEL_STREAM_ERROR',
    says: /busy/,
  },
  'named error event': {
    answers: [stream('event: error\ndata: {"message":"went wrong"}\n\n')],
    code: 'MODEL_STREAM_ERROR',
    says: /went wrong/,
  },
  'error frame that forbids retries': {
    answers: [stream(frame({ error: { code: 'invalid_api_key', message: 'no' } }))],
    code: 'MODEL_STREAM_ERROR',
    says: /no/,
    status: 401,
  },
};

describe('failures of a provider', () => {
  for (const [name, { answers, code, says, status }] of Object.entries(FAILURES)) {
    test(`${name}: ${code}, and the Session stays usable`, async (t) => {
      const server = await serve(t, [...answers, 'fine', ...answers]);
      const session = await open(t, server);
      const events = await ask(session);
      const last = events.at(-1);
      assert.equal(last.type, 'error', JSON.stringify(events));
      assert.equal(last.code, code, last.message);
      assert.match(last.message, says);
      assert.equal(only(events, 'result').length, 0);
      assert.equal(server.journal.length, answers.length, 'retried exactly as often as documented');
      assert.equal(textOf(await ask(session, 'again')), 'fine');
      assert.deepEqual(server.violations, []);

      await assert.rejects(prompt('hi', { provider: connection(server), model: 'm' }), (error) => {
        assert.ok(error instanceof SdkError);
        assert.equal(error.code, code);
        assert.match(error.message, says);
        if (status !== undefined) assert.equal(error.status, status);
        return true;
      });
    });
  }

  test('an unknown host fails at once and says what to check', async (t) => {
    const session = await open(t, { url: 'http://no-such-host.invalid/v1' });
    const { code, message } = (await ask(session)).at(-1);
    assert.equal(code, 'MODEL_CONNECTION_ERROR');
    assert.match(message, /no-such-host\.invalid/);
  });

  test('a refused connection is retried, then named', async (t) => {
    const spare = createServer();
    await new Promise((resolve) => spare.listen(0, '127.0.0.1', resolve));
    const { port } = spare.address();
    await new Promise((resolve) => spare.close(resolve));
    const session = await open(t, { url: `http://127.0.0.1:${port}/v1` });
    const { code, message } = (await ask(session)).at(-1);
    assert.equal(code, 'MODEL_CONNECTION_ERROR');
    assert.match(message, new RegExp(`127\\.0\\.0\\.1:${port} cannot be reached`));
  });

  test('silence before the answer ends with requestTimeoutMs or streamIdleTimeoutMs, whichever is shorter', async (t) => {
    const server = await serve(t, () => ({ silent: true }));
    for (const [limits, code] of [
      [{ requestTimeoutMs: 60, streamIdleTimeoutMs: 5000 }, 'MODEL_REQUEST_TIMEOUT'],
      [{ requestTimeoutMs: 5000, streamIdleTimeoutMs: 60 }, 'MODEL_STREAM_IDLE_TIMEOUT'],
    ]) {
      const options = { provider: connection(server, limits), model: 'm' };
      await assert.rejects(prompt('hi', options), (error) => {
        assert.ok(error instanceof ModelTimeoutError);
        assert.equal(error.code, code);
        assert.match(error.message, /60 ms/);
        return true;
      });
    }
  });

  test('a stream that falls silent ends with streamIdleTimeoutMs and keeps what came', async (t) => {
    const server = await serve(t, [{ pieces: [hello], ending: 'hang' }, 'fine']);
    const session = await open(t, server, { provider: { streamIdleTimeoutMs: 80 } });
    const events = await ask(session);
    assert.equal(textOf(events), 'one');
    assert.equal(events.at(-1).code, 'MODEL_STREAM_IDLE_TIMEOUT');
    assert.equal(textOf(await ask(session)), 'fine');
    assert.deepEqual(server.violations, []);
  });
});

describe('recovery', () => {
  test('what may pass is tried again: no event shows it', async (t) => {
    for (const answers of [
      [http(408), http(409), http(503)],
      [http(500), http(502), http(504)],
      [http(529), http(529)],
      [http(404, undefined, { 'x-should-retry': 'true' })],
      [stream(), { pieces: [], ending: 'break' }],
      [stream(frame({ error: { type: 'overloaded_error', message: 'busy' } }))],
    ]) {
      const server = await serve(t, [...answers, 'fine']);
      const events = await ask(await open(t, server));
      assert.deepEqual(
        events.map((event) => event.type),
        ['turn_start', 'content', 'turn_end', 'usage', 'result'],
      );
      assert.equal(textOf(events), 'fine');
      assert.equal(new Set(server.journal.map((entry) => entry.text)).size, 1, 'the same bytes each time');
    }
  });

  test('Retry-After as seconds, as a date and in milliseconds is waited for', async (t) => {
    const date = new Date(Date.now() + 2000).toUTCString();
    for (const [headers, least] of [
      [{ 'retry-after': '0.2' }, 190],
      [{ 'retry-after-ms': '150' }, 140],
      [{ 'retry-after': date }, 300],
    ]) {
      const server = await serve(t, [http(429, undefined, headers), 'fine']);
      assert.equal(textOf(await ask(await open(t, server))), 'fine');
      const waited = server.journal[1].at - server.journal[0].at;
      assert.ok(waited >= least, `${JSON.stringify(headers)}: waited ${waited} ms`);
    }
  });

  test('an abort during the wait ends it at once', async (t) => {
    const asked = gate();
    const server = await serve(t, () => {
      asked.open();
      return http(429, undefined, { 'retry-after': '60' });
    });
    const session = await open(t, server);
    await session.send('hi');
    const collected = collect(session.stream());
    await asked.opened;
    const started = performance.now();
    await session.abort();
    const kinds = (await collected).map((event) => event.type);
    assert.ok(performance.now() - started < 2000);
    assert.deepEqual(kinds, ['turn_start']);
    assert.equal(server.journal.length, 1);
  });

  test('leaving the stream closes the connection', async (t) => {
    const server = await serve(t, [{ pieces: [hello], ending: 'hang' }, 'fine']);
    const session = await open(t, server);
    await session.send('hi');
    for await (const event of session.stream()) if (event.type === 'content') break;
    while (server.closedEarly === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    assert.equal(textOf(await ask(session)), 'fine');
    assert.deepEqual(server.violations, []);
  });
});

async function collect(iterable) {
  const all = [];
  for await (const item of iterable) all.push(item);
  return all;
}

describe('secrets', () => {
  const quoting = [
    http(401, { error: { message: `Incorrect API key provided: ${KEY}.` } }),
    http(403, `forbidden for Bearer ${KEY}`),
    http(307, '', { location: `https://elsewhere.test/?key=${KEY}` }),
    stream(frame({ error: { code: 'invalid_api_key', message: `bad key ${KEY}` } })),
    stream(`event: error\ndata: {"error":{"message":"bad key","type":"${KEY}"}}\n\n`),
    stream(`data: {"broken ${KEY}\n\n`),
    { body: { echo: KEY } },
    stream(hello, frame({ error: { message: `after output ${KEY}` } })),
  ];

  for (const [at, answer] of quoting.entries()) {
    test(`a provider that quotes the key is not quoted (${at + 1})`, async (t) => {
      const server = await serve(t, () => answer);
      const headers = { 'x-secret-token': 'another-secret-value' };
      const session = await open(t, server, { provider: { headers } });
      const events = await ask(session);
      assert.equal(events.at(-1).type, 'error');
      assert.ok(!JSON.stringify(events).includes(KEY), JSON.stringify(events));
      const error = await prompt('hi', { provider: connection(server), model: 'm' }).catch((thrown) => thrown);
      const shown = `${error.message} ${error.stack} ${JSON.stringify(error)} ${error.cause?.message}`;
      assert.ok(!shown.includes(KEY), shown);
    });
  }

  test('a key that cannot be sent is refused without being repeated', async () => {
    const bad = { type: 'openai-compatible', baseUrl: 'http://127.0.0.1:1', apiKey: 'sk-secret\nline' };
    await assert.rejects(createSession({ provider: bad, model: 'm' }), (error) => {
      assert.equal(error.code, 'CONFIG_ERROR');
      assert.ok(!error.message.includes('sk-secret'));
      return true;
    });
    const url = 'http://user:hunter2-password@127.0.0.1:1/v1?key=sk-in-query';
    const session = await createSession({
      provider: { type: 'openai-compatible', baseUrl: url, retry: { maxRetries: 0 } },
      model: 'm',
    });
    const events = JSON.stringify(await ask(session));
    assert.ok(!events.includes('hunter2') && !events.includes('sk-in-query'), events);
    await session.close();
  });
});

describe('requests', () => {
  test('base URLs with and without slash, path and query lead to the same kind of place', async (t) => {
    const server = await serve(t, () => 'fine');
    for (const [path, expected] of [
      ['', '/chat/completions'],
      ['/', '/chat/completions'],
      ['/v1', '/v1/chat/completions'],
      ['/v1/', '/v1/chat/completions'],
      ['/a/b//', '/a/b/chat/completions'],
      ['/v1?version=2', '/v1/chat/completions?version=2'],
    ]) {
      await ask(await open(t, { url: server.origin + path }));
      assert.equal(server.journal.at(-1).url, expected);
    }
  });

  test('the key and the own headers are on each call; own ones win', async (t) => {
    const server = await serve(t, () => 'fine');
    const session = await open(t, server, { provider: { headers: { 'X-Team': 'blue', 'User-Agent': 'mine' } } });
    await ask(session);
    await ask(session);
    for (const { headers } of server.journal) {
      assert.equal(headers.authorization, `Bearer ${KEY}`);
      assert.equal(headers['x-team'], 'blue');
      assert.equal(headers['user-agent'], 'mine');
      assert.equal(headers['content-type'], 'application/json');
    }
    const keyless = await createSession({ provider: { type: 'openai-compatible', baseUrl: server.url }, model: 'm' });
    await ask(keyless);
    await keyless.close();
    assert.equal(server.journal.at(-1).headers.authorization, undefined);
  });

  test('openai sends organization and project and names the answer limit its way', async (t) => {
    const server = await serve(t, () => 'fine');
    const ids = { organization: 'org-1', projectId: 'proj-1' };
    for (const [type, limit] of [
      ['openai', 'max_completion_tokens'],
      ['openai-compatible', 'max_tokens'],
    ]) {
      await ask(await open(t, server, { provider: { type, ...ids }, maxOutputTokens: 77 }));
      const { headers, body } = server.journal.at(-1);
      assert.equal(headers['openai-organization'], type === 'openai' ? 'org-1' : undefined);
      assert.equal(headers['openai-project'], type === 'openai' ? 'proj-1' : undefined);
      assert.equal(body[limit], 77);
    }
  });

  test('a bad connection is refused when the Session opens, and the setting is named', async () => {
    for (const [change, says, code = 'CONFIG_ERROR'] of [
      [{ baseUrl: 'ftp://host/v1' }, /baseUrl.*ftp/],
      [{ baseUrl: 'not a url' }, /baseUrl/],
      [{ headers: { 'bad name': 'x' } }, /headers.*bad name/],
      [{ requestTimeoutMs: 0 }, /requestTimeoutMs.*0/],
      [{ requestTimeoutMs: 1.5 }, /requestTimeoutMs/],
      [{ streamIdleTimeoutMs: 2 ** 31 }, /streamIdleTimeoutMs/],
      [{ requestTimeoutMs: Number.NaN }, /requestTimeoutMs|provider/],
      [{ type: 'telepathy' }, /telepathy.*available are/, 'PROVIDER_ADAPTER_NOT_FOUND'],
      [{ type: '' }, /type/],
    ]) {
      const provider = { type: 'openai-compatible', baseUrl: 'http://127.0.0.1:1', ...change };
      await assert.rejects(createSession({ provider, model: 'm' }), (error) => {
        assert.equal(error.code, code, error.message);
        assert.match(error.message, says);
        return true;
      });
    }
  });

  test('images and history of several turns with tools satisfy the strict server', async (t) => {
    const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
    const server = await serve(t, [
      {
        text: 'look',
        toolCalls: [
          { id: 'a', name: 'Echo', input: { n: 1 } },
          { id: 'b', name: 'Echo', input: {} },
        ],
      },
      { toolCalls: [{ id: 'a', name: 'Echo', input: '{broken' }] },
      'done',
      'bye',
    ]);
    const session = await open(t, server, { tools: [echo], permissionMode: 'yolo', systemPrompt: 'be brief' });
    const content = [
      { type: 'text', text: 'what is this?' },
      { type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } },
    ];
    assert.equal(textOf(await ask(session, content)), 'lookdone');
    assert.equal(textOf(await ask(session)), 'bye');
    assert.deepEqual(server.violations, []);
    assert.equal(server.journal[0].body.messages[0].content, 'be brief');
  });
});

const echo = defineTool({
  name: 'Echo',
  description: 'returns its input',
  parameters: { type: 'object', properties: { n: { type: 'number' } } },
  kind: 'readonly',
  execute: async (input) => input,
});

/** Tools the stored streams call; each notes its input. */
function storedTools() {
  const ran = [];
  const tool = (name, parameters) =>
    defineTool({
      name,
      description: name,
      parameters,
      kind: 'readonly',
      execute: async (input) => {
        ran.push([name, input]);
        return 'ok';
      },
    });
  const path = (key) => ({ type: 'object', properties: { [key]: { type: 'string' } }, required: [key] });
  return {
    ran,
    tools: [tool('Read', path('file_path')), tool('Now', { type: 'object' }), tool('NeedsPath', path('path'))],
  };
}

async function replay(t, pieces, ending) {
  const server = await serve(t, [{ pieces, ending }, 'after']);
  const { ran, tools } = storedTools();
  const session = await open(t, server, { tools });
  const events = await ask(session);
  return { events, ran, server, session };
}

describe('stored streams', () => {
  test('PS01: calls without arguments have an empty object, which is validated', async (t) => {
    const { events, ran, server } = await replay(t, [stored('openai-empty-args.txt')]);
    assert.deepEqual(ran, [['Now', {}]]);
    assert.deepEqual(
      results(events).map((event) => event.isError),
      [false, true],
    );
    assert.match(results(events)[1].output, /path/);
    assert.equal(textOf(events), 'after');
    assert.deepEqual(server.violations, []);
  });

  test('PS02, PS03, PS13: calls are told apart by id where the index does not help, and ids are made unique', async (t) => {
    for (const [name, expected] of [
      ['openai-same-index.txt', ['/a', '/b']],
      ['openai-no-index.txt', ['/a', '/b']],
      ['openai-dup-ids.txt', ['/a', '/b', '/c']],
    ]) {
      const { events, ran, server } = await replay(t, [stored(name)]);
      assert.deepEqual(
        ran.map(([, input]) => input.file_path),
        expected,
        name,
      );
      assert.equal(new Set(only(events, 'tool_use').map((event) => event.id)).size, expected.length, name);
      assert.deepEqual(server.violations, [], name);
    }
  });

  test('PS13: an id that a later turn uses again stays pairable', async (t) => {
    const again = { toolCalls: [{ id: 'b9', name: 'Now' }] };
    const server = await serve(t, [again, 'x', again, 'y', again, again, 'z']);
    const { tools, ran } = storedTools();
    const session = await open(t, server, { tools });
    for (let i = 0; i < 3; i++) await ask(session);
    assert.equal(ran.length, 4);
    assert.deepEqual(server.violations, []);
  });

  test('PS05, PS06: however a stream is split, the events are the same', async (t) => {
    const { below } = random(5);
    for (const name of ['openai-cut.txt', 'openai-dup-ids.txt', 'openai-no-index.txt', 'comments.txt']) {
      const bytes = stored(name);
      const whole = joined((await replay(t, [bytes])).events);
      const ids = only(whole, 'tool_use').map((event) => event.id);
      const splits = [1, 7, 64].map((size) => cutEvery(bytes, size));
      for (let i = 0; i < 6; i++) {
        const at = below(bytes.length + 1);
        splits.push([bytes.subarray(0, at), bytes.subarray(at)]);
      }
      for (const pieces of splits) {
        const { events, server } = await replay(t, pieces);
        assert.deepEqual(joined(events), whole, name);
        assert.deepEqual(
          only(events, 'tool_use').map((event) => event.id),
          ids,
        );
        assert.deepEqual(server.violations, []);
      }
    }
  });

  test('PS08: a stream that ends before its end is no finished turn, and half a call never runs', async (t) => {
    const frames = stored('openai-cut.txt').toString().trimEnd().split('\n\n');
    for (let kept = 1; kept <= frames.length; kept++) {
      const cut = frames.slice(0, kept).map((text) => `${text}\n\n`);
      const { events, ran, server } = await replay(t, cut);
      const complete = kept >= 5;
      assert.equal(events.at(-1).type, complete ? 'result' : 'error', `${kept} frames`);
      if (!complete) assert.equal(events.at(-1).code, 'MODEL_STREAM_ERROR');
      assert.equal(ran.length, complete ? 1 : 0);
      assert.equal(textOf(events).startsWith('Привет, 世界 🌍 — '), true);
      assert.deepEqual(server.violations, []);
    }
  });

  test('PS12: what was delivered is never delivered again', async (t) => {
    const server = await serve(t, [
      stream(frame({ error: { type: 'overloaded_error', message: 'busy' } })),
      stream(hello, frame({ error: { type: 'overloaded_error', message: 'busy' } })),
      'never',
    ]);
    const events = await ask(await open(t, server));
    assert.equal(textOf(events), 'one');
    assert.equal(events.at(-1).code, 'MODEL_STREAM_ERROR');
    assert.equal(server.journal.length, 2);
  });

  test('PS16: unknown reasons to stop end the turn; counts come last or not at all', async (t) => {
    const text = framesOf({ text: 'x' })[0];
    const reason = (finish) => frame({ choices: [{ index: 0, delta: {}, finish_reason: finish }] });
    const counts = frame({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 } });
    for (const [pieces, input] of [
      [[text, reason('pause_turn'), counts], 3],
      [[text, reason('foo'), frame('[DONE]')], 0],
      [[text, reason(null), counts, frame('[DONE]')], 3],
      [[text, frame('[DONE]')], 0],
    ]) {
      const { events } = await replay(t, pieces);
      assert.equal(events.at(-1).type, 'result');
      assert.equal(events.at(-1).content, 'x');
      assert.equal(only(events, 'usage')[0].usage.inputTokens, input);
    }
  });

  test('PS17: line ends, byte order marks, missing spaces and a missing last blank line do not matter', async (t) => {
    const plain = framesOf({ text: ['a', 'b'] }).join('');
    const whole = joined((await replay(t, [plain])).events);
    const variants = {
      CRLF: plain.replaceAll('\n', '\r\n'),
      CR: plain.replaceAll('\n', '\r'),
      'byte order mark': `\uFEFF${plain}`,
      'no space': plain.replaceAll('data: ', 'data:'),
      'no final blank line': plain.trimEnd(),
      'other fields': plain.replaceAll('data: ', 'id: 7\nretry: 10\nfoo: bar\ndata: '),
      'several data lines': plain.replaceAll('data: {', 'data: {\ndata: '),
    };
    for (const [name, body] of Object.entries(variants)) {
      const bytes = Buffer.from(body);
      for (const pieces of [[bytes], cutEvery(bytes, 3)]) {
        assert.deepEqual(joined((await replay(t, pieces)).events), whole, name);
      }
    }
  });

  test('PS17: an event above the bound is an error, not memory', async (t) => {
    const line = Buffer.alloc(1 << 20, 'x');
    const pieces = ['data: {"x":"', ...Array(70).fill(line)];
    const { events } = await replay(t, pieces);
    assert.equal(events.at(-1).type, 'error');
    assert.equal(events.at(-1).code, 'MODEL_PROTOCOL_ERROR');
  });

  test('a whole completion in place of a stream is taken as it is', async (t) => {
    const message = {
      role: 'assistant',
      content: 'hey',
      tool_calls: [{ id: 'q', type: 'function', function: { name: 'Now', arguments: '{}' } }],
    };
    const body = { choices: [{ index: 0, message, finish_reason: 'tool_calls' }], usage: { prompt_tokens: 1 } };
    const server = await serve(t, [{ body }, 'after']);
    const { tools, ran } = storedTools();
    const events = await ask(await open(t, server, { tools }));
    assert.equal(textOf(events), 'heyafter');
    assert.deepEqual(ran, [['Now', {}]]);
    assert.deepEqual(server.violations, []);
  });

  test('calls of an answer that was cut by its limit do not run', async (t) => {
    const cut = framesOf({ text: 'x', toolCalls: [{ name: 'Now' }], finish: 'length' });
    const { events, ran } = await replay(t, cut);
    assert.deepEqual(ran, []);
    assert.equal(events.at(-1).type, 'result');
  });
});

function cutEvery(bytes, size) {
  const pieces = [];
  for (let at = 0; at < bytes.length; at += size) pieces.push(bytes.subarray(at, at + size));
  return pieces;
}

test('thinking is shown only when it is asked for, and two equal answers give equal events', async (t) => {
  const server = await serve(t, () => ({ thinking: ['hm', 'mm'], text: 'x' }));
  const session = await open(t, server);
  assert.equal(only(await ask(session), 'thinking').length, 0);
  const shown = await ask(session, 'again', { stream: { includeThinking: true } });
  assert.equal(only(shown, 'thinking').length, 2);
  const other = await open(t, server);
  assert.deepEqual(comparable(await ask(other)), comparable(await ask(await open(t, server))));
});
