// What a logger is told, what it is never told, and that nothing depends on it.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ConfigError, createAgent, createSession, definePlugin } from '@blade-ai/agent-sdk';
import { scriptedProvider } from '@blade-ai/agent-sdk/testing';
import { startModelServer } from './support/model-server.mjs';
import { quiet, run } from './support/program.mjs';
import { all, ask, calls, open, tool } from './support/session.mjs';

/** A logger that keeps what it is told. */
function keeper(more) {
  const entries = [];
  return { entries, log: (entry) => entries.push(entry), ...more };
}

const facts = (entry) => entry.args?.[0] ?? {};
const endings = (entries) => entries.filter((entry) => facts(entry).stage !== undefined).map(facts);

describe('what a logger is told', () => {
  test('the steps of a Session in order, each with its facts', async (t) => {
    const logger = keeper();
    const before = Date.now();
    const { session } = await open(t, [calls(['T', { a: 1 }]), 'end'], {
      logger,
      tools: [tool('T', async () => 'x', { kind: 'write' })],
    });
    const { requestId } = await session.send('go');
    await all(session.stream());
    await session.close();

    for (const entry of logger.entries) {
      assert.ok(['debug', 'info', 'warn', 'error'].includes(entry.level), entry.level);
      assert.match(entry.category, /^[a-z]+$/);
      assert.equal(typeof entry.message, 'string');
      assert.ok(Number.isInteger(entry.timestamp) && entry.timestamp >= before && entry.timestamp <= Date.now());
      assert.equal(entry.sessionId, session.sessionId);
      assert.ok(entry.args === undefined || (Array.isArray(entry.args) && entry.args.length === 1));
    }
    const messages = logger.entries.map(({ message }) => message);
    assert.equal(messages[0], 'session opened');
    assert.equal(messages.at(-1), 'session closed');
    assert.ok(messages.indexOf('request started') < messages.indexOf('request ended'));
    const steps = endings(logger.entries);
    const stages = ['resolve', 'validate', 'permit', 'schedule', 'invoke', 'settle', 'call'];
    assert.deepEqual(
      steps.map(({ stage }) => stage),
      stages,
    );
    for (const { callId, tool: name, kind, outcome, durationMs, requestId: of } of steps) {
      assert.deepEqual({ callId, name, kind, outcome, of }, { ...call('T', 'write'), outcome: 'ok', of: requestId });
      assert.ok(durationMs >= 0);
    }
    function call(name, kind) {
      return { callId: steps[0].callId, name, kind };
    }
  });

  test('failures with their type and code: of a tool, a refusal, a hook, a request', async (t) => {
    const logger = keeper();
    const { session } = await open(t, [calls('Fails', 'Denied', 'Nowhere'), calls('Fails')], {
      logger,
      maxTurns: 1,
      tools: [
        tool('Fails', async () => {
          throw new Error('no');
        }),
        tool('Denied', async () => 'never'),
      ],
      hooks: {
        PreToolUse: [async ({ toolName }) => ({ action: toolName === 'Denied' ? 'abort' : 'continue' })],
        PostToolUseFailure: [
          async () => {
            throw new Error('the hook is broken');
          },
        ],
      },
    });
    await ask(session);
    await session.close();
    const of = (name, stage) => {
      const found = endings(logger.entries).find((step) => step.tool === name && step.stage === stage);
      return [found?.outcome, found?.errorType, found?.errorCode];
    };
    assert.deepEqual(of('Fails', 'invoke'), ['error', 'execution_error', undefined]);
    assert.deepEqual(of('Denied', 'validate'), ['refused', 'permission_denied', 'PERMISSION_DENIED']);
    assert.deepEqual(of('Nowhere', 'resolve'), ['refused', 'execution_error', 'TOOL_NOT_FOUND']);
    assert.deepEqual(of('Nowhere', 'invoke'), [undefined, undefined, undefined]);
    assert.deepEqual(of('Fails', 'hooks').slice(0, 1), ['ok'], 'PreToolUse ran');
    const warned = logger.entries.filter(({ level }) => level === 'warn');
    const hook = warned.find(({ message }) => message.includes('PostToolUseFailure'));
    assert.equal(facts(hook).error, 'the hook is broken');
    const failed = warned.find(({ message }) => message === 'request failed');
    assert.equal(facts(failed).code, 'MAX_TURNS_EXCEEDED');
  });

  test('a tool that was left out because its service is missing', async (t) => {
    const logger = keeper();
    const { session } = await open(t, ['a'], {
      logger,
      tools: [{ ...tool('Needs', async () => 1), services: ['memoryManager'] }],
    });
    await session.close();
    const entry = logger.entries.find(({ message }) => message.startsWith('tool not registered'));
    assert.equal(entry.level, 'debug');
    assert.deepEqual(facts(entry), { tool: 'Needs', service: 'memoryManager' });
  });

  test('retries of the model', async (t) => {
    const logger = keeper();
    const turns = [{ fault: { kind: 'http', status: 503 } }, 'end'];
    const { session } = await open(t, turns, { logger });
    await ask(session);
    await session.close();
    const entry = logger.entries.find(({ category }) => category === 'provider');
    assert.equal(entry.message, 'model call is retried');
    assert.equal(facts(entry).retry, 1);
  });

  test('nothing below its level; a level nobody knows means everything', async (t) => {
    const levels = {};
    for (const level of ['debug', 'info', 'warn', 'error', 'silly', undefined]) {
      const logger = keeper({ level });
      const { session } = await open(t, [calls('T'), 'end'], {
        logger,
        tools: [tool('T', async () => Promise.reject(new Error('no')))],
        hooks: { PostToolUseFailure: [async () => Promise.reject(new Error('broken'))] },
      });
      await ask(session);
      await session.close();
      levels[level] = [...new Set(logger.entries.map((entry) => entry.level))].sort();
    }
    const everything = ['debug', 'warn'];
    assert.deepEqual(levels, {
      debug: everything,
      info: ['warn'],
      warn: ['warn'],
      error: [],
      silly: everything,
      undefined: everything,
    });
  });

  test('only of its own Session; a fork and an agent have it too', async (t) => {
    const [one, other] = [keeper(), keeper()];
    const first = await open(t, [calls('Nowhere'), 'end', calls('Nowhere'), 'end'], { logger: one });
    const second = await open(t, [calls('Nowhere'), 'end'], { logger: other });
    const silent = await open(t, [calls('Nowhere'), 'end']);
    await Promise.all([ask(first.session), ask(second.session), ask(silent.session)]);
    const fork = await first.session.fork();
    await ask(fork);
    const provider = scriptedProvider(['hello']);
    const agent = await createAgent({ provider, model: 'm', advanced: { logger: other } });
    await (await agent.send('hi')).text();
    for (const session of [first.session, second.session, silent.session, fork, agent]) await session.close();
    const sessions = (logger) => new Set(logger.entries.map(({ sessionId }) => sessionId));
    assert.deepEqual(sessions(one), new Set([first.session.sessionId, fork.sessionId]));
    assert.deepEqual(sessions(other), new Set([second.session.sessionId, agent.sessionId]));
  });

  test('the oldest entries leave when the thread does not come to take them, and are counted', async (t) => {
    const logger = keeper();
    const names = Array.from({ length: 400 }, (_, n) => `Nowhere${n}`);
    const { session } = await open(t, [calls(...names), 'end'], { logger });
    await session.send('go');
    const stream = session.stream();
    const first = stream.next();
    // The request goes on by itself; this thread looks at it without taking anything.
    while (session.messages.length < 402);
    await first;
    await all(stream);
    await session.close();
    const dropped = logger.entries.filter(({ category }) => category === 'logger');
    assert.equal(dropped.length, 1);
    assert.equal(dropped[0].level, 'warn');
    assert.match(dropped[0].message, /^\d+ entries dropped/);
    const seen = endings(logger.entries).filter(({ stage }) => stage === 'call').length;
    assert.ok(seen > 0 && seen < 400, `${seen} calls`);
    // Nothing was lost without being counted: three entries a call, and four of the Session and its request.
    assert.equal(logger.entries.length - 1 + facts(dropped[0]).dropped, 3 * 400 + 4);
  });
});

describe('what a logger is never told', () => {
  const key = 'sk-live-0123456789abcdef';
  const header = 'header-secret-42';

  test('contents of the conversation, arguments, results, headers', async (t) => {
    const logger = keeper();
    const { session } = await open(
      t,
      [calls(['T', { a: 'PRIVATE-argument' }], ['Bad', { n: 'PRIVATE-value' }]), 'PRIVATE-answer'],
      {
        logger,
        systemPrompt: 'PRIVATE-instructions',
        tools: [
          tool('T', async () => 'PRIVATE-result'),
          tool('Bad', async () => 1, { parameters: { type: 'object', properties: { n: { type: 'integer' } } } }),
        ],
        permissionHandler: async () => ({ behavior: 'allow', updatedInput: { b: 'PRIVATE-change' } }),
        hooks: {
          PreToolUse: [async () => ({ action: 'continue', modifiedInput: { c: 'PRIVATE-input' } })],
          PostToolUse: [async () => ({ action: 'continue', modifiedOutput: 'PRIVATE-output' })],
        },
      },
    );
    await ask(session, 'PRIVATE-message');
    await session.close();
    assert.ok(logger.entries.length > 15);
    const said = JSON.stringify(logger.entries);
    assert.ok(!said.includes('PRIVATE'), said.match(/.{80}PRIVATE.{40}/)?.[0]);
  });

  test("secrets, where a provider's error, a hook's error and a tool's error hold them", async (t) => {
    const secret = 'token-of-the-host-77';
    process.env.LOGGER_TEST_TOKEN = secret;
    t.after(() => delete process.env.LOGGER_TEST_TOKEN);
    const quoted = `refused ${key} and ${header}`;
    const server = await startModelServer([
      { toolCalls: [{ name: 'T' }] },
      { pieces: [`data: ${JSON.stringify({ error: { message: quoted, type: 'invalid_request_error' } })}\n\n`] },
      { status: 401, body: { error: { message: quoted } } },
    ]);
    t.after(server.close);
    const logger = keeper();
    const everything = `${key} ${header} ${secret} context-secret-9 Authorization: Bearer zzzzzzzzzzzzzzzzzzzz`;
    const session = await createSession({
      provider: {
        type: 'openai-compatible',
        baseUrl: server.url,
        apiKey: key,
        headers: { 'x-team': header },
        retry: { maxRetries: 0 },
      },
      model: 'm',
      permissionMode: 'yolo',
      logger,
      defaultContext: { environment: { DEPLOY_PASSWORD: 'context-secret-9' } },
      tools: [
        tool('T', async () => {
          throw Object.assign(new Error(everything), { code: key });
        }),
      ],
      hooks: {
        PostToolUseFailure: [
          async () => {
            throw new Error(everything);
          },
        ],
      },
    });
    t.after(() => session.close());
    await ask(session);
    await ask(session);
    await session.close();

    const hook = logger.entries.find(({ message }) => message.includes('PostToolUseFailure'));
    assert.match(facts(hook).error, /^\*\*\* \*\*\* \*\*\* \*\*\* Authorization: \*\*\*$/);
    const failed = logger.entries.filter(({ message }) => message === 'request failed');
    assert.equal(failed.length, 2);
    for (const entry of failed) assert.match(facts(entry).reason, /refused \*\*\* and \*\*\*/);
    const said = JSON.stringify(logger.entries);
    for (const text of [key, header, secret, 'context-secret-9', 'zzzzzz']) assert.ok(!said.includes(text), text);
  });
});

describe('nothing depends on a logger', () => {
  test('what is no logger is refused', async () => {
    for (const logger of [null, {}, { log: 'x' }, () => {}, 'console', 1]) {
      await assert.rejects(createSession({ provider: scriptedProvider(['a']), model: 'm', logger }), (error) => {
        assert.ok(error instanceof ConfigError);
        assert.match(error.message, /^logger must be an object with log/);
        return true;
      });
    }
  });

  test('one that throws, rejects or never answers breaks nothing and is told everything', async () => {
    const program = (log) => `
      let told = 0;
      const logger = { log(entry) { told++; ${log} } };
      const s = await open([calls('T'), 'end'], { logger, tools: [tool('T', async () => 1)] });
      await s.send('go');
      const types = [];
      for await (const { type } of s.stream()) types.push(type);
      await s.close();
      say(types.at(-1) + ' ' + (told > 9));`;
    const ways = [
      `throw new Error('no');`,
      `throw undefined;`,
      `throw Object.freeze({ get message() { throw 1; } });`,
      `return Promise.reject(new Error('no'));`,
      `return { get then() { throw new Error('no'); } };`,
      `return { then(_, reject) { reject(Symbol('no')); } };`,
      `return { then() { throw new Error('no'); } };`,
      `return forever();`,
      `entry.args = null; Object.freeze(entry); return entry;`,
    ];
    for (const log of ways) assert.deepEqual(await run(program(log)), quiet('result true'), log);
  });

  test('a logger may use the Session that speaks', async (t) => {
    // Entries keep nothing alive.
    const alive = setInterval(() => {}, 1_000);
    t.after(() => clearInterval(alive));
    let session;
    const closed = new Promise((resolve) => {
      const logger = {
        log({ message }) {
          if (message === 'request ended') resolve(session.close());
        },
      };
      open(t, ['end'], { logger }).then(async (opened) => {
        session = opened.session;
        await session.send('go');
        for await (const _ of session.stream());
      });
    });
    await closed;
    assert.ok(session.isClosed);
  });

  for (const [name, more] of [
    ['at once', {}],
    ['after its hooks', { hooks: { SessionEnd: [async () => ({ action: 'continue' })] } }],
  ]) {
    test(`a Session that closes ${name} tells its last entries before close resolves, and none after`, async (t) => {
      const logger = keeper();
      const { session } = await open(t, ['end'], { logger, ...more });
      await ask(session);
      await session.close();
      const told = logger.entries.map(({ message }) => message);
      assert.equal(told.at(-1), 'session closed');
      await session.close();
      await session.abort();
      await assert.rejects(session.send('again'));
      for (let n = 0; n < 3; n++) await new Promise((resolve) => setImmediate(resolve));
      assert.equal(logger.entries.length, told.length);
    });
  }

  test('a Session that is not opened in the end says so and is closed', async () => {
    const logger = keeper();
    const refuse = definePlugin({ name: 'p', hooks: { SessionStart: [async () => ({ action: 'abort' })] } });
    const options = { provider: scriptedProvider(['a']), model: 'm', logger, plugins: [refuse] };
    await assert.rejects(createSession(options), { code: 'HOOK_ABORTED' });
    const told = logger.entries.map(({ message }) => message);
    assert.equal(told[0], 'session opened');
    assert.equal(told.at(-1), 'session closed');
    assert.deepEqual(
      endings(logger.entries).map(({ event, outcome }) => [event, outcome]),
      [['SessionStart', 'ok']],
    );
  });

  const busy = (logger) => `
    const options = { ${logger} tools: [
      tool('Works', async () => 'x'), tool('Throws', async () => { throw new Error('no'); }),
      generator('Yields', async function* () { yield { kind: 'progress', message: 'p' }; return { status: 'success', model: 'y' }; }),
      { ...tool('Needs', async () => 1), services: ['memoryManager'] },
    ], hooks: { PostToolUseFailure: [async () => { throw new Error('broken'); }] } };
    const turn = calls('Works', 'Throws', 'Yields', 'Nowhere');
    const s = await open([turn, { fault: { kind: 'http', status: 503 } }, 'end', turn, { fault: { kind: 'hang' } }], options);
    await s.send('go');
    for await (const _ of s.stream());
    await s.send('again');
    for await (const event of s.stream()) if (event.type === 'turn_end') break;
    await s.close();`;
  test('nothing is ever printed, with a logger and without one, and with both in one process', async () => {
    const logger = 'logger: { log() {} },';
    for (const program of [busy(''), busy(logger), `{${busy(logger)}} {${busy('')}}`]) {
      assert.deepEqual(await run(program, { env: { RUST_LOG: 'trace' } }), quiet());
    }
  });

  test('a Session with a logger holds no process up', async () => {
    const program = `
      let told = 0;
      const s = await open(['end'], { logger: { log() { told++; } } });
      await s.send('go');
      for await (const _ of s.stream());
      while (told < 3) await macrotask();
      say('told');`;
    assert.deepEqual(await run(program), quiet('told'));
  });

  test('a Session with a logger is collected like any other', async () => {
    const program = `
      let collected = false;
      const registry = new FinalizationRegistry(() => { collected = true; });
      await (async () => {
        const s = await open(['end'], { logger: { log() {} } });
        registry.register(s);
        await s.send('go');
        for await (const _ of s.stream());
      })();
      for (let n = 0; n < 50 && !collected; n++) { gc(); await macrotask(); }
      say('collected ' + collected);`;
    assert.deepEqual(await run(program, { flags: ['--expose-gc'] }), quiet('collected true'));
  });
});
