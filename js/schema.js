// What a schema of parameters must be to work as JSON Schema: all of it JSON, and nothing that only code can say.

import { requireJson } from './json.js';

/** Schemas that were looked through already. */
const plain = new WeakSet();

/** Keywords whose value is a schema or a list of schemas… */
const SCHEMAS = [
  'items',
  'prefixItems',
  'additionalItems',
  'unevaluatedItems',
  'contains',
  'additionalProperties',
  'unevaluatedProperties',
  'propertyNames',
  'allOf',
  'anyOf',
  'oneOf',
  'not',
  'if',
  'then',
  'else',
];
/** …and those whose value names schemas. What stands under other keywords is data. */
const NAMED = ['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas', 'dependencies'];

/** What TypeBox keeps beside the JSON Schema as code. */
const CODE = [
  ['~refine', 'a refinement'],
  ['~codec', 'a codec'],
  [Symbol.for('TypeBox.Transform'), 'a transform'],
];

/** What Zod 3 and Zod 4 keep in a schema. */
const ZOD = ['_def', '_zod'];

const UNINSTANTIATED = 'take the type that the generic one makes';
const OPTIONAL = 'leave the property out with Type.Optional, or take null';

/**
 * The types of TypeBox that are no JSON, in small letters, with what to take for them. Others are for the native core to
 * know or refuse.
 */
const NOT_JSON = {
  asynciterator: 'take an array',
  bigint: 'take an integer, or a string of digits',
  call: UNINSTANTIATED,
  constructor: 'leave it out',
  date: 'take a string with format "date-time"',
  deferred: UNINSTANTIATED,
  function: 'leave it out',
  generic: UNINSTANTIATED,
  infer: UNINSTANTIATED,
  iterator: 'take an array',
  promise: 'take the value itself',
  regexp: 'take a string with a pattern',
  rest: UNINSTANTIATED,
  symbol: 'take a literal string',
  uint8array: 'take a base64 string',
  undefined: OPTIONAL,
  void: OPTIONAL,
};

/**
 * TypeBox can describe more than JSON can carry. Arguments are JSON and are validated by the JSON Schema alone, so that
 * the rest would be ignored in silence or could never match: it is refused instead, wherever it is nested.
 */
export function checkSchema(name, parameters) {
  if (plain.has(parameters)) return;
  const what = `parameters of tool ${name}`;
  // Taken as JSON Schema it would have no keyword anybody knows, and so accept everything.
  if (ZOD.some((mark) => mark in parameters)) {
    throw new TypeError(`${what} are a Zod schema; describe them with TypeBox or as a plain JSON Schema`);
  }
  const open = [[parameters, 'root']];
  const seen = new Set();
  while (open.length > 0) {
    const [schema, at] = open.pop();
    if (schema === null || typeof schema !== 'object' || seen.has(schema)) continue;
    seen.add(schema);
    const reason = unusable(schema);
    if (reason !== undefined) throw new TypeError(`${what}: ${at} ${reason}`);
    for (const keyword of SCHEMAS) if (keyword in schema) inside(schema[keyword], at, open);
    for (const keyword of NAMED) named(schema[keyword], at, open);
  }
  requireJson(parameters, what);
  plain.add(parameters);
}

function inside(value, at, open) {
  if (Array.isArray(value)) for (const [i, one] of value.entries()) open.push([one, `${at}[${i}]`]);
  else open.push([value, at]);
}

function named(schemas, at, open) {
  if (schemas === null || typeof schemas !== 'object') return;
  for (const [name, schema] of Object.entries(schemas)) open.push([schema, at === 'root' ? name : `${at}.${name}`]);
}

/** Why a schema cannot be used, if it cannot. */
function unusable(schema) {
  const code = CODE.find(([key]) => Object.hasOwn(schema, key));
  if (code !== undefined) {
    return (
      `is ${code[1]}, which is code and no part of the JSON Schema; check or convert the value in execute, and throw to ` +
      'report what is wrong'
    );
  }
  // Parts of generic types that have no type would match everything.
  const kind = Object.hasOwn(schema, '~kind') ? schema['~kind'] : undefined;
  if (kind === 'Parameter' || kind === 'Identifier') return `is a ${kind}, a part of a generic type; ${UNINSTANTIATED}`;
  for (const type of [schema.type].flat()) {
    const name = String(type).toLowerCase();
    if (typeof type === 'string' && Object.hasOwn(NOT_JSON, name)) {
      return `has type "${type}", which JSON cannot carry; ${NOT_JSON[name]}`;
    }
  }
  return undefined;
}
