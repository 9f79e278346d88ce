// Names, aliases and what the model is told of the tools: the same bytes for the same tools, request after request.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createSession, defineTool } from '@blade-ai/agent-sdk';
import { createSession as createLocalSession, getBuiltinTools } from '@blade-ai/agent-sdk/advanced';
import { scriptedProvider } from '@blade-ai/agent-sdk/testing';
import { Type } from 'typebox';
import { startModelServer } from './support/model-server.mjs';
import { ask, folder, results } from './support/run.mjs';

const tool = (name, more) =>
  defineTool({ name, description: `does ${name}`, parameters: { type: 'object' }, execute: async () => name, ...more });

const open = (tools, options) => createSession({ provider: scriptedProvider([]), model: 'm', tools, ...options });

test('a name or alias that is taken, reserved, empty or unusable is refused and named', async () => {
  for (const [tools, says] of [
    [[tool('A'), tool('A')], /"A" is registered twice/],
    [[tool('A', { aliases: ['B'] }), tool('B')], /"B"/],
    [[tool('A'), tool('B', { aliases: ['A'] })], /alias "A" of tool "B"/],
    [[tool('A', { aliases: ['A'] })], /alias "A" of tool "A"/],
    [[tool('A', { aliases: ['x', 'x'] })], /alias "x" of tool "A"/],
    [[tool('mcp__server__tool')], /"mcp__server__tool" is reserved/],
    [[tool('A', { aliases: ['mcp__server__tool'] })], /"mcp__server__tool" is reserved/],
    [[tool('A', { aliases: [''] })], /tool name "" is not usable/],
    [[tool('with space')], /"with space" is not usable/],
    [[tool('tab\there')], /is not usable/],
    [[tool('x'.repeat(129))], /is not usable/],
    [[tool('A', { parameters: { type: 'string' } })], /"A".*object/],
    [[tool('A', { parameters: { type: 'object', properties: { p: { type: 'nonsense' } } } })], /"A"/],
    [[tool('A', { parameters: { type: 'object', properties: { p: { $ref: 'https://x.test/s.json' } } } })], /"A"/],
    [[tool('A', { parameters: { type: 'object', properties: { p: { pattern: '(' } } } })], /"A"/],
    [[tool('A', { kind: 'delete' })], /tools\[0\].*delete/],
    [[tool('A', { exposure: { mode: 'sometimes' } })], /tools\[0\].*sometimes/],
  ]) {
    await assert.rejects(open(tools), (error) => {
      assert.equal(error.code, 'TOOL_DEFINITION_ERROR', error.message);
      assert.match(error.message, says);
      return true;
    });
  }
});

test('a failed opening leaves nothing behind: the same names work right after', async () => {
  await assert.rejects(open([tool('A'), tool('A')]));
  const session = await open([tool('A')]);
  await session.close();
});

test('an alias runs its tool; the result and the history keep the name that was called', async () => {
  const provider = scriptedProvider([{ toolCalls: [{ name: 'Old' }, { name: 'New' }] }, 'x']);
  const tools = [tool('New', { aliases: ['Old'], kind: 'readonly' })];
  const session = await createSession({ provider, model: 'm', tools });
  const all = results(await ask(session));
  assert.deepEqual(
    all.map(({ name, output }) => [name, output]),
    [
      ['Old', 'New'],
      ['New', 'New'],
    ],
  );
  assert.deepEqual(
    provider.requests[0].tools.map((declared) => declared.name),
    ['New'],
  );
  await session.close();
});

test('tools are declared by name, in whatever order they are given', async () => {
  const names = ['zeta', 'Alpha', 'beta', 'Beta', '_x', 'a10', 'a9', 'Ä'];
  const seen = new Set();
  for (let i = 0; i < names.length; i++) {
    const rotated = [...names.slice(i), ...names.slice(0, i)];
    const provider = scriptedProvider(['x']);
    const session = await createSession({ provider, model: 'm', tools: rotated.map((name) => tool(name)) });
    await ask(session);
    seen.add(JSON.stringify(provider.requests[0].tools));
    await session.close();
  }
  assert.equal(seen.size, 1);
});

test('the model is sent the very schema of the definition, byte for byte', async (t) => {
  const Node = Type.Object({ value: Type.Number(), next: Type.Optional(Type.Unknown()) });
  const schemas = [
    Type.Object({
      b: Type.String({ description: 'ünïcode "quoted" \u2028 </script>' }),
      a: Type.Optional(Type.Union([Type.Literal('x'), Type.Literal(1), Type.Null()])),
      t: Type.Tuple([Type.Integer({ minimum: 0 }), Type.Boolean()]),
      r: Type.Record(Type.String(), Node),
      d: Type.Number({ default: 1.5, multipleOf: 0.5 }),
      e: Type.Enum({ A: 'a', B: 'b' }),
    }),
    { type: 'object', properties: { z: { type: 'integer', maximum: 1e21 }, y: { const: 1.0 } }, 'x-own': [null, 1e-7] },
    {
      type: 'object',
      $defs: { n: { type: 'object', properties: { n: { $ref: '#/$defs/n' } } } },
      properties: { n: { $ref: '#/$defs/n' } },
    },
    { type: 'object', properties: { 10: {}, 9: {}, toString: { type: 'string' } }, required: ['toString'] },
  ];
  const server = await startModelServer(() => 'x');
  t.after(server.close);
  const tools = schemas.map((parameters, at) => tool(`T${at}`, { parameters }));
  const provider = { type: 'openai-compatible', baseUrl: server.url };
  const session = await createSession({ provider, model: 'm', tools });
  await ask(session);
  await session.close();
  for (const schema of schemas) assert.ok(server.journal[0].text.includes(`"parameters":${JSON.stringify(schema)}`));
  assert.deepEqual(server.violations, []);
});

test('built-in tools are declared with the schemas getBuiltinTools shows', async (t) => {
  const root = folder(t);
  const provider = scriptedProvider(['x']);
  const session = await createLocalSession({
    provider,
    model: 'm',
    defaultContext: { capabilities: { filesystem: { roots: [root] } } },
  });
  await ask(session);
  await session.close();
  const declared = new Map(provider.requests[0].tools.map((one) => [one.name, one]));
  for (const { name, parameters } of await getBuiltinTools())
    assert.deepEqual(declared.get(name)?.parameters, parameters, name);
});

test('consecutive requests share everything up to what is new, so that a prompt cache holds', async (t) => {
  const turns = [
    { text: 'a', toolCalls: [{ name: 'B' }, { name: 'A' }] },
    { toolCalls: [{ name: 'A' }] },
    'done',
    { toolCalls: [{ name: 'B' }] },
    'bye',
  ];
  const server = await startModelServer(turns);
  t.after(server.close);
  const session = await createSession({
    provider: { type: 'openai-compatible', baseUrl: server.url },
    model: 'm',
    systemPrompt: 'system',
    tools: [tool('B'), tool('A')],
    permissionMode: 'yolo',
  });
  await ask(session, 'one');
  await ask(session, 'two');
  await session.close();
  const texts = server.journal.map((entry) => entry.text);
  assert.equal(texts.length, 5);
  for (let i = 1; i < texts.length; i++) {
    const [before, after] = [texts[i - 1], texts[i]];
    const end = before.indexOf('],"tools":');
    assert.ok(end > 0);
    assert.equal(after.slice(0, end), before.slice(0, end), `request ${i} begins with request ${i - 1}`);
    const rest = (text) => text.slice(text.indexOf('],"tools":'));
    assert.equal(rest(after), rest(before), 'tools and settings are the same bytes');
  }
  assert.deepEqual(server.violations, []);
});

test('a structured description is rendered for the model', async () => {
  const provider = scriptedProvider(['x']);
  const description = { short: 'Short.', long: 'Long.', usageNotes: ['one', 'two'], important: ['never'] };
  const session = await createSession({ provider, model: 'm', tools: [tool('A', { description })] });
  await ask(session);
  await session.close();
  assert.equal(
    provider.requests[0].tools[0].description,
    'Short.\n\nLong.\n\nUsage Notes:\n- one\n- two\n\nImportant:\n- never',
  );
});

test('a tool whose service is missing is not registered', async () => {
  const provider = scriptedProvider(['x']);
  const tools = [tool('A'), tool('B', { services: ['memoryManager'] })];
  const session = await createSession({ provider, model: 'm', tools });
  await ask(session);
  await session.close();
  assert.deepEqual(
    provider.requests[0].tools.map((declared) => declared.name),
    ['A'],
  );
});

test('defineTool refuses what cannot be a tool, at once', () => {
  for (const [change, says] of [
    [{ name: '' }, /name/],
    [{ name: undefined }, /name/],
    [{ execute: 1 }, /execute/],
    [{ parameters: null }, /parameters/],
    [{ sideEffect: 'sometimes' }, /sideEffect must be pure, idempotent, or non_idempotent/],
  ]) {
    assert.throws(
      () => tool('A', change),
      (error) => error instanceof TypeError && says.test(error.message),
    );
  }
});
