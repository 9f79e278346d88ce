// A Session from its first message to its end: events, history, accounting, and every state it can be in.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { AgentResponse, createAgent, createSession, prompt, SdkError, SessionInputError } from '@blade-ai/agent-sdk';
import { scriptedProvider } from '@blade-ai/agent-sdk/testing';
import { all, ask, calls, deferred, macrotask, ofType, open, textOf, tool } from './support/session.mjs';

const types = (events) => events.map(({ type }) => type);
const said = ({ messages }) => messages.map(({ role, content }) => [role, content]);
const echo = tool('Echo', async (params) => params);
/** A tool that runs until its signal fires, and a promise of its start. */
function waiting() {
  const started = deferred();
  const wait = tool('Wait', async (_, { signal }) => {
    started.resolve();
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    return 'stopped';
  });
  return { started: started.promise, wait };
}

describe('a request', () => {
  test('events come in their documented order and shape', async (t) => {
    const turns = [{ thinking: 'hm', text: ['I ', 'call'], ...calls(['Echo', { a: 1 }]) }, { text: 'done' }];
    const { session } = await open(t, turns, { tools: [echo] });
    await session.send('go');
    const events = await all(session.stream({ includeThinking: true }));
    const { sessionId } = session;
    const { id } = ofType(events, 'tool_use')[0];
    const { usage } = ofType(events, 'usage')[0];
    assert.deepEqual(events, [
      { type: 'turn_start', turn: 1, sessionId },
      { type: 'thinking', delta: 'hm', sessionId },
      { type: 'content', delta: 'I ', sessionId },
      { type: 'content', delta: 'call', sessionId },
      { type: 'tool_use', id, name: 'Echo', input: { a: 1 }, sessionId },
      { type: 'tool_result', id, name: 'Echo', output: { a: 1 }, isError: false, sessionId },
      { type: 'turn_end', turn: 1, sessionId },
      { type: 'turn_start', turn: 2, sessionId },
      { type: 'content', delta: 'done', sessionId },
      { type: 'turn_end', turn: 2, sessionId },
      { type: 'usage', usage, sessionId },
      { type: 'result', subtype: 'success', content: 'done', sessionId },
    ]);
  });

  test('the history grows over requests and is what the model is sent', async (t) => {
    const { session, provider } = await open(t, [calls(['Echo', { n: 1 }]), 'one', 'two'], {
      tools: [echo],
      systemPrompt: 'be brief',
    });
    await ask(session, 'first');
    await ask(session, [{ type: 'text', text: 'second' }]);
    const [system, ...rest] = provider.requests[2].messages.map(({ role, content }) => [role, content]);
    assert.deepEqual(system, ['system', 'be brief']);
    const history = said(session);
    assert.deepEqual(
      history.map(([role]) => role),
      ['user', 'assistant', 'tool', 'assistant', 'user', 'assistant'],
    );
    assert.deepEqual(
      rest.map(([role]) => role),
      history.slice(0, -1).map(([role]) => role),
    );
    assert.deepEqual(history.at(-1), ['assistant', 'two']);
    session.messages.push('mine');
    session.messages[0].content = 'changed';
    assert.deepEqual(said(session), history);
  });

  test('usage is the last call’s tokens and the sum of all', async (t) => {
    const turns = [
      { ...calls('Echo'), usage: { inputTokens: 10, outputTokens: 3 } },
      { text: 'end', usage: { inputTokens: 20, outputTokens: 4 } },
    ];
    const { session } = await open(t, turns, { tools: [echo], maxContextTokens: 5_000 });
    const [{ usage }] = ofType(await ask(session), 'usage');
    assert.deepEqual(usage, { inputTokens: 20, outputTokens: 4, totalTokens: 37, maxContextTokens: 5_000 });
  });

  const failures = {
    'an error of the provider': [{ fault: { kind: 'http', status: 401, message: 'no key' } }, /no key/],
    'a malformed answer': [{ fault: { kind: 'malformed' } }, /./],
    'a filtered answer': [{ finishReason: 'content_filter' }, /filter/],
    'an answer cut before anything': [{ finishReason: 'length' }, /limit/],
  };
  for (const [name, [turn, message]] of Object.entries(failures)) {
    test(`${name} ends with one error event that has a code, and the Session goes on`, async (t) => {
      const { session } = await open(t, [turn, 'fine']);
      const events = await ask(session);
      const error = events.at(-1);
      assert.equal(error.type, 'error');
      assert.match(error.code, /^[A-Z_]+$/);
      assert.match(error.message, message);
      assert.deepEqual([...ofType(events, 'result'), ...ofType(events, 'usage')], []);
      assert.equal(textOf(await ask(session)), 'fine');
    });
  }

  test('the turn limit is kept, of the Session, of the request, and as it was set', async (t) => {
    const { session } = await open(t, () => calls('Echo'), { tools: [echo], maxTurns: 3 });
    const turns = async (options) => {
      const events = await ask(session, 'go', options);
      assert.equal(events.at(-1).code, 'MAX_TURNS_EXCEEDED');
      return ofType(events, 'turn_start').length;
    };
    assert.equal(await turns(), 3);
    assert.equal(await turns({ maxTurns: 2 }), 2);
    session.setMaxTurns(1);
    assert.equal(await turns(), 1);
    for (const wrong of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, '5', null]) {
      assert.throws(() => session.setMaxTurns(wrong), { code: 'CONFIG_ERROR' }, String(wrong));
      assert.equal(await turns(), 1);
    }
  });

  test('calls of one turn are answered in declared order, whatever order they end in', async (t) => {
    const gates = [deferred(), deferred(), deferred()];
    const slow = tool('Slow', async ({ n }) => gates[n].promise.then(() => n), { kind: 'readonly' });
    const turn = calls(...[0, 1, 2].map((n) => ['Slow', { n }]));
    const { session, provider } = await open(t, [turn, 'end'], { tools: [slow] });
    await session.send('go');
    const shown = [];
    for await (const event of session.stream()) {
      if (event.type === 'tool_use' && event.input.n === 2) gates[2].resolve();
      if (event.type !== 'tool_result') continue;
      shown.push(event.output);
      gates[event.output - 1]?.resolve();
    }
    assert.deepEqual(shown, [2, 1, 0]);
    const answers = provider.requests[1].messages.filter(({ role }) => role === 'tool');
    assert.deepEqual(
      answers.map(({ content }) => content),
      ['0', '1', '2'],
    );
  });
});

describe('send', () => {
  test('a second one is a typed error while a request is pending or running, and changes nothing', async (t) => {
    const { started, wait } = waiting();
    const { session } = await open(t, [calls('Wait'), 'second'], { tools: [wait] });
    const busy = { code: 'SESSION_STEERING_UNAVAILABLE' };
    await session.send('first');
    await assert.rejects(
      session.send('again'),
      (error) => error instanceof SessionInputError && error.code === busy.code,
    );
    const events = all(session.stream());
    await started;
    await assert.rejects(session.send('again'), busy);
    for (const options of [{ maxTurns: 1 }, { context: {} }, { signal: new AbortController().signal }]) {
      await assert.rejects(session.send('again', options), { code: 'SESSION_INPUT_OPTIONS_UNSUPPORTED' });
    }
    await session.abort();
    await events;
    assert.equal(textOf(await ask(session, 'second')), 'second');
    assert.deepEqual(
      said(session)
        .filter(([role]) => role === 'user')
        .map(([, content]) => content),
      ['first', 'second'],
    );
  });

  test('expectedRequestId must name the active request', async (t) => {
    const { session } = await open(t, ['a']);
    const mismatch = { code: 'SESSION_REQUEST_MISMATCH' };
    await assert.rejects(session.send('x', { expectedRequestId: 'nothing' }), mismatch);
    const { status, inputId, requestId } = await session.send('go');
    assert.equal(status, 'started');
    assert.notEqual(inputId, requestId);
    await assert.rejects(session.send('x', { expectedRequestId: 'another' }), mismatch);
    await assert.rejects(session.send('x', { expectedRequestId: requestId }), { code: 'SESSION_STEERING_UNAVAILABLE' });
    assert.equal(textOf(await all(session.stream())), 'a');
  });

  test('the pending input is listed until it runs', async (t) => {
    const { session } = await open(t, ['a']);
    assert.deepEqual(session.getPendingInputs(), []);
    const before = Date.now();
    const { inputId, requestId } = await session.send('go');
    const [pending, ...none] = session.getPendingInputs();
    assert.deepEqual(none, []);
    const { acceptedAt, ...rest } = pending;
    assert.deepEqual(rest, { inputId, targetRequestId: requestId, content: 'go', priority: 'next' });
    assert.ok(acceptedAt >= before && acceptedAt <= Date.now(), `accepted at ${acceptedAt}`);
    await all(session.stream());
    assert.deepEqual(session.getPendingInputs(), []);
  });

  for (const message of [undefined, null, 5, {}, [{ type: 'video' }], [{ type: 'text' }], [5], () => {}]) {
    test(`a message that is ${JSON.stringify(message) ?? typeof message} is a typed error`, async (t) => {
      const { session } = await open(t, ['fine']);
      await assert.rejects(
        session.send(message),
        (error) => error instanceof SdkError && error.code === 'CONFIG_ERROR',
      );
      assert.equal(textOf(await ask(session)), 'fine');
    });
  }

  test('text with half a surrogate pair is sent with U+FFFD in its place', async (t) => {
    const { session, provider } = await open(t, ['ok']);
    await ask(session, 'a\ud83d and \\ud83d');
    assert.equal(provider.requests[0].messages[0].content, 'a\ufffd and \\ud83d');
  });
});

describe('abort', () => {
  test('of an idle Session does nothing', async (t) => {
    const { session } = await open(t, ['a']);
    await session.abort();
    await Promise.all([session.abort(), session.abort()]);
    assert.equal(textOf(await ask(session)), 'a');
    await session.abort();
  });

  test('of a pending request drops it without running', async (t) => {
    const { session, provider } = await open(t, ['a']);
    await session.send('dropped');
    await session.abort();
    assert.deepEqual(session.getPendingInputs(), []);
    await assert.rejects(session.stream().next(), { code: 'SESSION_NO_PENDING_MESSAGE' });
    assert.equal(provider.requests.length, 0);
    assert.equal(textOf(await ask(session, 'kept')), 'a');
    assert.deepEqual(said(session), [
      ['user', 'kept'],
      ['assistant', 'a'],
    ]);
  });

  test('of a running request waits for its tools and ends the stream with neither result nor error', async (t) => {
    const { started, wait } = waiting();
    const { session } = await open(t, [{ text: 'first', ...calls('Wait') }, 'second'], { tools: [wait] });
    await session.send('go');
    const events = all(session.stream());
    await started;
    await Promise.all([session.abort(), session.abort()]);
    const seen = types(await events);
    assert.deepEqual(seen.slice(0, 3), ['turn_start', 'content', 'tool_use']);
    for (const type of ['usage', 'result', 'error']) assert.ok(!seen.includes(type), type);
    assert.equal(textOf(await ask(session)), 'second');
  });

  test('inside of the loop works, and what was buffered stays readable', async (t) => {
    const text = Array.from({ length: 500 }, (_, n) => `${n} `);
    const { session } = await open(t, [{ text }, 'second']);
    await session.send('go');
    let deltas = 0;
    for await (const event of session.stream()) {
      if (event.type === 'content' && deltas++ === 0) await session.abort();
    }
    assert.ok(deltas > 0);
    assert.equal(textOf(await ask(session)), 'second');
  });

  test('of a model that hangs ends at once', async (t) => {
    const { session } = await open(t, [{ text: ['a'], fault: { kind: 'hang', after: 1 } }, 'second']);
    await session.send('go');
    for await (const event of session.stream()) if (event.type === 'content') await session.abort();
    assert.equal(textOf(await ask(session)), 'second');
  });

  test('leaves a history the next request can use, whatever was under way', async (t) => {
    const { started, wait } = waiting();
    const { session, provider } = await open(t, [calls('Wait', 'Echo'), 'second'], { tools: [wait, echo] });
    await session.send('go');
    const events = all(session.stream());
    await started;
    await session.abort();
    await events;
    await ask(session, 'again');
    // The scripted provider refuses a request with an orphan result or a lost call.
    const roles = provider.requests[1].messages.map(({ role }) => role);
    assert.equal(roles.at(-1), 'user');
    assert.equal(provider.remaining, 0);
  });
});

describe('close', () => {
  test('is idempotent, shared by concurrent callers, and final', async (t) => {
    const { session } = await open(t, ['a']);
    assert.equal(session.isClosed, false);
    await Promise.all([session.close(), session.close(), session.close()]);
    await session.close();
    await session[Symbol.asyncDispose]();
    assert.equal(session.isClosed, true);
    await assert.rejects(session.send('x'), { code: 'SESSION_CLOSED', message: /closed/ });
    await assert.rejects(session.stream().next(), { code: 'SESSION_CLOSED' });
    await assert.rejects(session.fork(), { code: 'SESSION_CLOSED' });
    await session.abort();
    assert.deepEqual(session.messages, []);
  });

  test('of a running request cancels it, waits, and ends the stream', async (t) => {
    const { started, wait } = waiting();
    const { session } = await open(t, [calls('Wait')], { tools: [wait] });
    await session.send('go');
    const events = all(session.stream());
    await started;
    await Promise.all([session.close(), session.abort(), session.close()]);
    assert.equal(session.isClosed, true);
    assert.ok(!types(await events).includes('result'));
  });

  test('of a pending request drops it', async (t) => {
    const { session, provider } = await open(t, ['a']);
    await session.send('go');
    await session.close();
    assert.equal(provider.requests.length, 0);
  });

  test('many at once, with consumers and aborts in every state, all settle', async (t) => {
    for (let round = 0; round < 60; round++) {
      const { started, wait } = waiting();
      const { session } = await open(t, [calls('Wait')], { tools: [wait] });
      await session.send('go');
      const stream = session.stream();
      const reading = Promise.all([stream.next(), stream.next(), stream.next(), stream.next(), stream.next()]);
      if (round % 3 === 0) await started;
      if (round % 3 === 1) await macrotask();
      const ends = [() => session.abort(), () => session.close(), () => stream.return(), () => session.close()];
      await Promise.all([...ends.slice(round % 4), ...ends.slice(0, round % 4)].map((end) => end()));
      assert.equal((await reading).at(-1).done, true);
      assert.deepEqual(await stream.next(), { value: undefined, done: true });
      assert.equal(session.isClosed, true);
    }
  });

  test('fails while a callback that ignored its signal goes on, and can be tried again', async (t) => {
    const asked = deferred();
    const answer = deferred();
    const { session } = await open(t, [calls('Echo')], {
      tools: [echo],
      permissionHandler: () => {
        asked.resolve();
        return answer.promise;
      },
    });
    await session.send('go');
    const events = all(session.stream());
    await asked.promise;
    await session.abort();
    await events;
    await assert.rejects(session.close(), { code: 'SESSION_BUSY', message: /permission callback/ });
    assert.equal(session.isClosed, false);
    answer.resolve({ behavior: 'deny', message: 'late' });
    await session.close();
    assert.equal(session.isClosed, true);
  });
});

describe('settings and forks', () => {
  test('setters hold for later requests', async (t) => {
    const { session, provider } = await open(t, () => calls('Echo'), { tools: [echo], maxTurns: 1 });
    await ask(session);
    await session.setModel('  other ');
    await session.setModel('   ');
    session.setPermissionMode('default');
    const [result] = ofType(await ask(session), 'tool_result');
    assert.equal(provider.requests[1].model, 'other');
    assert.equal(result.isError, true);
    assert.deepEqual(await session.supportedModels(), [{ id: 'default', name: 'other', provider: 'scripted' }]);
    for (const wrong of ['sometimes', () => {}, 1n]) {
      assert.throws(() => session.setPermissionMode(wrong), { code: 'CONFIG_ERROR' });
    }
    for (const wrong of [null, 5, new Date(), () => {}]) {
      await assert.rejects(session.setModel(wrong), { code: 'CONFIG_ERROR' });
    }
    for (const wrong of [null, 5, 'x']) {
      assert.throws(() => session.setDefaultContext(wrong), { code: 'CONFIG_ERROR' });
      assert.throws(() => session.stream(wrong), { code: 'CONFIG_ERROR' });
      await assert.rejects(session.send('go', wrong), { code: 'CONFIG_ERROR' });
      await assert.rejects(session.fork(wrong), { code: 'CONFIG_ERROR' });
      await assert.rejects(createAgent(wrong), { code: 'CONFIG_ERROR' });
    }
    assert.equal((await session.supportedModels())[0].name, 'other');
  });

  test('the default context is a copy on the way in and out', async (t) => {
    const given = { environment: { A: '1' } };
    const { session } = await open(t, ['a'], { defaultContext: given });
    given.environment.A = '2';
    assert.deepEqual(session.getDefaultContext(), { environment: { A: '1' } });
    session.getDefaultContext().environment.A = '3';
    const next = { environment: { B: '1' } };
    session.setDefaultContext(next);
    next.environment.B = '2';
    assert.deepEqual(session.getDefaultContext(), { environment: { B: '1' } });
    assert.throws(() => session.setDefaultContext({ environment: { C: () => {} } }));
    assert.throws(() => session.setDefaultContext({ environment: 5 }), { code: 'CONFIG_ERROR' });
    assert.deepEqual(session.getDefaultContext(), { environment: { B: '1' } });
  });

  test('a fork has the conversation and goes its own way', async (t) => {
    const { session, provider } = await open(t, ['one', 'two', 'three']);
    await ask(session, 'first');
    const fork = await session.fork();
    t.after(() => fork.close());
    assert.notEqual(fork.sessionId, session.sessionId);
    await ask(fork, 'of the fork');
    await session.close();
    await ask(fork, 'again');
    const users = ({ messages }) => messages.filter(({ role }) => role === 'user').map(({ content }) => content);
    assert.deepEqual(users(session), ['first']);
    assert.deepEqual(users(fork), ['first', 'of the fork', 'again']);
    assert.deepEqual(users(provider.requests[1]), ['first', 'of the fork']);
  });
});

describe('prompt', () => {
  const options = (turns, more) => ({ provider: scriptedProvider(turns), model: 'm', permissionMode: 'yolo', ...more });

  test('gives text, records, usage, duration and turns', async () => {
    const slow = tool('Slow', async () => {
      await new Promise((resolve) => setTimeout(resolve, 15));
      return 'slow';
    });
    const bad = tool('Bad', async () => {
      throw new Error('no');
    });
    const turns = [calls(['Slow', { a: 1 }], 'Bad'), { text: 'end', usage: { inputTokens: 1, outputTokens: 2 } }];
    const result = await prompt('go', options(turns, { tools: [slow, bad] }));
    const [first, second] = result.toolCalls;
    assert.deepEqual(
      [result.result, result.turnsCount, first.name, first.input, first.output, first.isError],
      ['end', 2, 'Slow', { a: 1 }, 'slow', false],
    );
    assert.deepEqual([second.name, second.isError], ['Bad', true]);
    assert.ok(first.duration >= 14 && first.duration < 5_000, `the tool took ${first.duration} ms`);
    assert.ok(result.duration >= first.duration, `${result.duration} ms in all`);
    assert.equal(result.usage.outputTokens, 2);
  });

  test('throws the failure with its code, and not that of closing', async () => {
    const turns = [{ fault: { kind: 'http', status: 400, message: 'bad request' } }];
    await assert.rejects(prompt('go', options(turns)), (error) => {
      assert.ok(error instanceof SdkError);
      assert.match(error.message, /bad request/);
      assert.match(error.code, /^MODEL_/);
      return true;
    });
    await assert.rejects(prompt(5, options(['a'])), { code: 'CONFIG_ERROR' });
    await assert.rejects(prompt('go', { provider: null, model: 'm' }), { code: 'CONFIG_ERROR' });
  });
});

describe('createAgent', () => {
  const agentOf = async (t, turns, more) => {
    const agent = await createAgent({ provider: scriptedProvider(turns), model: 'm', ...more });
    t.after(() => agent.close());
    return agent;
  };

  test('every reader of a response sees all of it, before, during and after', async (t) => {
    const agent = await agentOf(t, [{ text: ['a', 'b', 'c'] }]);
    const response = await agent.send('go');
    assert.ok(response instanceof AgentResponse);
    assert.equal(response.isSettled, false);
    assert.equal(response.submission.status, 'started');
    const heard = [];
    response.on('content', async ({ delta }) => {
      await macrotask();
      heard.push(delta);
    });
    const read = async () => {
      let text = '';
      for await (const delta of response.textStream()) text += delta;
      return text;
    };
    assert.deepEqual(await Promise.all([response.text(), read(), read(), response.text()]), [
      'abc',
      'abc',
      'abc',
      'abc',
    ]);
    assert.equal(response.isSettled, true);
    assert.deepEqual(heard, ['a', 'b', 'c']);
    assert.deepEqual(types(await all(response.stream())), [
      'turn_start',
      'content',
      'content',
      'content',
      'turn_end',
      'usage',
      'result',
    ]);
    const late = deferred();
    response.on('result', late.resolve);
    assert.equal((await late.promise).content, 'abc');
  });

  test('a response that was not read keeps the next message out, until it is read or the agent aborts', async (t) => {
    const agent = await agentOf(t, ['one', 'two', 'three', 'four']);
    const first = await agent.send('go');
    await assert.rejects(agent.send('again'), { code: 'SESSION_STEERING_UNAVAILABLE', message: /previous response/ });
    assert.equal(await first.text(), 'one');
    const second = await agent.send('again');
    await agent.abort();
    assert.equal(second.isSettled, true);
    assert.equal(await second.text(), '');
    const third = await agent.send('and again');
    third.on('content', () => {});
    await agent.abort();
    assert.equal(await third.text(), '', 'aborted in the tick in which it was first listened to');
    const fourth = await agent.send('the last');
    assert.equal(await fourth.text(), 'two');
  });

  test('a failure rejects text() with its code and shows as an event in stream()', async (t) => {
    const agent = await agentOf(t, [{ fault: { kind: 'http', status: 400, message: 'bad request' } }, 'fine']);
    const response = await agent.send('go');
    await assert.rejects(response.text(), (error) => error instanceof SdkError && /^MODEL_/.test(error.code));
    await assert.rejects(response.textStream().next(), /bad request/);
    assert.equal((await all(response.stream())).at(-1).type, 'error');
    assert.equal(await (await agent.send('again')).text(), 'fine');
  });

  test('a listener that throws fails the response and cancels the request', async (t) => {
    const long = { text: Array(5_000).fill('x') };
    const agent = await agentOf(t, [long, long, 'fine']);
    for (const listener of [
      () => {
        throw new Error('mine');
      },
      async () => {
        throw new Error('mine');
      },
    ]) {
      const response = await agent.send('go');
      response.on('content', listener);
      await assert.rejects(response.text(), { message: 'mine' });
      await assert.rejects(all(response.stream()), { message: 'mine' });
    }
    assert.equal(await (await agent.send('again')).text(), 'fine');
  });

  test('the agent is a Session otherwise', async (t) => {
    const agent = await agentOf(t, ['one']);
    assert.equal(agent.isClosed, false);
    assert.equal(typeof agent.sessionId, 'string');
    await (await agent.send('go')).text();
    assert.equal(agent.messages.length, 2);
    await agent.close();
    assert.equal(agent.isClosed, true);
    await assert.rejects(agent.send('x'), { code: 'SESSION_CLOSED' });
  });

  test('a response cannot be made by hand', () => {
    assert.throws(() => new AgentResponse(), TypeError);
  });
});

describe('options that cannot work', () => {
  for (const [name, options] of Object.entries({
    'no provider': { provider: undefined },
    'no model': { model: undefined },
    'a blank model': { model: '  ' },
    'a handler that is no function': { permissionHandler: {} },
    'tools that are no list': { tools: { length: 1 } },
    'a tool that is none': { tools: [{ name: 'x' }] },
    'two tools of one name': { tools: [echo, echo] },
    'a mode that does not exist': { permissionMode: 'sometimes' },
    'a limit that is no number': { maxTurns: '5' },
    'an infinite limit': { toolTimeoutMs: Number.POSITIVE_INFINITY },
  })) {
    test(`${name} is refused at once`, async () => {
      const base = { provider: scriptedProvider(['a']), model: 'm' };
      await assert.rejects(createSession({ ...base, ...options }), (error) => error instanceof Error);
    });
  }
});
