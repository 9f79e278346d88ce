// The contract of tools, sentence by sentence: the built-in tools as a whole, selecting tools, and where tools come from.
// docs/parity.md names the test of each sentence.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { collectToolExecution, createSession, ToolKind } from '@blade-ai/agent-sdk';
import { createSession as createLocalSession, getBuiltinTools } from '@blade-ai/agent-sdk/advanced';
import { scriptedProvider } from '@blade-ai/agent-sdk/testing';
import { calls, open, tool } from './support/pipeline.mjs';
import { ask, folder, results } from './support/run.mjs';

/** The tables of the guide, for the tools there are: name → group, kind, side effect. */
const DOCUMENTED = {
  Read: ['filesystem', 'ReadOnly', 'pure'],
  Edit: ['filesystem', 'Write', 'non_idempotent'],
  Write: ['filesystem', 'Write', 'idempotent'],
  Glob: ['filesystem', 'ReadOnly', 'pure'],
  Grep: ['filesystem', 'ReadOnly', 'pure'],
  Bash: ['shell', 'Execute', 'non_idempotent'],
  KillShell: ['shell', 'Execute', 'idempotent'],
  TaskOutput: ['task', 'ReadOnly', 'non_idempotent'],
  DiscoverTools: ['system', 'ReadOnly', 'idempotent'],
};

const within = (root) => ({ capabilities: { filesystem: { roots: [root], cwd: root } } });
const names = (provider, request = 0) => (provider.requests[request].tools ?? []).map(({ name }) => name);

describe('Built-in tools', () => {
  test('getBuiltinTools() is exported by /advanced and returns all static candidates with their documented contracts', async () => {
    const listed = await getBuiltinTools();
    assert.deepEqual(
      Object.fromEntries(
        listed.map(({ name, group, kind, sideEffect }) => {
          const [constant] = Object.entries(ToolKind).find(([, value]) => value === kind);
          return [name, [group, constant, sideEffect]];
        }),
      ),
      DOCUMENTED,
    );
    const root = await import('@blade-ai/agent-sdk');
    assert.equal('getBuiltinTools' in root, false);
  });

  test('the local Session facade registers this tool set automatically, the root one does not', async (t) => {
    const local = await open(t, ['x'], { profile: 'local' });
    await ask(local.session);
    assert.deepEqual(names(local.provider), Object.keys(DOCUMENTED).sort());
    const server = await open(t, ['x']);
    await ask(server.session);
    assert.deepEqual(names(server.provider), []);
  });

  test('calling execute() directly bypasses the ExecutionPipeline', async (t) => {
    const root = folder(t);
    const write = (await getBuiltinTools()).find(({ name }) => name === 'Write');
    const input = { file_path: join(root, 'new.txt'), content: 'direct' };
    // In a Session in mode default, writing needs a confirmation that nobody can give here.
    const { session } = await open(t, [calls({ name: 'Write', input }), 'x'], {
      profile: 'local',
      defaultContext: within(root),
    });
    assert.equal(results(await ask(session))[0].isError, true);
    const contextSnapshot = {
      sessionId: 'own',
      turnId: 't',
      context: within(root),
      filesystemRoots: [root],
      cwd: root,
      environment: {},
    };
    const result = await collectToolExecution(write.execute(input, { contextSnapshot }));
    assert.equal(result.status, 'success', JSON.stringify(result));
    assert.equal(readFileSync(input.file_path, 'utf8'), 'direct');
  });

  test('existing-file Write and Edit calls require ExecutionContext.sessionId; without it the operation fails closed', async (t) => {
    const root = folder(t);
    const file_path = join(root, 'file.txt');
    writeFileSync(file_path, 'before');
    const [read, write, edit] = await Promise.all(
      ['Read', 'Write', 'Edit'].map(async (name) => (await getBuiltinTools()).find((one) => one.name === name)),
    );
    const contextSnapshot = { context: within(root), filesystemRoots: [root], cwd: root, environment: {} };
    const inputs = [
      [write, { file_path, content: 'after' }],
      [edit, { file_path, old_string: 'before', new_string: 'after' }],
    ];
    const run = (definition, input, context) => collectToolExecution(definition.execute(input, context));
    for (const [definition, input] of inputs) {
      await run(read, { file_path }, { contextSnapshot });
      const refused = await run(definition, input, { contextSnapshot });
      assert.equal(refused.status, 'error', definition.name);
      assert.equal(readFileSync(file_path, 'utf8'), 'before');
      const sessionId = `session of ${definition.name}`;
      await run(read, { file_path }, { contextSnapshot, sessionId });
      const allowed = await run(definition, input, { contextSnapshot, sessionId });
      assert.equal(allowed.status, 'success', JSON.stringify(allowed));
      assert.equal(readFileSync(file_path, 'utf8'), 'after');
      writeFileSync(file_path, 'before');
    }
  });

  test('Bash narrows read-only foreground commands to pure, and permission decisions use the resolved behavior', async (t) => {
    const root = folder(t);
    const told = [];
    const commands = ['ls', 'ls | wc -l', 'ls > out', 'echo $(ls)', 'eval ls', 'bash -c ls', 'cat <<< x', 'frobnicate'];
    const list = commands.map((command) => ({ name: 'Bash', input: { command } }));
    const { session } = await open(t, [calls(...list), 'x'], {
      profile: 'local',
      defaultContext: within(root),
      permissionHandler: async ({ input, toolKind, toolMeta }) => {
        told.push([input.command, toolKind, toolMeta.sideEffect]);
        return { behavior: 'deny', message: 'only looking' };
      },
    });
    await ask(session);
    const pure = told.filter(([, , sideEffect]) => sideEffect === 'pure').map(([command]) => command);
    assert.deepEqual(told.map(([command]) => command).sort(), [...commands].sort());
    assert.deepEqual(pure, ['ls'], 'pipelines, redirections, substitutions, eval, shells and unknown commands are not');
    assert.equal(told.find(([command]) => command === 'ls')[1], ToolKind.ReadOnly);
  });
});

describe('Select tools', () => {
  const searchDocs = tool('SearchDocs', async () => 'found');

  test('the Session of the guide shows what allowedTools and disallowedTools select', async () => {
    const provider = scriptedProvider(['x', 'x']);
    const model = 'scripted';
    const session = await createLocalSession({
      provider,
      model,
      tools: [searchDocs],
      allowedTools: ['Read', 'Glob', 'Grep', 'SearchDocs'],
      disallowedTools: ['Bash'],
    });
    await ask(session);
    await session.close();
    assert.deepEqual(names(provider), ['Glob', 'Grep', 'Read', 'SearchDocs']);
  });

  test('an omitted allowedTools means no allowlist restriction, an empty array disables all tools', async (t) => {
    for (const [options, expected] of [
      [{}, [...Object.keys(DOCUMENTED), 'SearchDocs'].sort()],
      [{ allowedTools: undefined }, [...Object.keys(DOCUMENTED), 'SearchDocs'].sort()],
      [{ allowedTools: [] }, []],
      [
        { disallowedTools: ['Bash', 'Grep'] },
        [...Object.keys(DOCUMENTED), 'SearchDocs'].sort().filter((name) => !/Bash|Grep/.test(name)),
      ],
    ]) {
      const { session, provider } = await open(t, [calls('SearchDocs'), 'x'], {
        profile: 'local',
        tools: [searchDocs],
        ...options,
      });
      const [result] = results(await ask(session));
      assert.deepEqual(names(provider), expected, JSON.stringify(options));
      assert.equal(result.isError, !expected.includes('SearchDocs'));
    }
  });
});

describe('Source policy', () => {
  test('the policy of the guide admits built-in tools as trusted and SessionOptions.tools as workspace', async () => {
    const shown = async (toolSourcePolicy) => {
      const provider = scriptedProvider(['x']);
      const session = await createLocalSession({
        provider,
        model: 'm',
        tools: [tool('Own', async () => 1)],
        allowedTools: ['Own', 'Read'],
        toolSourcePolicy,
      });
      await ask(session);
      await session.close();
      return names(provider);
    };
    assert.deepEqual(
      await shown({
        allowedSources: ['builtin', 'custom'],
        allowedTrustLevels: ['trusted', 'workspace'],
      }),
      ['Own', 'Read'],
    );
    assert.deepEqual(await shown({ allowedTrustLevels: ['trusted'] }), ['Read']);
    assert.deepEqual(await shown({ allowedTrustLevels: ['workspace'] }), ['Own']);
    assert.deepEqual(await shown({ allowedTrustLevels: ['remote'] }), []);
    assert.deepEqual(await shown({ allowedSources: ['builtin'] }), ['Read']);
    assert.deepEqual(await shown({ allowedSources: ['custom'] }), ['Own']);
    await assert.rejects(
      createSession({ provider: scriptedProvider([]), model: 'm', toolSourcePolicy: { allowedSources: ['web'] } }),
      {
        code: 'CONFIG_ERROR',
      },
    );
  });
});
