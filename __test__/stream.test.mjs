// The event stream of a request: exactness, order, backpressure, and every way of leaving it.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { describe, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { createSession } from '@blade-ai/agent-sdk';
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

const types = (events) => events.map(({ type }) => type);

describe('what a stream says', () => {
  test('100,000 deltas arrive one by one, exact and in order', async (t) => {
    const text = Array.from({ length: 100_000 }, (_, n) => `${n},`);
    const { session } = await open(t, [{ text }]);
    await session.send('go');
    let n = 0;
    for await (const event of session.stream()) {
      if (event.type === 'content' && event.delta !== text[n++]) assert.fail(`delta ${n - 1} is ${event.delta}`);
    }
    assert.equal(n, text.length);
  });

  test('text of every width arrives as it was sent, however it is cut into deltas', async (t) => {
    const samples = [
      'ascii',
      'ÿ latin é',
      '漢字かな交じり文',
      '🙂👩‍👩‍👧‍👦🏳️‍🌈',
      '\u0000\u001f"\\\u2028\u2029',
      '\ufeff\ufffd\uffff',
      'e\u0301',
      ' ',
    ];
    let state = 7;
    const random = (n) => {
      state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
      return state % n;
    };
    const text = Array.from({ length: 3_000 }, () => samples[random(samples.length)].repeat(random(4)));
    const thinking = text.slice().reverse();
    const { session } = await open(t, [{ text, thinking }]);
    await session.send('go');
    const events = await all(session.stream({ includeThinking: true }));
    assert.deepEqual(
      ofType(events, 'content').map(({ delta }) => delta),
      text,
    );
    assert.deepEqual(
      ofType(events, 'thinking').map(({ delta }) => delta),
      thinking,
    );
  });

  test('empty deltas and deltas larger than a frame are events like others', async (t) => {
    const text = [
      '',
      'a',
      '',
      '',
      'x'.repeat(16_384),
      'y'.repeat(16_385),
      '漢'.repeat(70_000),
      '',
      'z'.repeat(3_000_000),
      '',
    ];
    const { session } = await open(t, [{ text }]);
    const events = await ask(session);
    assert.deepEqual(
      ofType(events, 'content').map(({ delta }) => delta.length),
      text.map(({ length }) => length),
    );
    assert.equal(textOf(events), text.join(''));
  });

  test('deltas and other events keep their order within and across frames', async (t) => {
    const turns = [];
    const expected = [];
    for (let turn = 1; turn <= 30; turn++) {
      const text = Array.from({ length: turn * 20 }, (_, n) => (n % 7 === 0 ? `世${turn}.${n}` : `${turn}.${n}`));
      turns.push({ text, ...calls(['Say', { turn }]) });
      expected.push(
        `turn_start ${turn}`,
        ...text,
        `tool_use ${turn}`,
        `tool_progress ${turn}`,
        `tool_result ${turn}`,
        `turn_end ${turn}`,
      );
    }
    turns.push('end');
    expected.push('turn_start 31', 'end', 'turn_end 31', 'usage', 'result');
    const say = generatorTool('Say', async function* ({ turn }) {
      yield { kind: 'progress', message: 'p', data: turn };
      return { status: 'success', model: turn };
    });
    const { session } = await open(t, turns, { tools: [say] });
    const events = await ask(session);
    const seen = events.map((event) => {
      switch (event.type) {
        case 'content':
          return event.delta;
        case 'tool_use':
          return `tool_use ${event.input.turn}`;
        case 'tool_progress':
          return `tool_progress ${event.progress.data}`;
        case 'tool_result':
          return `tool_result ${event.output}`;
        case 'turn_start':
        case 'turn_end':
          return `${event.type} ${event.turn}`;
        default:
          return event.type;
      }
    });
    assert.deepEqual(seen, expected);
    assert.ok(events.every(({ sessionId }) => sessionId === session.sessionId));
  });

  test('thinking is only published to those who ask for it', async (t) => {
    const { session } = await open(t, () => ({ thinking: 'hm', text: 'yes' }));
    assert.deepEqual(ofType(await ask(session), 'thinking'), []);
    for (const includeThinking of [false, undefined, null, 1, 'true']) {
      await session.send('go');
      assert.deepEqual(ofType(await all(session.stream({ includeThinking })), 'thinking'), []);
    }
    await session.send('go');
    assert.equal(ofType(await all(session.stream({ includeThinking: true })), 'thinking').length, 1);
  });
});

describe('backpressure', () => {
  /** A server of an endless answer that counts what it could hand over. */
  async function endless(t) {
    const stats = { sent: 0, closed: deferred(), stalled: 0 };
    const server = createServer((request, response) => {
      request.resume();
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const delta = { choices: [{ index: 0, delta: { content: 'x'.repeat(1_000) } }] };
      const frame = `data: ${JSON.stringify(delta)}\n\n`;
      const pump = () => {
        while (!response.destroyed) {
          stats.sent += 1_000;
          if (!response.write(frame)) {
            stats.stalled++;
            response.once('drain', pump);
            return;
          }
        }
      };
      response.on('close', () => stats.closed.resolve());
      pump();
    });
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.after(() => {
      server.closeAllConnections();
      server.close();
    });
    return { stats, baseUrl: `http://127.0.0.1:${server.address().port}/v1` };
  }

  test('a consumer that stops reading holds up the server, and leaving closes the connection', async (t) => {
    const { stats, baseUrl } = await endless(t);
    const provider = { type: 'openai-compatible', apiKey: 'k', baseUrl };
    const session = await createSession({ provider, model: 'm' });
    t.after(() => session.close());
    await session.send('go');
    const stream = session.stream();
    for (let n = 0; n < 100; n++) await stream.next();
    // Quiet: the server has been waiting for its socket for many rounds of the event loop.
    let quiet = 0;
    for (let last = -1; quiet < 2_000; quiet = stats.sent === last ? quiet + 1 : 0) {
      last = stats.sent;
      await macrotask();
    }
    const before = process.memoryUsage.rss();
    const { sent } = stats;
    for (let n = 0; n < 2_000; n++) await macrotask();
    assert.equal(stats.sent, sent, 'nothing moves while nobody reads');
    assert.ok(sent < 40_000_000, `${sent} bytes were taken for 100 events`);
    assert.ok(process.memoryUsage.rss() - before < 32 * 2 ** 20);
    // Reading goes on where it stopped.
    for (let n = 0; n < 40_000 && stats.sent === sent; n++)
      assert.equal((await stream.next()).value.delta.length, 1_000);
    assert.ok(stats.sent > sent, 'reading lets the server go on');
    await stream.return();
    await stats.closed.promise;
  });

  test('a slow consumer holds up the turns of a request', async (t) => {
    let asked = 0;
    const text = Array(2_000).fill('x'.repeat(100));
    const { session, provider } = await open(
      t,
      () => {
        asked++;
        return { text, ...calls('Next') };
      },
      { tools: [tool('Next', async () => 'on')] },
    );
    await session.send('go');
    const stream = session.stream();
    await stream.next();
    for (let n = 0; n < 2_000; n++) await macrotask();
    assert.equal(asked, 1);
    assert.equal(provider.requests.length, 1);
    let seen = 0;
    while (asked < 4) {
      await stream.next();
      seen++;
    }
    assert.ok(seen > 2 * text.length, `turn 4 was asked for after ${seen} events`);
    await stream.return();
  });

  test('a generator tool waits for its consumer', async (t) => {
    let yields = 0;
    const { session } = await open(t, [calls('Chatty')], {
      tools: [
        generatorTool('Chatty', async function* () {
          for (;;) {
            yields++;
            yield { kind: 'message', content: { summary: 'x'.repeat(10_000) } };
          }
        }),
      ],
    });
    await session.send('go');
    const stream = session.stream();
    await stream.next();
    await until(() => yields > 5);
    for (let n = 0; n < 2_000; n++) await macrotask();
    assert.ok(yields <= 9, `${yields} yields of 10,000 characters are ahead of the consumer`);
    await stream.return();
  });
});

describe('leaving early', () => {
  const slow = () => {
    const state = { started: deferred(), clean: false };
    state.tool = tool('Slow', async (_, { signal }) => {
      state.started.resolve();
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      for (let n = 0; n < 10; n++) await macrotask();
      state.clean = true;
      return null;
    });
    return state;
  };

  for (const [name, leave] of Object.entries({
    break: async (session, running) => {
      for await (const event of session.stream()) if (await running(event)) break;
    },
    return: async (session, running) => {
      const loop = async () => {
        for await (const event of session.stream()) if (await running(event)) return event;
      };
      await loop();
    },
    throw: async (session, running) => {
      const loop = async () => {
        for await (const event of session.stream()) if (await running(event)) throw new Error('mine');
      };
      await assert.rejects(loop, { message: 'mine' });
    },
    'return()': async (session, running) => {
      const stream = session.stream();
      while (!(await running((await stream.next()).value)));
      assert.deepEqual(await stream.return('mine'), { value: 'mine', done: true });
    },
    'throw()': async (session, running) => {
      const stream = session.stream();
      while (!(await running((await stream.next()).value)));
      await assert.rejects(stream.throw(new Error('mine')), { message: 'mine' });
    },
    asyncDispose: async (session, running) => {
      const stream = session.stream();
      while (!(await running((await stream.next()).value)));
      await stream[Symbol.asyncDispose]?.();
      if (Symbol.asyncDispose === undefined) await stream.return();
    },
    'return() twice at once': async (session, running) => {
      const stream = session.stream();
      while (!(await running((await stream.next()).value)));
      void stream.return();
      await stream.return();
    },
  })) {
    test(`${name} cancels the request and waits for its cleanup`, async (t) => {
      const state = slow();
      const { session } = await open(t, [calls('Slow'), 'second'], { tools: [state.tool] });
      await session.send('go');
      // Leaves when the tool runs.
      await leave(session, async ({ type }) => type === 'tool_use' && state.started.promise.then(() => true));
      assert.equal(state.clean, true);
      assert.equal(textOf(await ask(session)), 'second');
    });
  }

  test('calls of next that wait are answered with the end', async (t) => {
    const state = slow();
    const { session } = await open(t, [calls('Slow'), 'second'], { tools: [state.tool] });
    await session.send('go');
    const stream = session.stream();
    while ((await stream.next()).value.type !== 'tool_use');
    await state.started.promise;
    const waiting = [stream.next(), stream.next(), stream.next()];
    await stream.return();
    const end = { value: undefined, done: true };
    assert.deepEqual(await Promise.all(waiting), [end, end, end]);
    assert.deepEqual(await stream.next(), end);
  });

  test('a stream that is left before it began leaves the request to another one', async (t) => {
    const { session } = await open(t, ['first']);
    await session.send('go');
    const unused = session.stream();
    assert.deepEqual(await unused.return(1), { value: 1, done: true });
    assert.deepEqual(await unused.next(), { value: undefined, done: true });
    assert.equal(textOf(await all(session.stream())), 'first');
  });

  test('a hundred rounds of leaving at every event work', async (t) => {
    const text = Array(200).fill('delta ');
    const { session } = await open(t, () => ({ text }));
    for (let at = 0; at < 100; at++) {
      await session.send('go');
      let n = 0;
      for await (const _ of session.stream()) if (n++ === at * 2) break;
    }
    assert.equal(textOf(await ask(session)), text.join(''));
  });
});

describe('the iterator', () => {
  test('concurrent calls of next resolve in order', async (t) => {
    const text = Array.from({ length: 500 }, (_, n) => `${n} `);
    const { session } = await open(t, [{ text }]);
    await session.send('go');
    const stream = session.stream();
    const steps = await Promise.all(Array.from({ length: 700 }, () => stream.next()));
    const events = steps.filter(({ done }) => !done).map(({ value }) => value);
    assert.deepEqual(types(events.slice(-3)), ['turn_end', 'usage', 'result']);
    assert.equal(textOf(events), text.join(''));
    assert.ok(steps.slice(events.length).every(({ done, value }) => done && value === undefined));
  });

  test('calls of next made from answers of next keep the order', async (t) => {
    const text = Array.from({ length: 300 }, (_, n) => `${n} `);
    const { session } = await open(t, [{ text }]);
    await session.send('go');
    const stream = session.stream();
    const events = [];
    const reader = async () => {
      for (let step = await stream.next(); !step.done; step = await stream.next()) events.push(step.value);
    };
    await Promise.all([reader(), reader(), reader()]);
    assert.equal(textOf(events), text.join(''));
  });

  test('after the end there is only the end', async (t) => {
    const { session } = await open(t, ['a', 'b']);
    await session.send('go');
    const stream = session.stream();
    assert.equal(stream[Symbol.asyncIterator](), stream);
    await all(stream);
    for (let n = 0; n < 3; n++) assert.deepEqual(await stream.next(), { value: undefined, done: true });
    assert.deepEqual(await stream.return(7), { value: 7, done: true });
    await assert.rejects(stream.throw(new Error('late')), { message: 'late' });
    assert.equal(textOf(await ask(session)), 'b');
  });

  test('a second stream of a running request is a typed error and disturbs nothing', async (t) => {
    const { session } = await open(t, [{ text: ['a', 'b', 'c'] }]);
    await session.send('go');
    const first = session.stream();
    const second = session.stream();
    await first.next();
    await assert.rejects(second.next(), { code: 'SESSION_NO_PENDING_MESSAGE' });
    assert.deepEqual(await second.next(), { value: undefined, done: true });
    await second.return();
    assert.equal(textOf(await all(first)), 'abc');
  });

  test('a stream that is read late stays whole beside the next request', async (t) => {
    const many = Array.from({ length: 5_000 }, (_, n) => `${n} `);
    const { session } = await open(t, [{ text: many }, 'second']);
    await session.send('go');
    const first = session.stream();
    const early = [];
    // Read until the request has ended on the native side, with the last frames still to be taken.
    for (;;) {
      early.push((await first.next()).value);
      if (early.length % 100 !== 0) continue;
      await macrotask();
      const next = await session.send('again').catch(() => undefined);
      if (next !== undefined) break;
    }
    const second = session.stream();
    const [rest, events] = await Promise.all([all(first), all(second)]);
    assert.equal(textOf([...early, ...rest]), many.join(''));
    assert.equal([...early, ...rest].at(-1).type, 'result');
    assert.equal(textOf(events), 'second');
    await first.return();
  });

  test('events are independent objects', async (t) => {
    const { session } = await open(t, [{ text: ['a', 'a'] }]);
    const events = await ask(session);
    assert.equal(new Set(events).size, events.length);
    for (const event of events) event.mine = true;
  });
});

test('a stream is read inside of a worker', async () => {
  const worker = new Worker(new URL('./support/stream-worker.mjs', import.meta.url));
  const [message, code] = await Promise.all([
    new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject)),
    new Promise((resolve) => worker.once('exit', resolve)),
  ]);
  assert.deepEqual(message, { deltas: 5_000, text: '世界 '.repeat(5_000).length, result: 'success' });
  assert.equal(code, 0);
});
