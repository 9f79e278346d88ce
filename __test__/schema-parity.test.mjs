// The validator of this package against TypeBox's own, schema by schema and value by value, through a real Session.
//
// Values are sent as the JSON text a model would send. Every known difference is listed with its reason: an unlisted one
// fails, and so does a listed one that has gone.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createSession, defineTool } from '@blade-ai/agent-sdk';
import { scriptedProvider } from '@blade-ai/agent-sdk/testing';
import { Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { ask, random, results } from './support/run.mjs';

const object = (properties, options) => Type.Object(properties, options);
const v = (schema) => object({ v: schema });

/** name → the schema of the parameter `v`. */
const SCHEMAS = {
  string: Type.String(),
  number: Type.Number(),
  integer: Type.Integer(),
  boolean: Type.Boolean(),
  null: Type.Null(),
  anything: Type.Any(),
  unknown: Type.Unknown(),
  never: Type.Never(),
  'length limits': Type.String({ minLength: 2, maxLength: 3 }),
  'integer limits': Type.Integer({ minimum: -2, maximum: 3 }),
  'exclusive limits': Type.Number({ exclusiveMinimum: 0, exclusiveMaximum: 3 }),
  'multiple of 2': Type.Number({ multipleOf: 2 }),
  'multiple of 0.5': Type.Number({ multipleOf: 0.5 }),
  'multiple of 0.1': Type.Number({ multipleOf: 0.1 }),
  'literal text': Type.Literal('a'),
  'literal number': Type.Literal(1),
  'literal true': Type.Literal(true),
  'union of literals': Type.Union([Type.Literal('a'), Type.Literal('b'), Type.Literal(3)]),
  'union of types': Type.Union([Type.String(), Type.Integer(), Type.Null()]),
  nullable: Type.Union([Type.String({ minLength: 2 }), Type.Null()]),
  'union of objects': Type.Union([
    object({ kind: Type.Literal('x'), n: Type.Number() }),
    object({ kind: Type.Literal('y'), s: Type.String() }),
  ]),
  intersection: Type.Intersect([object({ a: Type.Number() }), object({ b: Type.String() })]),
  'closed intersection': Type.Intersect([object({ a: Type.Number() }), object({ b: Type.String() })], {
    unevaluatedProperties: false,
  }),
  enum: Type.Enum(['a', 'b', 1]),
  'plain enum': Type.Unsafe({ enum: ['a', 1, null, true, { a: 1 }, [1, 2]] }),
  'plain const object': Type.Unsafe({ const: { a: [1, { b: null }] } }),
  'array of numbers': Type.Array(Type.Number()),
  'array limits': Type.Array(Type.Unknown(), { minItems: 1, maxItems: 2 }),
  'unique items': Type.Array(Type.Unknown(), { uniqueItems: true }),
  contains: Type.Array(Type.Unknown(), { contains: Type.Number() }),
  'contains some': Type.Array(Type.Unknown(), { contains: Type.Number(), minContains: 2, maxContains: 2 }),
  tuple: Type.Tuple([Type.String(), Type.Integer()]),
  'tuple of tuples': Type.Tuple([Type.Tuple([Type.Boolean()]), Type.Number()]),
  record: Type.Record(Type.String(), Type.Number()),
  'record of a pattern': Type.Record(Type.String({ pattern: '^[a-c]+$' }), Type.Number()),
  'record of literals': Type.Record(Type.Union([Type.Literal('a'), Type.Literal('b')]), Type.Number()),
  'record of integers': Type.Record(Type.Integer(), Type.String()),
  'nested object': object({ a: object({ b: Type.Optional(Type.Integer()) }), c: Type.Optional(Type.String()) }),
  'closed object': object({ a: Type.Number() }, { additionalProperties: false }),
  'typed rest': object({ a: Type.Number() }, { additionalProperties: Type.String() }),
  'property counts': object({}, { minProperties: 1, maxProperties: 2 }),
  partial: Type.Partial(object({ a: Type.Number(), b: Type.String() })),
  picked: Type.Pick(object({ a: Type.Number(), b: Type.String() }), ['a']),
  pattern: Type.String({ pattern: '^[a-z]{2}\\d*$' }),
  'pattern of Unicode': Type.String({ pattern: '^\\p{L}+$' }),
  'pattern unanchored': Type.String({ pattern: 'b|1' }),
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the pattern of a template literal type
  template: Type.TemplateLiteral('a${number}'),
  not: Type.Unsafe({ not: { type: 'string' } }),
  'exactly one': Type.Unsafe({ oneOf: [{ type: 'number' }, { minimum: 2 }] }),
  // biome-ignore lint/suspicious/noThenProperty: the keyword of JSON Schema
  'if then else': Type.Unsafe({ if: { type: 'string' }, then: { minLength: 2 }, else: { type: 'integer' } }),
  'several types': Type.Unsafe({ type: ['string', 'null', 'array'] }),
  dependent: Type.Unsafe({ type: 'object', dependentRequired: { a: ['b'] } }),
  'property names': Type.Unsafe({ type: 'object', propertyNames: { maxLength: 1 } }),
  'pattern properties': Type.Unsafe({
    type: 'object',
    patternProperties: { '^a': { type: 'number' } },
    additionalProperties: false,
  }),
  'refined limits': Type.Unsafe({ type: 'number', minimum: 0, maximum: 1e308 }),
  ...Object.fromEntries(
    [
      'email',
      'date',
      'time',
      'date-time',
      'uri',
      'uuid',
      'ipv4',
      'ipv6',
      'hostname',
      'regex',
      'json-pointer',
      'duration',
      'url',
      'idn-email',
      'made-up',
    ].map((format) => [`format ${format}`, Type.String({ format })]),
  ),
};

/** Parameters whose form matters as a whole. */
const Node = Type.Cyclic({ Node: object({ value: Type.Number(), next: Type.Optional(Type.Ref('Node')) }) }, 'Node');
const Tree = Type.Cyclic({ Tree: object({ name: Type.String(), children: Type.Array(Type.Ref('Tree')) }) }, 'Tree');
SCHEMAS.list = Node;
SCHEMAS.tree = Tree;

const VALUES = [
  null,
  true,
  false,
  0,
  1,
  -1,
  2,
  3,
  4,
  1.5,
  0.3,
  -0.5,
  1e21,
  2 ** 53,
  '',
  'a',
  'b',
  'ab',
  'abc',
  'ab12',
  'a7',
  'é',
  '日本',
  '🙂🙂',
  '1',
  'true',
  [],
  [1],
  [1, 2],
  [1, 1],
  ['a', 1],
  ['a', 1, 2],
  [[true], 2],
  [null, 'a', 3],
  [
    { a: 1, b: 2 },
    { b: 2, a: 1 },
  ],
  {},
  { a: 1 },
  { a: '1' },
  { b: 'x' },
  { a: 1, b: 'x' },
  { a: 1, b: 'x', c: null },
  { a: { b: 1 } },
  { a: { b: 1.5 }, c: 'x' },
  { a: { b: null } },
  { a: [1, { b: null }] },
  { kind: 'x', n: 1 },
  { kind: 'x', s: 'y' },
  { kind: 'y', s: 'y' },
  { abc: 1, d: 2 },
  { 1: 'x' },
  { ab: 1 },
  { value: 1, next: { value: 2, next: { value: 3 } } },
  { value: 1, next: { value: '2' } },
  { name: 'r', children: [{ name: 'c', children: [] }] },
  { name: 'r', children: [{ name: 'c' }] },
];

const TEXTS = {
  email: ['a@b.co', 'a@b', '@b.co', 'a b@c.de', 'a@b..co', '"a b"@c.de', 'ü@b.de'],
  date: ['2024-02-29', '2023-02-29', '2024-2-9', '2024-13-01', '0000-01-01'],
  time: ['10:00:00Z', '10:00:00', '25:00:00Z', '10:00:00+02:00', '23:59:60Z', '10:00:00.123Z'],
  'date-time': [
    '2024-01-01T10:00:00Z',
    '2024-01-01 10:00:00Z',
    '2024-01-01T10:00:00',
    '2024-01-01t10:00:00z',
    '2024-02-30T10:00:00Z',
  ],
  uri: ['http://a.b/c?d#e', 'a/b', 'urn:x:y', 'http://a b', 'mailto:a@b.c'],
  uuid: ['123e4567-e89b-12d3-a456-426614174000', '123e4567e89b12d3a456426614174000', 'x'],
  ipv4: ['1.2.3.4', '256.1.1.1', '1.2.3', '01.2.3.4'],
  ipv6: ['::1', '1::2::3', 'fe80::1%eth0', '::ffff:1.2.3.4', '12345::'],
  hostname: ['a.b', '-a.b', 'a_b', 'a'.repeat(64), 'xn--nxasmq6b'],
  regex: ['a+', '(', '[a-', '\\d'],
  'json-pointer': ['/a/b', 'a', '', '/a~2'],
  duration: ['P1D', 'PT1H', 'P', '1D', 'P1W'],
  url: ['http://a.b/c', 'a/b', 'ftp://x.y', 'http://localhost'],
  'made-up': ['x'],
  'idn-email': ['a@b.co', 'ü@ü.de'],
};

/** What only a Session finds out, because the schema has to be compiled. */
const REFUSED = {
  'an empty tuple': [Type.Tuple([]), /items/],
  'a dangling reference': [Type.Ref('Nope'), /Nope/],
  'a remote reference': [Type.Unsafe({ $ref: 'https://x.test/a' }), /https:\/\/x\.test/],
  'a pattern that is none': [Type.String({ pattern: '(' }), /pattern/],
};

for (const [name, [schema, says]] of Object.entries(REFUSED)) {
  test(`${name}: refused before any call, with the reason`, async () => {
    const tool = defineTool({ name: 'T', description: 't', parameters: v(schema), execute: async () => 1 });
    await assert.rejects(createSession({ provider: scriptedProvider([]), model: 'm', tools: [tool] }), says);
  });
}

/** What JSON Schema cannot say, or JSON cannot carry: name → schema and what the message says beside the place. */
const NOT_JSON = {
  BigInt: [Type.BigInt(), /"bigint".*integer/],
  Symbol: [Type.Symbol(), /"symbol"/],
  Undefined: [Type.Undefined(), /"undefined".*Optional/],
  Void: [Type.Void(), /"void".*Optional/],
  Function: [Type.Function([Type.String()], Type.String()), /"function"/],
  Constructor: [Type.Constructor([], Type.String()), /"constructor"/],
  Refine: [Type.Refine(Type.String(), (text) => text === 'x'), /refinement.*execute/],
  Codec: [Type.Codec(Type.String()).Decode(Number).Encode(String), /codec.*execute/],
  Generic: [Type.Generic([Type.Parameter('A')], Type.Ref('A')), /"generic"/],
  Call: [Type.Call(Type.Ref('A'), []), /"call"/],
  Infer: [Type.Infer('A'), /"infer"/],
  Rest: [Type.Rest(Type.Ref('A')), /"rest"/],
  Parameter: [Type.Parameter('A'), /Parameter/],
  Identifier: [Type.Identifier('A'), /Identifier/],
  // Kinds of other versions of TypeBox, by what they emit.
  Date: [Type.Unsafe({ type: 'Date' }), /"Date".*date-time/],
  Uint8Array: [Type.Unsafe({ type: 'Uint8Array' }), /"Uint8Array".*base64/],
  RegExp: [Type.Unsafe({ type: 'RegExp' }), /"RegExp".*pattern/],
  Promise: [Type.Unsafe({ type: 'Promise', item: {} }), /"Promise"/],
  Iterator: [Type.Unsafe({ type: 'Iterator', items: {} }), /"Iterator"/],
  AsyncIterator: [Type.Unsafe({ type: 'AsyncIterator', items: {} }), /"AsyncIterator"/],
  Transform: [Type.Unsafe({ type: 'string', [Symbol.for('TypeBox.Transform')]: {} }), /transform.*execute/],
  'one of several types': [Type.Unsafe({ type: ['string', 'bigint'] }), /"bigint"/],
  'a literal': [Type.Literal(5n), /"bigint"/],
  'a literal without a type': [Type.Unsafe({ const: 5n }), /const is a bigint/],
  'a default': [Type.Unsafe({ type: 'integer', default: 5n }), /default is a bigint/],
  'a default that is code': [Type.String({ default: () => 'x' }), /default is a function/],
  'a limit': [Type.Number({ minimum: Number.NaN }), /minimum is NaN/],
  'a pattern object': [Type.String({ pattern: /a/ }), /pattern is a RegExp/],
};

/** Every place where a schema can hide, with the name that the message gives it. */
const PLACES = {
  property: [v, 'v'],
  'optional property': [(schema) => v(Type.Optional(schema)), 'v'],
  'deep property': [(schema) => object({ a: object({ b: schema }) }), 'a.b'],
  'property named like a keyword': [(schema) => object({ default: schema, type: Type.String() }), 'default'],
  items: [(schema) => v(Type.Array(schema)), 'v'],
  tuple: [(schema) => v(Type.Tuple([Type.String(), schema])), 'v[1]'],
  union: [(schema) => v(Type.Union([Type.String(), schema])), 'v[1]'],
  intersection: [(schema) => v(Type.Intersect([object({ a: Type.String() }), object({ b: schema })])), 'v[1].b'],
  record: [(schema) => v(Type.Record(Type.String(), schema)), 'v.^.*$'],
  rest: [(schema) => object({}, { additionalProperties: schema }), 'root'],
  cycle: [
    (schema) => Type.Cyclic({ N: object({ value: schema, next: Type.Optional(Type.Ref('N')) }) }, 'N'),
    'N.value',
  ],
  module: [(schema) => Type.Module({ A: object({ v: schema }), B: Type.Array(Type.Ref('A')) }).B, undefined],
  condition: [(schema) => v(Type.Unsafe({ if: { type: 'string' }, else: schema })), 'v'],
  negation: [(schema) => v(Type.Unsafe({ not: schema })), 'v'],
  definition: [
    (schema) => Type.Unsafe({ type: 'object', $defs: { D: schema }, properties: { v: { $ref: '#/$defs/D' } } }),
    'D',
  ],
  'pattern property': [(schema) => Type.Unsafe({ type: 'object', patternProperties: { '^a': schema } }), '^a'],
};

for (const [kind, [schema, says]] of Object.entries(NOT_JSON)) {
  test(`${kind}: refused when the tool is defined, wherever it is`, async () => {
    for (const [where, [place, path]] of Object.entries(PLACES)) {
      const parameters = place(schema);
      const make = () => defineTool({ name: 'T', description: 't', parameters, execute: async () => 1 });
      assert.throws(make, (error) => {
        assert.ok(error instanceof TypeError, where);
        assert.match(error.message, says, where);
        assert.ok(error.message.startsWith('parameters of tool T'), error.message);
        const place = error.message.includes('T: ') && path !== undefined;
        if (place) assert.ok(error.message.includes(`T: ${path} `), `${where}: ${error.message}`);
        return true;
      });
    }
    const plain = { name: 'T', description: 't', parameters: v(schema), async *execute() {} };
    await assert.rejects(createSession({ provider: scriptedProvider([]), model: 'm', tools: [plain] }), {
      code: 'TOOL_DEFINITION_ERROR',
      message: says,
    });
  });
}

test('data that only looks like a schema is left alone', async () => {
  const looks = { type: 'bigint', properties: { a: { type: 'void' } } };
  const parameters = object({
    type: Type.String(),
    v: Type.Unsafe({ default: looks, examples: [looks], enum: [looks, 1], description: 'type: bigint' }),
    w: Type.Unsafe({ const: looks }),
    properties: object({ type: Type.Literal('function') }),
  });
  const tool = defineTool({ name: 'T', description: 't', parameters, execute: async () => 1 });
  const session = await createSession({ provider: scriptedProvider([]), model: 'm', tools: [tool] });
  await session.close();
});

/** Schema → where the two differ, and why. `when` says for which values. */
const KNOWN = {
  'format idn-email': {
    reason: 'addresses beyond ASCII have no grammar that servers agree on, so the format is an annotation here',
    when: (value) => typeof value === 'string' && !value.includes('@'),
  },
};

/** Single pairs whose JSON text matters: the schema, the text, what TypeBox says, what this package says, and why. */
const KNOWN_TEXTS = [
  [SCHEMAS['unique items'], '[0,-0]', true, false, 'JSON knows one zero, TypeBox compares the bits'],
  [
    Type.Number({ multipleOf: 0.1 }),
    '1000000000000000.1',
    false,
    true,
    'doubles this large hold no tenths: TypeBox wants them all the same',
  ],
  [
    Type.Integer({ multipleOf: 3 }),
    '9007199254740993',
    false,
    true,
    'TypeBox sees the double beside it, which is no multiple',
  ],
  [
    Type.Object({ toString: Type.Optional(Type.String()) }),
    '{}',
    false,
    true,
    'TypeBox takes the inherited method for the optional property',
  ],
];

const BATCH = 40;

/** Whether the Session accepts each of the parameters. */
async function ours(schema, texts) {
  const verdicts = [];
  const tool = defineTool({
    name: 'T',
    description: 't',
    parameters: schema,
    kind: 'readonly',
    execute: async () => 'accepted',
  });
  const batches = [];
  for (let at = 0; at < texts.length; at += BATCH) batches.push(texts.slice(at, at + BATCH));
  const turns = batches.map((batch) => ({ toolCalls: batch.map((input) => ({ name: 'T', input })) }));
  const session = await createSession({
    provider: scriptedProvider([...turns, 'done']),
    model: 'm',
    tools: [tool],
    maxTurns: 1000,
  });
  for (const result of results(await ask(session))) {
    if (result.isError) assert.match(result.output, /^invalid arguments for T: /);
    verdicts.push(!result.isError);
  }
  await session.close();
  return verdicts;
}

/** A random value of a few kinds, so that the pairs are not only the ones somebody thought of. */
function made(dice, depth = 0) {
  switch (dice.below(depth > 2 ? 4 : 6)) {
    case 0:
      return dice.pick([null, true, false]);
    case 1:
      return dice.pick([0, 1, -1, 0.5, 2.5, 10, 1e6, -2]) * dice.pick([1, 1, 3]);
    case 2:
      return Array.from({ length: dice.below(4) }, () => dice.pick(['a', 'b', 'c', '1', 'ß', '😀'])).join('');
    case 3:
      return dice.pick(['a', 'x', 3, 1]);
    case 4:
      return Array.from({ length: dice.below(4) }, () => made(dice, depth + 1));
    default:
      return Object.fromEntries(
        Array.from({ length: dice.below(4) }, () => [
          dice.pick(['a', 'b', 'c', 'kind', 'n', 's', 'next', 'value']),
          made(dice, depth + 1),
        ]),
      );
  }
}

test('TypeBox and this package accept and refuse the same values, but for the listed differences', async () => {
  const unlisted = [];
  const gone = [];
  let pairs = 0;
  let refused = 0;
  for (const [name, inner] of Object.entries(SCHEMAS)) {
    const schema = v(inner);
    const dice = random(pairs + 1);
    const texts = TEXTS[name.replace('format ', '')];
    const values = [...VALUES, ...(texts ?? []), ...Array.from({ length: 25 }, () => made(dice))];
    const inputs = values.map((value) => ({ v: value }));
    inputs.push({}, { w: 1 }, { v: 1, w: 2 });
    const theirs = Compile(schema);
    const verdicts = await ours(
      schema,
      inputs.map((input) => JSON.stringify(input)),
    );
    const known = KNOWN[name]?.when ?? (() => false);
    for (const [at, input] of inputs.entries()) {
      pairs++;
      const expected = theirs.Check(JSON.parse(JSON.stringify(input)));
      if (!expected) refused++;
      const text = JSON.stringify(input.v ?? input);
      if (verdicts[at] !== expected && !known(input.v))
        unlisted.push(`${name}: ${text}: TypeBox ${expected}, ours ${verdicts[at]}`);
      if (verdicts[at] === expected && known(input.v)) gone.push(`${name}: ${text}`);
    }
  }
  assert.ok(pairs >= 300 && refused > 300, `${pairs} pairs, ${refused} refused`);
  assert.deepEqual(unlisted, [], 'unlisted differences');
  assert.deepEqual(gone, [], 'listed differences that are gone');
});

test('the listed single differences are still what they were', async () => {
  for (const [schema, text, theirs, expected, reason] of KNOWN_TEXTS) {
    const input = `{"v":${text}}`;
    assert.equal(Compile(v(schema)).Check(JSON.parse(input)), theirs, `TypeBox: ${text} (${reason})`);
    assert.deepEqual(await ours(v(schema), [input]), [expected], `ours: ${text} (${reason})`);
  }
});
