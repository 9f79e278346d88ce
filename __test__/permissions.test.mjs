// Who may do what, through the public surface: modes, handlers, rules, confirmations, approvals, and what is shown.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { createCompositePermissionHandler, createRuleBasedPermissionHandler } from '@blade-ai/agent-sdk';
import { tool, generator, calls, open, turn } from './support/pipeline.mjs';
import { ask, folder, results } from './support/run.mjs';

describe('permissions', () => {
  for (const [command, ran] of [
    ['echo a', true],
    ['echo a && echo b', true],
    ['echo a; touch x', false],
    ['echo a\ntouch x', false],
    ['echo $(touch x)', false],
    ['echo "`touch x`"', false],
    ['echo a > x', false],
    ['PATH=. echo a', false],
    ['echo a | xargs touch', false],
    ['env touch x', false],
    ['echo (', false],
  ]) {
    test(`a rule for the beginning of a command says nothing about the rest: ${JSON.stringify(command)}`, async (t) => {
      const root = folder(t);
      const denying = { allow: ['Bash:*'], deny: ['Bash:touch*', 'Bash:>*', 'Bash:PATH=*'] };
      const allowing = { allow: ['Bash:echo *'] };
      for (const rules of [allowing, denying]) {
        const { results: all } = await turn(t, [{ name: 'Bash', input: { command } }], {
          profile: 'local',
          permissionHandler: createRuleBasedPermissionHandler(rules),
          defaultContext: { capabilities: { filesystem: { roots: [root], cwd: root } } },
        });
        const refused = all[0].isError === true;
        assert.equal(existsSync(join(root, 'x')), false);
        if (rules === allowing) assert.equal(refused, !ran, all[0].output);
      }
    });
  }

  test('an approval of a command is none of the same words elsewhere or with another environment', async (t) => {
    const root = folder(t);
    let asked = 0;
    const input = { command: 'make x' };
    const list = [input, input, { ...input, env: { PATH: root } }, { ...input, cwd: root }, { ...input, env: {} }];
    const { session } = await open(t, [...list.map((one) => calls({ name: 'Bash', input: one })), 'done'], {
      profile: 'local',
      confirmationHandler: {
        requestConfirmation: async () => {
          asked += 1;
          return { approved: true, scope: 'session' };
        },
      },
      defaultContext: { capabilities: { filesystem: { roots: [root], cwd: root } } },
    });
    await ask(session);
    assert.equal(asked, 3);
  });

  for (const wrong of [{ denies: ['Bash'] }, { deny: 'Bash' }, { deny: [1] }, { deny: null }, null, 5, () => {}]) {
    test(`rules that are ${JSON.stringify(wrong) ?? typeof wrong} are refused at once`, () => {
      assert.throws(() => createRuleBasedPermissionHandler(wrong), { code: 'CONFIG_ERROR' });
    });
  }

  for (const decision of [
    {},
    { behavior: 'Allow' },
    { behavior: 'dney', message: 'no' },
    { behavior: null },
    null,
    'allow',
  ]) {
    test(`a combined handler takes ${JSON.stringify(decision)} for no permission`, async (t) => {
      for (const strategy of ['first-wins', 'deny-wins']) {
        const allow = async () => ({ behavior: 'allow' });
        const { results: all } = await turn(t, ['Run'], {
          tools: [tool('Run', async () => 'ran', { kind: 'execute' })],
          permissionHandler: createCompositePermissionHandler([allow, async () => decision, allow], strategy),
        });
        assert.equal(all[0].isError, true);
      }
    });
  }

  test('what git would run is not written without a question', async (t) => {
    const root = folder(t);
    const names = ['.git/config', '.git/hooks/pre-commit', 'sub/.GIT/config', 'bare/HEAD'];
    const { results: all } = await turn(
      t,
      names.map((name) => ({ name: 'Write', input: { file_path: join(root, name), content: 'x' } })),
      {
        profile: 'local',
        permissionMode: 'yolo',
        defaultContext: { capabilities: { filesystem: { roots: [root], cwd: root } } },
      },
    );
    for (const [at, name] of names.entries()) {
      assert.match(all[at].output, /needs a confirmation/);
      assert.equal(existsSync(join(root, name)), false);
    }
  });

  const KINDS = ['readonly', 'write', 'execute'];
  const every = () => KINDS.map((kind) => tool(kind, async () => 'ran', { kind }));

  /** mode → what happens to a reading, a writing and an executing tool without any handler. */
  const TABLE = {
    default: ['ran', 'asks', 'asks'],
    autoEdit: ['ran', 'ran', 'asks'],
    yolo: ['ran', 'ran', 'ran'],
    plan: ['ran', 'plan', 'plan'],
  };

  for (const [mode, expected] of Object.entries(TABLE)) {
    test(`mode ${mode} without a handler: ${expected.join(', ')}`, async (t) => {
      const { results: all } = await turn(t, KINDS, { tools: every(), permissionMode: mode });
      for (const [at, result] of all.entries()) {
        assert.equal(result.isError, expected[at] !== 'ran', KINDS[at]);
        if (expected[at] === 'asks')
          assert.match(result.output, /needs a confirmation.*confirmationHandler or permissionHandler/s);
        if (expected[at] === 'plan') assert.match(result.output, /plan mode only runs tools that read/);
      }
    });

    test(`mode ${mode} with a confirmation handler: it is asked where nothing else decides`, async (t) => {
      const asked = [];
      const requestConfirmation = async (details) => {
        asked.push(details.toolName);
        return { approved: true };
      };
      const options = { tools: every(), permissionMode: mode, confirmationHandler: { requestConfirmation } };
      const { results: all } = await turn(t, KINDS, options);
      assert.deepEqual(asked.sort(), KINDS.filter((_, at) => expected[at] === 'asks').sort());
      assert.deepEqual(
        all.map((result) => result.isError),
        expected.map((what) => what === 'plan'),
      );
    });

    test(`mode ${mode} with the fallback to allow: nothing but plan mode refuses`, async (t) => {
      const options = { tools: every(), permissionMode: mode, confirmationFallback: 'allow' };
      const { results: all } = await turn(t, KINDS, options);
      assert.deepEqual(
        all.map((result) => result.isError),
        expected.map((what) => what === 'plan'),
      );
    });

    for (const behavior of ['allow', 'deny', 'ask']) {
      test(`mode ${mode} and a handler that answers ${behavior}: the handler decides, plan mode above it`, async (t) => {
        const seen = [];
        const permissionHandler = async (request) => {
          seen.push([request.toolName, request.permissionMode, request.toolKind]);
          return { behavior, ...(behavior === 'deny' && { message: 'not today' }) };
        };
        const { results: all } = await turn(t, KINDS, { tools: every(), permissionMode: mode, permissionHandler });
        const judged = KINDS.filter((kind) => mode !== 'plan' || kind === 'readonly');
        assert.deepEqual(seen.sort(), judged.map((kind) => [kind, mode, kind]).sort());
        for (const [at, result] of all.entries()) {
          const runs = behavior === 'allow' && judged.includes(KINDS[at]);
          assert.equal(result.isError, !runs, KINDS[at]);
          if (judged.includes(KINDS[at]) && behavior === 'deny') assert.match(result.output, /not today/);
        }
      });
    }
  }

  test('a denial that interrupts, and a person’s no, end the request after the turn', async (t) => {
    const run = tool('Run', async () => 'ran', { kind: 'execute' });
    const never = async () => ({ behavior: 'deny', message: 'stop here', interrupt: true });
    const no = { requestConfirmation: async () => ({ approved: false, reason: 'too risky', feedback: 'use less' }) };
    for (const [options, says] of [
      [{ permissionHandler: never }, /stop here/],
      [{ confirmationHandler: no }, /User rejected execution: too risky.*use less/],
    ]) {
      const { session, provider } = await open(t, [calls('Run'), 'never'], { tools: [run], ...options });
      const events = await ask(session);
      assert.match(results(events)[0].output, says);
      assert.equal(events.at(-1).subtype, 'success');
      assert.match(events.at(-1).content, says);
      assert.equal(provider.requests.length, 1);
    }
  });

  test('a handler that throws, rejects or answers in the wrong form denies', async (t) => {
    const run = tool('Run', async () => 'ran', { kind: 'execute' });
    const wrong = [
      () => {
        throw new Error('broken handler');
      },
      async () => {
        throw undefined;
      },
      async () => 'allow',
      async () => true,
      async () => undefined,
      async () => ({ behavior: 'maybe' }),
      async () => ({ behavior: 'allow', updatedInput: [1] }),
    ];
    for (const answer of wrong) {
      const {
        results: [result],
      } = await turn(t, ['Run'], { tools: [run], permissionHandler: answer });
      assert.equal(result.isError, true, answer.toString());
      assert.match(result.output, /permission handler/);
    }
    for (const answer of [...wrong.slice(0, 6), async () => ({ approved: 'yes' })]) {
      const confirmationHandler = { requestConfirmation: answer };
      const {
        results: [result],
      } = await turn(t, ['Run'], { tools: [run], confirmationHandler });
      assert.equal(result.isError, true, answer.toString());
      assert.match(result.output, /confirmation handler|rejected/);
    }
  });

  test('a rewrite is merged, validated again, and may not change paths', async (t) => {
    const seen = [];
    const move = tool('Move', async (input) => void seen.push(input) ?? 'moved', {
      kind: 'execute',
      parameters: {
        type: 'object',
        properties: { path: { type: 'string' }, times: { type: 'integer' } },
        required: ['path', 'times'],
      },
    });
    const input = { path: '/w/a', times: 1 };
    const run = async (updatedInput) => {
      const permissionHandler = async (request) => {
        // What the handler does to its own copy has no effect.
        request.input.times = 99;
        return { behavior: 'allow', updatedInput };
      };
      return (await turn(t, [{ name: 'Move', input }], { tools: [move], permissionHandler })).results[0];
    };
    assert.equal((await run({ times: 2 })).output, 'moved');
    assert.equal((await run(undefined)).output, 'moved');
    assert.match((await run({ times: 'many' })).output, /times.*integer.*string/);
    assert.match((await run({ path: '/w/b' })).output, /cannot change file system paths/);
    assert.deepEqual(seen, [{ path: '/w/a', times: 2 }, input]);
  });

  test('an approval for the Session covers the same signature and nothing else', async (t) => {
    const asked = [];
    const requestConfirmation = async (details) => {
      asked.push(details.toolName);
      details.args.changed = true;
      return { approved: true, scope: 'session' };
    };
    const seen = [];
    const tools = ['A', 'B'].map((name) => tool(name, async (input) => void seen.push(input), { kind: 'execute' }));
    const turns = [calls('A'), calls('A', 'B'), calls('B'), 'x'];
    const { session } = await open(t, turns, { tools, confirmationHandler: { requestConfirmation } });
    await ask(session);
    assert.deepEqual(asked, ['A', 'B']);
    assert.deepEqual(seen, [{}, {}, {}, {}], 'the copy of the confirmation does not reach the tool');
    const fresh = await open(t, [calls('A'), 'x'], { tools, confirmationHandler: { requestConfirmation } });
    await ask(fresh.session);
    assert.equal(asked.length, 3, 'another Session asks again');
  });

  test('the confirmation handler may come from a factory that is told the Session', async (t) => {
    let id;
    const confirmationHandlerFactory = (sessionId) => {
      id = sessionId;
      return { requestConfirmation: async () => ({ approved: true }) };
    };
    const run = tool('Run', async () => 'ran', { kind: 'execute' });
    const {
      session,
      results: [result],
    } = await turn(t, ['Run'], { tools: [run], confirmationHandlerFactory });
    assert.equal(result.output, 'ran');
    assert.equal(id, session.sessionId);
  });

  test('system paths and keys are refused or asked about, whatever the mode', async (t) => {
    const touch = tool('Touch', async () => 'touched', { kind: 'write' });
    for (const path of ['/etc/passwd', '/w/../etc/passwd', '/w/id_rsa', '/home/me/.ssh/config']) {
      const {
        results: [result],
      } = await turn(t, [{ name: 'Touch', input: { path } }], { tools: [touch], permissionMode: 'yolo' });
      assert.equal(result.isError, true, path);
    }
    const {
      results: [fine],
    } = await turn(t, [{ name: 'Touch', input: { path: '/w/a..b' } }], { tools: [touch], permissionMode: 'yolo' });
    assert.equal(fine.output, 'touched');
  });

  test('the mode can be changed between requests', async (t) => {
    const run = tool('Run', async () => 'ran', { kind: 'execute' });
    const { session } = await open(t, [calls('Run'), 'a', calls('Run'), 'b'], { tools: [run], permissionMode: 'plan' });
    assert.equal(results(await ask(session))[0].isError, true);
    session.setPermissionMode('yolo');
    assert.equal(results(await ask(session))[0].output, 'ran');
  });
});

describe('exposure', () => {
  const names = (request) => request.tools.map((declared) => declared.name);

  test('allow and deny lists and the source policy decide what the model is told', async (t) => {
    const tools = ['A', 'B', 'C'].map((name) => tool(name, async () => name));
    for (const [options, expected] of [
      [{}, ['A', 'B', 'C']],
      [{ allowedTools: ['A', 'C'] }, ['A', 'C']],
      [{ allowedTools: [] }, []],
      [{ disallowedTools: ['B'] }, ['A', 'C']],
      [{ allowedTools: ['A', 'B'], disallowedTools: ['B'] }, ['A']],
      [{ toolSourcePolicy: { allowedSources: ['builtin'] } }, []],
      [{ toolSourcePolicy: { allowedSources: ['custom'], allowedTrustLevels: [] } }, ['A', 'B', 'C']],
      [{ toolSourcePolicy: { allowedTrustLevels: ['trusted'] } }, []],
    ]) {
      const { session, provider } = await open(t, [calls('B'), 'x'], { tools, ...options });
      const [result] = results(await ask(session));
      assert.deepEqual(names(provider.requests[0]), expected, JSON.stringify(options));
      assert.equal(result.isError, !expected.includes('B'), 'a hidden tool cannot be called');
    }
  });

  test('plan mode shows what reads', async (t) => {
    const tools = [tool('Look', async () => 1), tool('Change', async () => 1, { kind: 'write' })];
    const { session, provider } = await open(t, ['x'], { tools, permissionMode: 'plan' });
    await ask(session);
    assert.deepEqual(names(provider.requests[0]), ['Look']);
  });

  test('a deferred tool is called only after it was discovered, from the next turn on and in later requests', async (t) => {
    const find = generator('Find', async function* () {
      const patch = (discover) => ({ scope: 'session', source: 'tool', toolDiscovery: { discover } });
      yield { kind: 'effect', effect: { type: 'runtimePatch', patch: patch(['Later']) } };
      // Only the first patch of a call counts.
      yield { kind: 'effect', effect: { type: 'runtimePatch', patch: patch(['Never']) } };
      return { status: 'success', model: 'found' };
    });
    const failing = generator('Failing', async function* () {
      const patch = { scope: 'session', source: 'tool', toolDiscovery: { discover: ['Never'] } };
      yield { kind: 'effect', effect: { type: 'runtimePatch', patch } };
      return { status: 'error', model: 'no', error: { message: 'no', type: 'execution_error' } };
    });
    const deferred = (name, mode) => tool(name, async () => name, { exposure: { mode } });
    const tools = [find, failing, deferred('Later', 'deferred'), deferred('Never', 'discoverable-only')];
    const turns = [calls('Later', 'Failing', 'Find'), calls('Later', 'Never'), 'x', 'y'];
    const { session, provider } = await open(t, turns, { tools });
    const all = results(await ask(session));
    assert.deepEqual(
      all.map((result) => result.isError),
      [true, true, false, false, true],
    );
    assert.match(all[0].output, /not available/);
    await ask(session);
    assert.deepEqual(provider.requests.map(names), [
      ['Failing', 'Find'],
      ['Failing', 'Find', 'Later'],
      ['Failing', 'Find', 'Later'],
      ['Failing', 'Find', 'Later'],
    ]);
  });
});
