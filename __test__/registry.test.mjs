// Names, aliases and what the model is told of the tools: the same bytes for the same tools, request after request.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { createSession, defineTool } from '@blade-ai/agent-sdk';
import { createSession as createLocalSession, getBuiltinTools } from '@blade-ai/agent-sdk/advanced';
import { scriptedProvider } from '@blade-ai/agent-sdk/testing';
import { Type } from 'typebox';
import { startModelServer } from './support/model-server.mjs';
import { circular, generator } from './support/pipeline.mjs';
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
    [[tool('A', { aliases: [''] })], /alias "" of tool "A" is not usable/],
    [[tool('A', { aliases: ['x'.repeat(65)] })], /of tool "A" is not usable: use 1 to 64/],
    [[tool('A', { aliases: ['B'] }), tool('B', { aliases: ['A'] })], /tool name "B" is already an alias of tool "A"/],
    [[tool('A', { aliases: ['x'] }), tool('B', { aliases: ['x'] })], /alias "x" of tool "B" .* name of tool "A"/],
    [[tool('with space')], /"with space" is not usable: use 1 to 64 of the characters A-Z, a-z, 0-9, "_" and "-"/],
    [[tool('tab\there')], /is not usable/],
    [[tool('dotted.name')], /is not usable/],
    [[tool('Ünï')], /"Ünï" is not usable/],
    [[tool('工具')], /is not usable/],
    [[tool('x'.repeat(65))], /is not usable/],
    [[tool('x'.repeat(200))], /is not usable/],
    [[{ ...tool('A'), name: 5 }], /tools\[0\]: /],
    [[tool('A'), { ...tool('B'), description: undefined }], /tools\[1\] \("B"\): .*description/],
    [[{ ...tool('A'), aliases: 'x' }], /tools\[0\] \("A"\): /],
    [[{ ...tool('A'), execute: undefined }], /tools\[0\] \("A"\): .*defineTool/],
    [[null], /tools\[0\]: .*defineTool/],
    [[{ ...tool('A'), sideEffect: 'maybe' }], /tools\[0\] \("A"\): .*sideEffect/],
    [[{ ...tool('A'), parameters: { type: 'object', default: 1n } }], /tools\[0\] \("A"\): .*bigint/],
    [[{ ...tool('A'), parameters: circular() }], /tools\[0\] \("A"\): .*contains itself/],
    [[tool('A', { parameters: { type: 'string' } })], /"A".*object/],
    [[tool('A', { parameters: { type: 'object', properties: { p: { type: 'nonsense' } } } })], /"A"/],
    [[tool('A', { parameters: { type: 'object', properties: { p: { $ref: '#/$defs/nowhere' } } } })], /"A".*nowhere/],
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

const wide = (count) =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`property_number_${n}`, { type: 'string' }]));
const chain = (length, link) => ({
  type: 'object',
  properties: { a: { $ref: '#/$defs/d0' } },
  $defs: Object.fromEntries(Array.from({ length: length + 1 }, (_, n) => [`d${n}`, n < length ? link(n + 1) : {}])),
});
const nest = (levels, innermost, wrap) => {
  let value = innermost;
  for (let n = 0; n < levels; n++) value = wrap(value);
  return value;
};

test('schemas that are huge, deep or endless work or are refused by a named limit', async () => {
  const deep = (levels) => nest(levels, {}, (p) => ({ type: 'object', properties: { p } }));
  for (const [name, parameters, says] of [
    ['a megabyte', { type: 'object', properties: wide(22_000) }, undefined],
    ['ten megabytes', { type: 'object', properties: wide(220_000) }, /"A": schema has \d+ bytes, more than the limit/],
    ['sixty levels', deep(60), undefined],
    ['500 levels', deep(500), /"A": schema nests deeper than 127 levels/],
    ['100,000 levels', deep(100_000), /"A"/],
    ['a long way into the value', chain(5_000, (n) => ({ properties: { n: { $ref: `#/$defs/d${n}` } } })), undefined],
    [
      'a long way on the spot',
      chain(5_000, (n) => ({ $ref: `#/$defs/d${n}` })),
      /"A": a chain of more than 64 schemas/,
    ],
    [
      'a tree on the spot',
      chain(30, (n) => ({ anyOf: [{ $ref: `#/$defs/d${n}` }, { $ref: `#/$defs/d${n}` }] })),
      /"A": more than 100000 schemas/,
    ],
    ['a circle on the spot', { type: 'object', allOf: [{ $ref: '#' }] }, undefined],
  ]) {
    const provider = scriptedProvider([{ toolCalls: [{ name: 'A', input: { a: 1 } }] }, 'x']);
    // Not by defineTool, which refuses some of these at once with a TypeError.
    const plain = generator('A', async function* () {
      yield { kind: 'progress' };
      return { status: 'success', model: 'A' };
    });
    const opened = createSession({ provider, model: 'm', tools: [{ ...plain, kind: 'readonly', parameters }] });
    if (says !== undefined) {
      await assert.rejects(opened, (error) => {
        assert.equal(error.code, 'TOOL_DEFINITION_ERROR', name);
        assert.match(error.message, says, name);
        return true;
      });
      continue;
    }
    const session = await opened;
    assert.equal(results(await ask(session))[0].output, 'A', name);
    await session.close();
  }
});

test('arguments that nest deeper than any value may are an error for the model, and the request goes on', async () => {
  const $defs = { node: { type: ['object', 'null'], properties: { n: { $ref: '#/$defs/node' } } } };
  const schemas = [
    { type: 'object' },
    { type: 'object', properties: { n: { $ref: '#/$defs/node' } }, $defs },
    // A chain of schemas at every level of the value.
    { ...chain(50, (n) => ({ $ref: `#/$defs/d${n}` })), properties: { n: { $ref: '#/$defs/d0' } } },
  ];
  schemas[2].$defs.d50 = { properties: { n: { $ref: '#/$defs/d0' } } };
  for (const parameters of schemas) {
    const input = (levels) => `${'{"n":'.repeat(levels)}null${'}'.repeat(levels)}`;
    const toolCalls = [100, 500, 100_000].map((levels) => ({ name: 'A', input: input(levels) }));
    const provider = scriptedProvider([{ toolCalls }, 'x']);
    const session = await createSession({ provider, model: 'm', tools: [tool('A', { parameters, kind: 'readonly' })] });
    const events = await ask(session);
    assert.deepEqual(
      results(events).map((result) => result.isError),
      [false, true, true],
    );
    assert.match(results(events)[1].output, /arguments of A are not a JSON object/);
    assert.equal(events.at(-1).content, 'x');
    await session.close();
  }
});

test('a reference to somewhere else is refused and never followed', async (t) => {
  let asked = 0;
  const server = createServer((_, response) => {
    asked++;
    response.end('{"type":"string"}');
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  const file = join(folder(t), 'schema.json');
  writeFileSync(file, '{"type":"string"}');
  for (const $ref of [
    `http://127.0.0.1:${server.address().port}/s.json`,
    pathToFileURL(file).href,
    file,
    'other.json',
  ]) {
    const parameters = { type: 'object', properties: { p: { $ref } } };
    await assert.rejects(open([tool('A', { parameters })]), (error) => {
      assert.equal(error.code, 'TOOL_DEFINITION_ERROR', $ref);
      assert.match(error.message, /"A"/);
      return true;
    });
  }
  assert.equal(asked, 0);
});

test('tools of a plugin come from that plugin', async () => {
  const plugins = [{ name: 'helper', tools: [tool('P')] }];
  await assert.rejects(open([tool('P')], { plugins }), {
    code: 'TOOL_DEFINITION_ERROR',
    message: /"P" is registered twice, by session and by plugin:helper: give each tool its own name/,
  });
  const two = [...plugins, { name: 'other', tools: [tool('Q'), tool('P')] }];
  await assert.rejects(open([], { plugins: two }), { message: /by plugin:helper and by plugin:other/ });
  const local = { provider: scriptedProvider([]), model: 'm', tools: [tool('Read')] };
  await assert.rejects(createLocalSession(local), { message: /"Read" is registered twice, by builtin and by session/ });
});

test('the source policy knows built-in, custom and plugin tools apart', async () => {
  const shown = async (toolSourcePolicy) => {
    const provider = scriptedProvider(['x']);
    const plugins = [{ name: 'helper', tools: [tool('P')] }];
    const options = { provider, model: 'm', tools: [tool('C')], plugins, toolSourcePolicy };
    const session = await createLocalSession({ ...options, allowedTools: ['C', 'P', 'Read'] });
    await ask(session);
    await session.close();
    return provider.requests[0].tools.map((declared) => declared.name);
  };
  for (const [policy, expected] of [
    [undefined, ['C', 'P', 'Read']],
    [{}, ['C', 'P', 'Read']],
    [{ allowedSources: [], allowedTrustLevels: [] }, ['C', 'P', 'Read']],
    [{ allowedSources: ['builtin'] }, ['Read']],
    [{ allowedSources: ['custom'] }, ['C', 'P']],
    [{ allowedSources: ['mcp'] }, []],
    [{ allowedTrustLevels: ['trusted'] }, ['Read']],
    [{ allowedTrustLevels: ['workspace'] }, ['C', 'P']],
    [{ allowedTrustLevels: ['remote'] }, []],
    [{ allowedSources: ['builtin'], allowedTrustLevels: ['workspace'] }, []],
    [{ allowedSources: ['builtin', 'custom'], allowedTrustLevels: ['trusted', 'workspace'] }, ['C', 'P', 'Read']],
  ]) {
    assert.deepEqual(await shown(policy), expected, JSON.stringify(policy));
  }
  await assert.rejects(shown({ allowedSources: ['bultin'] }), { code: 'CONFIG_ERROR', message: /bultin/ });
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
  const names = ['zeta', 'Alpha', 'beta', 'Beta', '_x', 'a10', 'a9', '-'];
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
