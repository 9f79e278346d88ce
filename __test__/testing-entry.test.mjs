// The scripted provider, which users test their agents with.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createSession, defineTool, prompt, SdkError } from '@blade-ai/agent-sdk';
import { scriptedProvider } from '@blade-ai/agent-sdk/testing';
import { ask, gate, only, results, textOf } from './support/run.mjs';

const add = defineTool({
  name: 'Add',
  description: 'adds',
  parameters: {
    type: 'object',
    properties: { a: { type: 'number' }, b: { type: 'number' } },
    required: ['a', 'b'],
  },
  kind: 'readonly',
  execute: async ({ a, b }) => a + b,
});

async function open(t, provider, options) {
  const session = await createSession({ provider, model: 'scripted', tools: [add], ...options });
  t.after(() => session.close());
  return session;
}

describe('turns', () => {
  test('the documented example runs as written', async (t) => {
    const provider = scriptedProvider([{ toolCalls: [{ name: 'Add', input: { a: 17, b: 25 } }] }, 'The sum is 42.']);
    const session = await open(t, provider);
    assert.equal(textOf(await ask(session)), 'The sum is 42.');
    assert.equal(provider.remaining, 0);
    assert.equal(provider.requests[1].messages.at(-1).content, '42');
  });

  test('thinking, text and calls come in this order, one delta for each entry', async (t) => {
    const provider = scriptedProvider([
      { toolCalls: [{ name: 'Add', input: '{"a":1,"b":2}' }], text: ['x', 'y'], thinking: ['h', 'm'] },
      '',
    ]);
    const events = await ask(await open(t, provider), 'hi', { stream: { includeThinking: true } });
    const kinds = events.map(({ type, delta }) => (delta === undefined ? type : `${type} ${delta}`));
    assert.deepEqual(kinds.slice(0, 7), [
      'turn_start',
      'thinking h',
      'thinking m',
      'content x',
      'content y',
      'tool_use',
      'tool_result',
    ]);
  });

  test('ids are made where none are given, deterministic and unique; own ones are kept', async (t) => {
    const run = async () => {
      const provider = scriptedProvider([
        { toolCalls: [{ name: 'Add' }, { id: 'mine', name: 'Add' }] },
        { toolCalls: [{ name: 'Add' }] },
        'x',
      ]);
      return only(await ask(await open(t, provider)), 'tool_use').map((event) => event.id);
    };
    const ids = await run();
    assert.deepEqual(ids, await run());
    assert.equal(new Set(ids).size, 3);
    assert.equal(ids[1], 'mine');
  });

  test('usage is counted, given or left out; the reason to stop is passed on', async (t) => {
    const provider = scriptedProvider([
      'four',
      { text: 'x', usage: { inputTokens: 100, outputTokens: 5 } },
      { text: 'x', usage: false },
      { text: '', finishReason: 'length' },
      { text: '', finishReason: 'content_filter' },
      { text: 'cut', finishReason: 'length' },
      { text: 'odd', finishReason: 'pause_turn' },
    ]);
    const session = await open(t, provider);
    const usage = async () => only(await ask(session), 'usage')[0].usage;
    const counted = await usage();
    assert.ok(counted.inputTokens > 0 && counted.outputTokens > 0);
    const given = await usage();
    assert.deepEqual([given.inputTokens, given.outputTokens, given.totalTokens], [100, 5, 105]);
    assert.equal((await usage()).totalTokens, 0);
    for (let i = 0; i < 2; i++) assert.equal((await ask(session)).at(-1).code, 'MODEL_ANSWER_INCOMPLETE');
    assert.equal((await ask(session)).at(-1).content, 'cut');
    assert.equal((await ask(session)).at(-1).content, 'odd');
  });

  test('malformed turns are refused when the script is made, by number and field', () => {
    for (const [turn, says] of [
      [5, /turn 2.*text or an object/],
      [null, /turn 2/],
      [{ txt: 'typo' }, /turn 2.*txt/],
      [{ text: 5 }, /turn 2.*text/],
      [{ text: ['a', 1] }, /turn 2.*text/],
      [{ toolCalls: [{}] }, /turn 2.*name/],
      [{ toolCalls: [{ name: '' }] }, /turn 2.*name/],
      [{ toolCalls: [{ name: 'A', input: [1] }] }, /turn 2.*input/],
      [{ delayMs: -1 }, /turn 2/],
      [{ usage: { inputTokens: 1 } }, /turn 2.*usage/],
      [{ fault: { kind: 'flood' } }, /turn 2.*fault/],
      [{ fault: { kind: 'http', status: 200 } }, /turn 2.*status/],
    ]) {
      assert.throws(
        () => scriptedProvider(['fine', turn]),
        (error) => {
          assert.equal(error.code, 'CONFIG_ERROR');
          assert.match(error.message, says);
          return true;
        },
      );
    }
    assert.throws(() => scriptedProvider('text'), { code: 'CONFIG_ERROR' });
    assert.throws(() => scriptedProvider(['x'], { streamIdleTimeoutMs: 0 }), { code: 'CONFIG_ERROR' });
  });

  test('running out of turns fails and says how many there were', async (t) => {
    for (const provider of [scriptedProvider(['one']), scriptedProvider([() => 'one'])]) {
      const session = await open(t, provider);
      assert.equal(textOf(await ask(session)), 'one');
      const { type, message } = (await ask(session)).at(-1);
      assert.equal(type, 'error');
      assert.match(message, /1 (turn|were scripted)/);
      assert.equal(provider.requests.length, 2, 'the refused request is in the journal');
      assert.equal(provider.remaining, 0);
    }
  });
});

describe('faults', () => {
  test('HTTP errors are retried like real ones, each attempt playing a turn', async (t) => {
    const retry = { initialDelayMs: 1 };
    const flaky = scriptedProvider(
      [{ fault: { kind: 'http', status: 500 } }, { fault: { kind: 'http', status: 429, retryAfterMs: 5 } }, 'fine'],
      { retry },
    );
    assert.equal(textOf(await ask(await open(t, flaky))), 'fine');
    assert.equal(flaky.requests.length, 3);
    const dead = scriptedProvider([{ fault: { kind: 'http', status: 401, message: 'who are you' } }]);
    await assert.rejects(prompt('hi', { provider: dead, model: 'm' }), (error) => {
      assert.ok(error instanceof SdkError);
      assert.deepEqual([error.code, error.status], ['MODEL_HTTP_ERROR', 401]);
      assert.match(error.message, /who are you/);
      return true;
    });
  });

  for (const [fault, code, text] of [
    [{ kind: 'disconnect', after: 1 }, 'MODEL_STREAM_ERROR', 'a'],
    [{ kind: 'malformed' }, 'MODEL_PROTOCOL_ERROR', ''],
    [{ kind: 'error', message: 'broken' }, 'MODEL_STREAM_ERROR', ''],
    [{ kind: 'hang' }, 'MODEL_STREAM_IDLE_TIMEOUT', ''],
  ]) {
    test(`${fault.kind}: ${code}, its calls never run, and the Session stays usable`, async (t) => {
      const provider = scriptedProvider([{ text: ['a', 'b'], toolCalls: [{ name: 'Add' }], fault }, 'fine'], {
        streamIdleTimeoutMs: 40,
      });
      const session = await open(t, provider);
      const events = await ask(session);
      assert.equal(events.at(-1).code, code);
      assert.equal(textOf(events), text);
      assert.equal(only(events, 'tool_use').length, 0);
      assert.equal(textOf(await ask(session)), 'fine');
    });
  }

  test('a hanging answer ends with an abort', async (t) => {
    const provider = scriptedProvider([{ text: 'a', fault: { kind: 'hang' } }, 'fine']);
    const session = await open(t, provider);
    const asking = ask(session);
    while (provider.requests.length === 0) await new Promise((resolve) => setImmediate(resolve));
    await session.abort();
    assert.equal(only(await asking, 'error').length, 0);
    assert.equal(textOf(await ask(session)), 'fine');
  });

  test('every documented option is taken; a late answer is a request timeout', async (t) => {
    const provider = scriptedProvider([{ text: 'x', delayMs: 5000 }, () => new Promise(() => {})], {
      id: 'mine',
      requestTimeoutMs: 30,
      streamIdleTimeoutMs: 1000,
    });
    assert.deepEqual([provider.type, provider.id, provider.requestTimeoutMs], ['scripted', 'mine', 30]);
    const session = await open(t, provider);
    for (let i = 0; i < 2; i++) assert.equal((await ask(session)).at(-1).code, 'MODEL_REQUEST_TIMEOUT');
  });
});

describe('functions', () => {
  test('a function answers each request and sees it whole', async (t) => {
    const seen = [];
    const provider = scriptedProvider(async (request) => {
      seen.push(request);
      return request.messages.at(-1).role === 'tool' ? 'done' : { toolCalls: [{ name: 'Add', input: { a: 1, b: 1 } }] };
    });
    assert.equal(provider.remaining, Number.POSITIVE_INFINITY);
    const session = await open(t, provider, { systemPrompt: 's', temperature: 0.5, maxOutputTokens: 9 });
    const events = await ask(session);
    assert.equal(results(events)[0].output, 2);
    const { model, messages, tools, temperature, maxOutputTokens } = seen[0];
    assert.deepEqual([model, temperature, maxOutputTokens], ['scripted', 0.5, 9]);
    assert.deepEqual(
      messages.map(({ role, content }) => [role, content]),
      [
        ['system', 's'],
        ['user', 'hi'],
      ],
    );
    assert.deepEqual(tools, [{ name: 'Add', description: 'adds', parameters: add.parameters }]);
    assert.deepEqual(seen, provider.requests);
  });

  test('functions and plain turns mix in a list', async (t) => {
    const provider = scriptedProvider(['one', () => 'two', async () => ({ text: 'three' })]);
    const session = await open(t, provider);
    assert.equal(provider.remaining, 3);
    for (const expected of ['one', 'two', 'three']) assert.equal(textOf(await ask(session)), expected);
    assert.equal(provider.remaining, 0);
  });

  test('a function that throws, rejects or answers nonsense fails the request with a documented code', async (t) => {
    for (const [answer, code, says] of [
      [
        () => {
          throw new Error('my own mistake');
        },
        'MODEL_STREAM_ERROR',
        /my own mistake/,
      ],
      [async () => Promise.reject(new Error('later')), 'MODEL_STREAM_ERROR', /later/],
      [() => 5, 'CONFIG_ERROR', /turn 1/],
      [() => undefined, 'MODEL_STREAM_ERROR', /undefined/],
      [() => ({ text: () => 1 }), 'MODEL_STREAM_ERROR', /function/],
    ]) {
      const session = await open(t, scriptedProvider(answer));
      const { code: got, message } = (await ask(session)).at(-1);
      assert.equal(got, code, message);
      assert.match(message, says);
    }
  });

  test('a function that never settles is left by an abort, and its late answer is dropped', async (t) => {
    const asked = gate();
    const answer = gate();
    let first = true;
    const provider = scriptedProvider(() => {
      if (!first) return 'fine';
      first = false;
      asked.open();
      return answer.opened;
    });
    const session = await open(t, provider);
    const asking = ask(session);
    await asked.opened;
    await session.abort();
    await asking;
    answer.open('late');
    assert.equal(textOf(await ask(session)), 'fine');
  });
});

test('one script may serve several Sessions, which share its turns and its journal', async (t) => {
  const provider = scriptedProvider(['a', 'b']);
  const [one, two] = [await open(t, provider), await open(t, provider)];
  assert.equal(textOf(await ask(one)), 'a');
  assert.equal(textOf(await ask(two)), 'b');
  assert.equal(provider.requests.length, 2);
});

test('a conversation that breaks the protocol is refused before a turn is played', async (t) => {
  const rogue = {
    ...add,
    name: 'Rogue',
    // biome-ignore lint/correctness/useYield: only its result matters
    execute: async function* () {
      return { status: 'success', model: 'x' };
    },
  };
  const provider = scriptedProvider([
    {
      toolCalls: [
        { id: 'a', name: 'Rogue' },
        { id: 'a', name: 'Rogue' },
      ],
    },
    'x',
  ]);
  const session = await open(t, provider, { tools: [rogue] });
  const events = await ask(session);
  assert.equal(events.at(-1).type, 'result', 'ids of one answer are made unique before they reach the history');
  const ids = provider.requests[1].messages[1].tool_calls.map((call) => call.id);
  assert.equal(new Set(ids).size, 2);
});
