// Rules wherever they are given: handlers, the options of a Session, what a Session learns while it runs.

import assert from 'node:assert/strict';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import {
  createAgent,
  createCompositePermissionHandler,
  createModePermissionHandler,
  createPathSafetyPermissionHandler,
  createRuleBasedPermissionHandler,
} from '@blade-ai/agent-sdk';
import { scriptedProvider } from '@blade-ai/agent-sdk/testing';
import { calls, generator, open, tool, turn } from './support/pipeline.mjs';
import { quiet, run } from './support/program.mjs';
import { ask, folder, results } from './support/run.mjs';

const request = ({ toolMeta, ...more } = {}) => ({
  toolName: 'T',
  input: {},
  signal: new AbortController().signal,
  affectedPaths: [],
  toolKind: 'execute',
  ...more,
  toolMeta: {
    sideEffect: 'non_idempotent',
    isReadOnly: false,
    isConcurrencySafe: false,
    isDestructive: false,
    ...toolMeta,
  },
});

const refused = { code: 'CONFIG_ERROR', name: 'ConfigError' };

const enormous = {
  'more than a rule may hold': `Read:${'x'.repeat(1 << 20)}`,
  'many wildcards': `Read:${'a*'.repeat(1 << 19)}b`,
  'alternatives nested too deeply': `Read(${'{a,'.repeat(600)}b${'}'.repeat(600)})`,
};
for (const [name, rule] of Object.entries(enormous)) {
  test(`a rule with ${name} is refused wherever it is given, and the session goes on`, async (t) => {
    await assert.rejects(open(t, [], { permissions: { deny: [rule] } }), refused);
    assert.throws(() => createRuleBasedPermissionHandler({ allow: [rule] }), refused);
    const ruleContent = rule.replace(/^Read.|\)$/g, '');
    const rules = [{ toolName: 'Read', ruleContent }];
    const { session } = await open(t, [calls('T'), 'x', 'y'], {
      tools: [tool('T', async () => 'ran')],
      permissionHandler: async () => ({
        behavior: 'allow',
        updatedPermissions: [{ type: 'addRules', behavior: 'deny', rules }],
      }),
    });
    const [result] = results(await ask(session));
    assert.deepEqual([result.isError, /is no permission rule/.test(result.output)], [true, true]);
    assert.ok(result.output.length < 10_000);
    assert.equal((await ask(session)).at(-1).content, 'y');
  });
}

test('thousands of rules and a command of thousands of parts are judged in a moment', async (t) => {
  const deny = Array.from({ length: 5000 }, (_, at) => `Bash:deploy * ${at} * now`);
  const { session } = await open(t, [calls({ name: 'Bash', input: { command: 'true; '.repeat(2000) } }), 'x'], {
    profile: 'local',
    permissionMode: 'yolo',
    permissions: { deny },
  });
  assert.equal((await ask(session)).at(-1).type, 'result');
});

describe('the handler by mode', () => {
  const KINDS = {
    reading: { toolKind: 'readonly', toolMeta: { isReadOnly: true } },
    'destructive but reading': { toolKind: 'readonly', toolMeta: { isReadOnly: true, isDestructive: true } },
    writing: { toolKind: 'write' },
    executing: {},
    'destructive writing': { toolKind: 'write', toolMeta: { isDestructive: true } },
    'destructive executing': { toolMeta: { isDestructive: true } },
  };
  const approved = (plan) => (plan ? 'allow' : 'deny');
  for (const [mode, row] of Object.entries({
    default: ['allow', 'ask', 'ask', 'ask', 'ask', 'ask'],
    autoEdit: ['allow', 'ask', 'allow', 'ask', 'ask', 'ask'],
    yolo: ['allow', 'ask', 'allow', 'allow', 'ask', 'ask'],
    plan: ['allow', 'ask', 'deny', 'deny', 'deny', 'deny'],
  })) {
    test(`in mode ${mode}`, async () => {
      for (const [at, [what, of]] of Object.entries(KINDS).entries()) {
        const decide = async (handler, more) => (await handler(request({ ...of, ...more }))).behavior;
        assert.equal(await decide(createModePermissionHandler(mode)), row[at], what);
        const other = createModePermissionHandler(mode === 'yolo' ? 'plan' : 'yolo');
        assert.equal(await decide(other, { permissionMode: mode }), row[at], `${what}, as the request says`);
        const remembered = mode === 'plan' ? approved(of.toolMeta?.isReadOnly === true) : 'allow';
        assert.equal(await decide(createModePermissionHandler(mode), { sessionApproved: true }), remembered, what);
      }
    });
  }

  test('knows its modes', () => {
    for (const mode of ['bypass', '', 'Plan', 5, null, {}, '"', 'plan"']) {
      assert.throws(() => createModePermissionHandler(mode), refused, String(mode));
    }
  });
});

describe('the handler by rules', () => {
  const bash = (command, kind = 'execute') => ({
    toolName: 'Bash',
    toolKind: kind,
    toolMeta: { signature: `Bash:${command}` },
  });
  const file = (name, path) => ({
    toolName: name,
    toolKind: 'write',
    affectedPaths: [path],
    toolMeta: { signature: `${name}:${path}` },
  });

  for (const [rule, of, allow, deny] of [
    ['*', bash('rm x'), true, true],
    ['T', {}, true, true],
    ['T*', {}, true, true],
    ['Other', {}, false, false],
    ['Bash', bash('npm test'), false, true],
    ['Bash(*)', bash('npm test'), true, true],
    ['Bash:npm test', bash('npm test'), true, true],
    ['Bash:npm test', bash('npm test -- x'), false, false],
    ['Bash:npm test*', bash('npm testing'), true, true],
    ['Bash(npm test)', bash('npm test'), true, true],
    ['Bash(npm test:*)', bash('npm test'), true, true],
    ['Bash(npm test:*)', bash('npm test -- x'), true, true],
    ['Bash(npm test:*)', bash('npm testing'), false, false],
    ['Bash(git push * --force)', bash('git push origin a/b --force'), false, true],
    ['Read(**/.env*)', file('Read', '/w/server/.env'), true, true],
    ['Read(.env)', file('Read', '/w/server/.env'), true, true],
    ['Read(/w/**/.env)', file('Read', '/w/server/.env'), true, true],
    ['Read(/w/**/.env)', file('Read', '/w/a/../server/.env'), false, true],
    ['Read(./.env)', file('Read', '/w/server/.env'), false, false],
    ['Read(/w/*.env)', file('Read', '/w/server/.env'), false, false],
    ['Read(/w/*)', file('Read', '/w/server/.env'), true, true],
    ['Read(/w:*)', file('Read', '/w/server/.env'), true, true],
    ['Read(/w/serv:*)', file('Read', '/w/server/.env'), false, false],
    ['Write(**)', file('Read', '/w/x'), false, false],
  ]) {
    test(`${rule} on ${of.toolMeta?.signature ?? 'T'}: ${allow ? 'allows' : 'does not allow'}, ${deny ? 'denies' : 'does not deny'}`, async () => {
      const decide = async (rules) => (await createRuleBasedPermissionHandler(rules)(request(of))).behavior;
      assert.equal(await decide({ allow: [rule] }), allow ? 'allow' : 'ask');
      assert.equal(await decide({ deny: [rule], allow: ['*'], ask: ['*'] }), deny ? 'deny' : 'allow');
      const asking = await createRuleBasedPermissionHandler({ ask: [rule] })(request(of));
      assert.equal(asking.behavior, 'ask');
      assert.equal(asking.message.includes(`the permission rule "${rule}"`), deny, asking.message);
    });
  }

  for (const rule of [
    '',
    '  ',
    'Read(',
    'Read(x',
    'Read)',
    'Read()',
    'Read:',
    '(x)',
    'a b',
    'Read([a)',
    'Read({a)',
    'Read(~/x)',
    'Read(../x)',
    'a*b',
  ]) {
    test(`${JSON.stringify(rule)} is no rule, in any list and anywhere`, async () => {
      for (const list of ['allow', 'ask', 'deny']) {
        const config = { [list]: ['*', rule] };
        assert.throws(() => createRuleBasedPermissionHandler(config), {
          ...refused,
          message: /\[1\]: .*is no permission rule/,
        });
        const provider = scriptedProvider([]);
        const opening = createAgent({ model: 'm', provider, advanced: { permissions: config } });
        await assert.rejects(opening, { ...refused, message: new RegExp(`permissions\\.${list}\\[1\\]`) });
      }
      const options = { explicitAllowRules: [rule] };
      assert.throws(() => createPathSafetyPermissionHandler(options), {
        ...refused,
        message: /explicitAllowRules\[0\]/,
      });
    });
  }
});

describe('the handler for path safety', () => {
  const decide = async (paths, rules, more) =>
    (
      await createPathSafetyPermissionHandler(rules && { explicitAllowRules: rules })(
        request({ affectedPaths: paths, ...more }),
      )
    ).behavior;

  for (const [what, paths, rules, expected] of [
    ['no paths', [], undefined, 'allow'],
    ['harmless paths', ['/srv/a..b/x', 'x', '/etcetera/x'], undefined, 'allow'],
    ['a climb', ['/srv/../x'], ['*'], 'deny'],
    ['a climb on Windows', ['C:\\x\\..\\y'], ['*'], 'deny'],
    ['a system directory', ['/ok', '/etc/passwd'], ['*'], 'deny'],
    ['one in other letters', ['C:\\WINDOWS\\system32\\x'], ['*'], 'deny'],
    ['a key', ['/home/me/.ssh/id_rsa'], undefined, 'deny'],
    ['a key a rule names', ['/home/me/.ssh/id_rsa'], ['T'], 'ask'],
    ['a key another rule names', ['/home/me/.ssh/id_rsa'], ['Other'], 'deny'],
    ['a token file', ['/w/.env'], undefined, 'allow'],
    ['a token file a rule names', ['/w/.env'], ['T'], 'ask'],
    ['data', ['/w/a.sqlite'], ['T'], 'allow'],
  ]) {
    test(`${what}: ${expected}`, async () => assert.equal(await decide(paths, rules), expected));
  }

  test('looks at where paths lead', async () => {
    const toolMeta = { paths: [{ resolved: '/etc/passwd' }] };
    assert.equal(await decide(['/w/link'], undefined, { toolMeta }), 'deny');
  });

  test('names what is denied and how to permit it', async () => {
    const handler = createPathSafetyPermissionHandler();
    const { message } = await handler(request({ affectedPaths: ['/w/id_rsa'] }));
    assert.match(message, /\/w\/id_rsa.*explicit allow rule for "T"/);
    for (const wrong of [
      null,
      5,
      { explicitAllowRules: 'T' },
      { explicitAllowRules: [5] },
      { explicitAllowRules: null },
    ]) {
      assert.throws(() => createPathSafetyPermissionHandler(wrong), refused, JSON.stringify(wrong));
    }
  });
});

describe('a combined handler', () => {
  const allow = { behavior: 'allow' };
  const asks = (message) => ({ behavior: 'ask', message });
  const no = { behavior: 'deny', message: 'no' };
  for (const [what, list, first, deny] of [
    ['nothing', [], allow, allow],
    ['nothing but gaps', [undefined, undefined], allow, allow],
    ['a denial', [allow, no, asks('q')], no, no],
    ['an ask before a denial', [asks('q'), no], asks('q'), no],
    ['an ask before an allow', [asks('q'), allow], asks('q'), asks('q')],
    ['two asks', [asks('q'), undefined, asks('r')], asks('q'), asks('q')],
  ]) {
    test(`of ${what}`, async () => {
      const handlers = list.map((decision) => decision && (async () => decision));
      assert.deepEqual(await createCompositePermissionHandler(handlers)(request()), first);
      assert.deepEqual(await createCompositePermissionHandler(handlers, 'deny-wins')(request()), deny);
    });
  }

  test('merges inputs for the next handler, and effects and updates', async () => {
    const seen = [];
    const one = (updatedInput, update) => async (request) => {
      seen.push(request.input);
      return { behavior: 'allow', updatedInput, effects: [update], updatedPermissions: [update] };
    };
    const given = request({ input: { a: 1, b: 1 } });
    const merged = await createCompositePermissionHandler([one({ b: 2 }, 'x'), one({ c: 3 }, 'y')])(given);
    assert.deepEqual(seen, [
      { a: 1, b: 1 },
      { a: 1, b: 2 },
    ]);
    const both = ['x', 'y'];
    assert.deepEqual(merged, {
      behavior: 'allow',
      updatedInput: { b: 2, c: 3 },
      effects: both,
      updatedPermissions: both,
    });
  });

  test('is made of functions', () => {
    for (const wrong of [undefined, null, {}, 'x', [5], [null], [{ decide() {} }]]) {
      assert.throws(() => createCompositePermissionHandler(wrong), refused);
    }
  });
});

describe('rules in the options of a Session', () => {
  const named = (name, kind = 'execute') => tool(name, async () => 'ran', { kind });
  const tools = [named('Run'), named('Look', 'readonly')];
  const RAN = 'ran';

  /** lists → mode → handler's answer → what happens to Run. */
  for (const [lists, mode, answer, expected] of [
    [{ deny: ['Run'] }, 'yolo', undefined, /denied by the permission rule "Run" for Run/],
    [{ deny: ['Run'] }, 'yolo', 'allow', /denied by the permission rule/],
    [{ deny: ['R*'], allow: ['Run'] }, 'default', 'allow', /denied by the permission rule "R\*"/],
    [{ deny: ['Run'] }, 'plan', undefined, /plan mode/],
    [{ allow: ['Run'] }, 'default', undefined, RAN],
    [{ allow: ['Run'] }, 'default', 'ask', RAN],
    [{ allow: ['Run'] }, 'default', 'deny', /handler says no/],
    [{ allow: ['Run'] }, 'plan', undefined, /plan mode/],
    [{ ask: ['Run'] }, 'yolo', undefined, /needs a confirmation \(the permission rule "Run" requires/],
    [{ ask: ['Run'] }, 'yolo', 'allow', /needs a confirmation \(the permission rule "Run" requires/],
    [{ ask: ['Run'], allow: ['Run'] }, 'default', undefined, RAN],
    [{ ask: ['Run'] }, 'default', undefined, /the permission rule "Run" requires .*; user confirmation required\)/],
    [{}, 'default', undefined, /needs a confirmation \(user confirmation required\)/],
    [{ ask: ['Look'], deny: ['Look'] }, 'yolo', undefined, RAN],
  ]) {
    test(`${JSON.stringify(lists)} in mode ${mode}${answer ? ` with a handler that answers ${answer}` : ''}`, async (t) => {
      let asked = 0;
      const permissionHandler = async () => {
        asked += 1;
        return { behavior: answer, ...(answer === 'deny' && { message: 'handler says no' }) };
      };
      const options = { tools, permissionMode: mode, permissions: lists, ...(answer && { permissionHandler }) };
      const { results: all } = await turn(t, ['Run'], options);
      assert.match(all[0].output, expected === RAN ? /^ran$/ : expected);
      assert.equal(asked, answer && !/denied by the permission rule/.test(all[0].output) ? 1 : 0);
    });
  }

  test('hold in agents and in forks', async (t) => {
    const provider = scriptedProvider([calls('Run'), 'a', calls('Run'), 'b']);
    const agent = await createAgent({
      model: 'm',
      provider,
      tools,
      advanced: { permission: 'bypass-permissions', permissions: { deny: ['Run'] } },
    });
    t.after(() => agent.close());
    const events = async (session) => {
      const all = [];
      for await (const event of session.stream()) all.push(event);
      return all;
    };
    assert.match(results(await events(await agent.send('go')))[0].output, /denied by the permission rule/);
    const fork = await agent.fork();
    t.after(() => fork.close());
    await fork.send('go');
    assert.match(results(await events(fork))[0].output, /denied by the permission rule/);
  });

  test('are lists of strings and nothing else', async () => {
    for (const permissions of [
      5,
      'x',
      [],
      { denied: ['x'] },
      { deny: 'x' },
      { deny: [5] },
      { allow: null },
      { ask: [() => {}] },
    ]) {
      const provider = scriptedProvider([]);
      const opening = createAgent({ model: 'm', provider, advanced: { permissions } });
      await assert.rejects(opening, { code: 'CONFIG_ERROR' }, JSON.stringify(permissions));
    }
  });

  test('judge what a hook or a handler made of the call', async (t) => {
    const root = folder(t);
    const rewriting = { command: 'touch made' };
    for (const options of [
      { permissionHandler: async () => ({ behavior: 'allow', updatedInput: rewriting }) },
      { hooks: { PermissionRequest: [async () => ({ action: 'continue', modifiedInput: rewriting })] } },
      { hooks: { PreToolUse: [async () => ({ action: 'continue', modifiedInput: rewriting })] } },
    ]) {
      const { results: all } = await turn(t, [{ name: 'Bash', input: { command: 'echo' } }], {
        profile: 'local',
        permissionMode: 'yolo',
        permissions: { deny: ['Bash(touch:*)'] },
        defaultContext: { capabilities: { filesystem: { roots: [root], cwd: root } } },
        ...options,
      });
      assert.match(all[0].output, /denied by the permission rule "Bash\(touch:\*\)"/);
    }
  });

  test('a rule that names a key lifts the question about it, one for everything does not', async (t) => {
    const root = folder(t);
    writeFileSync(join(root, 'id_rsa'), 'key');
    const read = { name: 'Read', input: { file_path: join(root, 'id_rsa') } };
    for (const [allow, expected] of [
      [['Read(**/id_rsa)'], /^key$/],
      [['Read(*)'], /holds keys or credentials/],
      [['*'], /holds keys or credentials/],
    ]) {
      const { results: all } = await turn(t, [read], {
        profile: 'local',
        permissions: { allow },
        defaultContext: { capabilities: { filesystem: { roots: [root], cwd: root } } },
      });
      assert.match(all[0].output, expected, JSON.stringify(allow));
    }
  });
});

describe('rules a Session learns', () => {
  const add = (behavior, toolName, ruleContent) => ({ type: 'addRules', behavior, rules: [{ toolName, ruleContent }] });
  const remove = (toolName, ruleContent) => ({ type: 'removeRules', rules: [{ toolName, ruleContent }] });
  const effect = (updates) => ({ kind: 'effect', effect: { type: 'permissionUpdates', updates } });

  /** A tool that yields updates and ends as it is told. */
  const teach = (updates, status = 'success') =>
    generator('Teach', async function* () {
      yield effect(updates);
      if (status === 'success') return { status, model: 'taught' };
      return { status, model: 'failed', error: { message: 'failed', type: 'execution_error' } };
    });
  const runs = tool('Run', async () => 'ran', { kind: 'execute' });

  /** What happens to the calls after the first of which teaches. */
  async function after(t, updates, list, { how = 'tool', status, ...options } = {}) {
    const handler = async ({ toolName }) =>
      toolName === 'Teach'
        ? { behavior: 'allow', updatedPermissions: updates }
        : (options.permissionHandler?.() ?? { behavior: 'ask' });
    const { session } = await open(t, [calls('Teach'), ...list.map((call) => calls(call)), 'done'], {
      ...options,
      tools: [
        how === 'tool' ? teach(updates, status) : tool('Teach', async () => 'taught'),
        runs,
        ...(options.tools ?? []),
      ],
      ...(how === 'handler' && { permissionHandler: handler }),
    });
    return results(await ask(session)).slice(1);
  }

  for (const how of ['tool', 'handler']) {
    test(`a ${how} that denies is obeyed in every mode, before anybody is asked`, async (t) => {
      for (const permissionMode of ['default', 'autoEdit', 'yolo']) {
        let asked = 0;
        const [run] = await after(t, [add('deny', 'Run')], ['Run'], {
          how,
          permissionMode,
          permissions: { allow: ['Run'] },
          confirmationHandler: { requestConfirmation: async () => ({ approved: ++asked > 0 }) },
        });
        assert.match(run.output, /denied by the permission rule "Run" of this Session for Run/);
        assert.equal(asked, 0);
      }
    });

    test(`a ${how} that allows spares the question, until the rule is taken back`, async (t) => {
      const [allowed] = await after(t, [add('allow', 'Run')], ['Run'], { how });
      assert.equal(allowed.output, 'ran');
      const [taken] = await after(t, [add('allow', 'Run'), remove('Run')], ['Run'], { how });
      assert.match(taken.output, /needs a confirmation/);
      const [again] = await after(t, [add('deny', 'Run'), remove('Run')], ['Run'], { how, permissionMode: 'yolo' });
      assert.match(again.output, how === 'tool' ? /ran/ : /needs a confirmation/);
      const [denied] = await after(t, [add('deny', 'Run'), add('allow', 'Run')], ['Run'], { how });
      assert.match(denied.output, /denied by the permission rule/);
    });
  }

  test('hold for patterns of commands and paths', async (t) => {
    const root = folder(t);
    mkdirSync(join(root, 'src'));
    writeFileSync(join(root, '.env'), 'TOKEN');
    symlinkSync('../.env', join(root, 'src', 'link'));
    const updates = [
      add('deny', 'Bash', 'git push:*'),
      add('deny', 'Read', '**/.env*'),
      add('allow', 'Bash', 'git *'),
      add('allow', 'Write', 'src/**'),
    ];
    const bash = (command) => ({ name: 'Bash', input: { command } });
    const [pushed, piped, version, other, read, linked, written, elsewhere] = await after(
      t,
      updates,
      [
        bash('git push'),
        bash('git --version && git push origin'),
        bash('git --version'),
        bash('git --version; touch x'),
        { name: 'Read', input: { file_path: join(root, '.env') } },
        { name: 'Read', input: { file_path: join(root, 'src', 'link') } },
        { name: 'Write', input: { file_path: join(root, 'src', '[x]'), content: 'x' } },
        { name: 'Write', input: { file_path: join(root, 'x'), content: 'x' } },
      ],
      { profile: 'local', defaultContext: { capabilities: { filesystem: { roots: [root], cwd: root } } } },
    );
    for (const denied of [pushed, piped, read, linked]) assert.match(denied.output, /of this Session/);
    for (const asked of [other, elsewhere]) assert.match(asked.output, /needs a confirmation/);
    for (const fine of [version, written]) assert.equal(fine.isError, false, JSON.stringify(fine.output));
  });

  test('an added rule that allows lifts neither plan mode nor path safety', async (t) => {
    const [plan] = await after(t, [add('allow', 'Run')], ['Run'], { permissionMode: 'plan' });
    assert.match(plan.output, /plan mode/);
    const touch = tool('Touch', async () => 'touched', { kind: 'write' });
    const list = ['/etc/passwd', '/w/id_rsa'].map((path) => ({ name: 'Touch', input: { path } }));
    const [system, key] = await after(t, [add('allow', 'Touch')], list, { tools: [touch] });
    assert.match(system.output, /dangerous system paths/);
    assert.match(key.output, /holds keys or credentials/);
  });

  test('a denial that is learned while somebody is asked comes before the answer', async (t) => {
    let answer;
    const asking = new Promise((resolve) => {
      answer = resolve;
    });
    const permissionHandler = async ({ toolName }) => {
      if (toolName === 'Run') return { behavior: 'ask' };
      return { behavior: 'allow', updatedPermissions: [add('deny', 'Run')] };
    };
    const teaches = tool('Teach', async () => answer({ approved: true }));
    const confirmationHandler = { requestConfirmation: () => asking };
    const options = { tools: [runs, teaches], permissionHandler, confirmationHandler };
    const { results: all } = await turn(t, ['Run', 'Teach'], options);
    const run = all.find(({ name }) => name === 'Run') ?? all[0];
    assert.match(run.output, /denied by the permission rule "Run" of this Session/);
  });

  test('a denial of a handler is kept, whatever becomes of its call', async (t) => {
    const permissionHandler = async ({ toolName }) => {
      if (toolName === 'Run') return { behavior: 'allow' };
      return { behavior: 'allow', updatedInput: { n: 'wrong' }, updatedPermissions: [add('deny', 'Run')] };
    };
    const parameters = { type: 'object', properties: { n: { type: 'number' } } };
    const teaches = tool('Teach', async () => 'never', { parameters });
    const { session } = await open(t, [calls('Teach'), calls('Run'), 'x'], {
      tools: [teaches, runs],
      permissionHandler,
    });
    const [taught, run] = results(await ask(session));
    assert.match(taught.output, /number/);
    assert.match(run.output, /denied by the permission rule/);
  });

  test('a handler is told of what was allowed, and denies all the same', async (t) => {
    const seen = [];
    const permissionHandler = async ({ toolName, sessionApproved }) => {
      seen.push([toolName, sessionApproved]);
      return toolName === 'Teach' ? { behavior: 'allow' } : { behavior: 'deny', message: 'not today' };
    };
    const { session } = await open(t, [calls('Teach'), calls('Run'), 'done'], {
      tools: [teach([add('allow', 'Run')]), runs],
      permissionHandler,
    });
    assert.match(results(await ask(session))[1].output, /not today/);
    assert.deepEqual(seen, [
      ['Teach', false],
      ['Run', true],
    ]);
  });

  test('a call that fails teaches nothing', async (t) => {
    const [run] = await after(t, [add('deny', 'Run'), add('allow', 'Run')], ['Run'], {
      status: 'error',
      permissionMode: 'yolo',
    });
    assert.equal(run.output, 'ran');
  });

  for (const [what, updates] of [
    ['no list', { type: 'addRules' }],
    ['an unknown change', [{ type: 'widen', rules: [] }]],
    ['an unknown behavior', [{ type: 'addRules', behavior: 'ask', rules: [] }]],
    ['a rule without a tool', [{ type: 'addRules', behavior: 'deny', rules: [{ ruleContent: 'x' }] }]],
    [
      'a pattern that is none',
      [{ type: 'addRules', behavior: 'allow', rules: [{ toolName: 'Run' }] }, add('deny', 'Read', '[a')],
    ],
  ]) {
    test(`updates with ${what} fail the call of a tool, deny the call of a handler, and change nothing`, async (t) => {
      for (const how of ['tool', 'handler']) {
        const options = { tools: [how === 'tool' ? teach(updates) : tool('Teach', async () => 'taught'), runs] };
        if (how === 'handler') {
          options.permissionHandler = async ({ toolName }) =>
            toolName === 'Teach' ? { behavior: 'allow', updatedPermissions: updates } : { behavior: 'ask' };
        }
        const { session } = await open(t, [calls('Teach'), calls('Run'), 'done'], options);
        const events = await ask(session);
        const [taught, run] = results(events);
        assert.equal(taught.isError, true, how);
        assert.match(taught.output, /permission/);
        assert.match(run.output, /needs a confirmation/);
        assert.equal(events.filter((event) => event.type === 'tool_permission_updates').length, 0);
      }
    });
  }

  test('effects of a handler are those of the call', async (t) => {
    const effects = [
      { type: 'permissionUpdates', updates: [add('deny', 'Look')] },
      { type: 'newMessages', messages: [{ role: 'user', content: 'remember this' }] },
    ];
    const look = tool('Look', async () => 'looked');
    const permissionHandler = async ({ toolName }) => ({ behavior: 'allow', ...(toolName === 'Run' && { effects }) });
    const { session, provider } = await open(t, [calls('Run'), calls('Look'), 'done'], {
      tools: [runs, look],
      permissionHandler,
    });
    const events = await ask(session);
    const [run, looked] = results(events);
    assert.equal(run.output, 'ran');
    assert.match(looked.output, /denied by the permission rule "Look" of this Session/);
    assert.match(JSON.stringify(provider.requests[1].messages), /remember this/);
    assert.equal(events.filter((event) => event.type === 'tool_permission_updates').length, 1);
    for (const wrong of [[{ type: 'nothing' }], 'x', [{ type: 'permissionUpdates', updates: 5 }]]) {
      const handler = async () => ({ behavior: 'allow', effects: wrong });
      const { results: all } = await turn(t, ['Run'], { tools: [runs], permissionHandler: handler });
      assert.match(all[0].output, /permission handler failed: effects/);
    }
  });

  test('who continues from a Session is denied the same', async (t) => {
    const { session } = await open(t, [calls('Teach'), 'a', calls('Run'), 'b'], {
      tools: [teach([add('deny', 'Run')]), runs],
      permissionMode: 'yolo',
    });
    await ask(session);
    const fork = await session.fork();
    t.after(() => fork.close());
    assert.match(results(await ask(fork))[0].output, /denied by the permission rule "Run" of this Session/);
  });
});

describe('questions', () => {
  const write = tool('Touch', async (input) => ({ input }), { kind: 'write' });

  test('carry all reasons, each once and in order, an id and a signal of their own', async (t) => {
    const asked = [];
    const requestConfirmation = async (details) => {
      asked.push(details);
      return { approved: true };
    };
    const call = { name: 'Touch', input: { path: '/w/id_rsa', list: [{ a: 1 }] } };
    const { results: all } = await turn(t, [call, call], {
      tools: [write],
      permissions: { ask: ['Touch(/w/**)'] },
      confirmationHandler: { requestConfirmation },
    });
    for (const result of all) assert.equal(result.isError, false);
    const [first, second] = asked;
    assert.deepEqual(first.message.split('\n').slice(1), [
      'the permission rule "Touch(/w/**)" requires confirmation for Touch',
      '/w/id_rsa holds keys or credentials',
      'user confirmation required',
    ]);
    assert.match(first.permissionRequestId, /^perm_/);
    assert.notEqual(first.permissionRequestId, second.permissionRequestId);
    assert.ok(first.abortSignal instanceof AbortSignal && first.abortSignal !== second.abortSignal);
    assert.equal(first.type, 'permission');
    assert.deepEqual(first.affectedFiles, ['/w/id_rsa']);
    assert.deepEqual(first.risks, ['/w/id_rsa holds keys or credentials']);
    assert.doesNotMatch(JSON.stringify(first), /[^ -~]/, 'English');
  });

  test('are copies: what is done to them changes nothing', async (t) => {
    const seen = [];
    const requestConfirmation = async (details) => {
      details.args.list[0].a = 2;
      details.args.more = true;
      details.affectedFiles.push('/etc/passwd');
      details.toolName = 'Other';
      return { approved: true, scope: 'session' };
    };
    const permissionHandler = async (request) => {
      request.input.list.push('x');
      request.affectedPaths.length = 0;
      request.toolMeta.signature = 'Other';
      return { behavior: 'ask' };
    };
    const spy = tool('Touch', async (input) => void seen.push(input), { kind: 'write' });
    const call = { name: 'Touch', input: { path: '/w/a', list: [{ a: 1 }] } };
    await turn(t, [call], { tools: [spy], permissionHandler, confirmationHandler: { requestConfirmation } });
    assert.deepEqual(seen, [call.input]);
  });

  test('an approval of a custom tool for the Session holds for the same arguments', async (t) => {
    const asked = [];
    const requestConfirmation = async ({ args }) => {
      asked.push(args);
      return { approved: true, scope: 'session' };
    };
    const inputs = [{ a: 1, b: [2] }, { b: [2], a: 1 }, { a: 2 }, { a: 1, b: [2] }];
    const { session } = await open(t, [...inputs.map((input) => calls({ name: 'Touch', input })), 'done'], {
      tools: [write],
      confirmationHandler: { requestConfirmation },
    });
    await ask(session);
    assert.deepEqual(asked, [{ a: 1, b: [2] }, { a: 2 }]);
  });

  test('an approval for the Session answers a rule that asks', async (t) => {
    let asked = 0;
    const requestConfirmation = async () => ({ approved: ++asked > 0, scope: 'session' });
    const { session } = await open(t, [calls('Touch'), calls('Touch'), 'done'], {
      tools: [write],
      permissionMode: 'yolo',
      permissions: { ask: ['Touch'] },
      confirmationHandler: { requestConfirmation },
    });
    for (const result of results(await ask(session))) assert.equal(result.isError, false);
    assert.equal(asked, 1);
  });
});

describe('the paths of a custom tool', () => {
  test('are what its arguments name at any depth, as given and resolved', async (t) => {
    const root = folder(t);
    mkdirSync(join(root, 'real'));
    writeFileSync(join(root, 'real', 'a'), '');
    symlinkSync('real', join(root, 'link'));
    let seen;
    const permissionHandler = async (request) => {
      seen = request;
      return { behavior: 'allow' };
    };
    const input = { note: '/no', edits: [{ file_path: 'link/a' }, { to: { path: `${root}/new/../x` } }], files: ['b'] };
    const defaultContext = { capabilities: { filesystem: { roots: [root], cwd: root } } };
    const options = { tools: [tool('Many', async () => 'ran')], permissionHandler, defaultContext };
    await turn(t, [{ name: 'Many', input: { ...input, edits: input.edits.slice(0, 1) } }], options);
    assert.deepEqual(seen.affectedPaths, ['link/a', 'b']);
    assert.deepEqual(
      seen.toolMeta.paths.map(({ resolved, also }) => [resolved, also]),
      [
        [join(root, 'real/a'), ['real/a']],
        [join(root, 'b'), ['b']],
      ],
    );
    assert.ok(seen.toolMeta.paths[0].given.includes('link/a'));
    seen = undefined;
    const { results: all } = await turn(t, [{ name: 'Many', input }], options);
    assert.match(all[0].output, /dangerous system paths denied: .*new\/\.\.\/x/);
    assert.equal(seen, undefined, 'nobody is asked about what never runs');
  });

  test('that lead out through a link are judged by where they lead', async (t) => {
    const root = folder(t);
    symlinkSync('/etc', join(root, 'conf'));
    symlinkSync('/home/me/.ssh/id_rsa', join(root, 'public'));
    const defaultContext = { capabilities: { filesystem: { roots: [root], cwd: root } } };
    const touch = tool('Touch', async () => 'touched', { kind: 'write' });
    const list = ['conf/new', `${root}/conf/passwd`, 'public'].map((path) => ({
      name: 'Touch',
      input: { at: [{ path }] },
    }));
    const { results: all } = await turn(t, list, { tools: [touch], permissionMode: 'yolo', defaultContext });
    assert.match(all[0].output, /dangerous system paths denied: \/etc\/new/);
    assert.match(all[1].output, /dangerous system paths denied/);
    assert.match(all[2].output, /\.ssh\/id_rsa holds keys or credentials/);
  });
});

describe('a callback that rejects after its request was cancelled', { concurrency: 3 }, () => {
  for (const port of ['permissionHandler', 'confirmationHandler', 'checking hook']) {
    test(`${port}: nobody hears of it, and the Session works again`, async () => {
      const program = `
        let fail;
        let asked;
        const asking = new Promise((resolve) => { asked = resolve; });
        let late = (request) => { asked(); return new Promise((_, reject) => { fail = reject; }); };
        const answer = (request) => late?.(request);
        const options = {
          permissionHandler: { permissionHandler: async (request) => late ? answer(request) : { behavior: 'allow' } },
          confirmationHandler: {
            permissionMode: 'default',
            confirmationHandler: { requestConfirmation: async (details) => late ? answer(details) : { approved: true } },
          },
          'checking hook': {
            hooks: { PermissionRequest: [async (input) => late ? answer(input) : { action: 'continue' }] },
          },
        }[${JSON.stringify(port)}];
        const script = ({ messages }) => (messages.at(-1).role === 'tool' ? 'x' : calls('T'));
        const session = await open(script, {
          tools: [tool('T', async () => 'ran', { kind: 'execute' })], ...options });
        const results = async () => {
          const all = [];
          for await (const event of session.stream()) if (event.type === 'tool_result') all.push(event);
          return all;
        };
        await session.send('go');
        const first = results();
        await asking;
        const aborting = session.abort().catch(() => {});
        await first;
        say('cancelled');
        await session.close().then(() => say('closed'), (error) => say(error.code));
        late = undefined;
        fail(new Error('too late'));
        await aborting;
        let outputs;
        do {
          await session.send('go');
          outputs = (await results()).map((result) => result.output);
        } while (/still cleaning up/.test(outputs[0]));
        say(JSON.stringify(outputs));
        await session.close();
        say('closed');`;
      const ended = await run(program, { flags: ['--unhandled-rejections=strict'] });
      assert.deepEqual(ended, quiet('cancelled', 'SESSION_BUSY', '["ran"]', 'closed'));
    });
  }
});
