// Session options: what cannot be honoured is named, never ignored.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ConfigError, createAgent } from '@blade-ai/agent-sdk';
import { createSession, defineTool } from '@blade-ai/agent-sdk/advanced';
import { scriptedProvider } from '@blade-ai/agent-sdk/testing';

const base = () => ({ provider: scriptedProvider(['ok']), model: 'm' });

for (const name of [
  'agents',
  'durableEventStore',
  'executionLease',
  'mcpServers',
  'providerRegistry',
  'sandbox',
  'sessionEventStore',
  'sessionRepository',
  'skills',
  'storagePath',
  'tokenBudget',
]) {
  test(`${name} is refused: this version could not keep what it promises`, async () => {
    await assert.rejects(createSession({ ...base(), [name]: {} }), (error) => {
      assert.ok(error instanceof ConfigError);
      assert.match(error.message, new RegExp(name));
      return true;
    });
  });
}

test('storagePath with persistSession false asks for nothing that is missing', async () => {
  const session = await createSession({ ...base(), storagePath: '/nowhere', persistSession: false });
  await session.close();
});

for (const model of [undefined, '', '  ']) {
  test(`model ${JSON.stringify(model)} is named as what is missing`, async () => {
    await assert.rejects(createSession({ ...base(), model }), { code: 'CONFIG_ERROR', message: /^model must be/ });
  });
}

test('a deferred tool is found by DiscoverTools and callable from the next turn, in that Session only', async () => {
  const hidden = (name, hint) =>
    defineTool({
      name,
      description: `the ${hint} tool`,
      parameters: { type: 'object', properties: {} },
      kind: 'readonly',
      exposure: { mode: 'deferred', discoveryHint: hint },
      execute: async () => `${name} ran`,
    });
  const provider = scriptedProvider([
    { toolCalls: [{ name: 'Rotate', input: {} }] },
    { toolCalls: [{ name: 'DiscoverTools', input: { query: 'frobnicator' } }] },
    { toolCalls: [{ name: 'Rotate', input: {} }] },
    { toolCalls: [{ name: 'DiscoverTools', input: { query: 'frobnicator' } }] },
    'done',
  ]);
  const tools = [hidden('Rotate', 'frobnicator'), hidden('Polish', 'mirror')];
  const options = { provider, model: 'm', tools, allowedTools: ['DiscoverTools', 'Rotate', 'Polish'] };
  const session = await createSession(options);
  await session.send('rotate it');
  const results = [];
  for await (const event of session.stream()) if (event.type === 'tool_result') results.push(event);
  const declared = provider.requests.map(({ tools: list }) => list.map((tool) => tool.name).sort());
  assert.deepEqual(declared[0], ['DiscoverTools']);
  assert.deepEqual(declared[2], ['DiscoverTools', 'Rotate']);
  assert.deepEqual(
    results.map(({ isError }) => isError),
    [true, false, false, false],
  );
  assert.match(results[1].output, /^Activated deferred tools:\n- Rotate: the frobnicator tool$/);
  assert.equal(results[2].output, 'Rotate ran');
  assert.match(results[3].output, /No hidden tools matched "frobnicator"/);
  await session.close();
});

test('a policy that is given to an agent in the wrong place is refused, not ignored', async () => {
  for (const name of ['permissions', 'permissionMode', 'permissionHandler', 'hooks', 'middleware', 'toolLifecycle']) {
    await assert.rejects(createAgent({ ...base(), [name]: {} }), {
      code: 'CONFIG_ERROR',
      message: name.startsWith('permission') && name !== 'permissions' ? /advanced\.permission/ : /belong in advanced/,
    });
  }
});
