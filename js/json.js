// Values that cross as JSON text. What JSON would silently change or drop is refused instead.

import { ConfigError, describe } from './errors.js';

/** Deeper than any sensible value, shallow enough for the stack. */
const MAX_DEPTH = 1_000;
/** Characters of a path in a message. */
const MAX_PATH = 100;

/**
 * JSON text of a value.
 *
 * Throws a TypeError that names the path of what is not JSON: functions, symbols, undefined array elements, BigInt,
 * cycles, non-finite numbers, and objects whose content JSON cannot see (Map, Set, Promise, Error, generators, binary
 * data).
 * Undefined properties are left out, and `toJSON` is honoured.
 */
export function encode(value, what) {
  if (value === undefined) throw new TypeError(`${what} is undefined, which is not JSON; return null or a value`);
  check(value, what, 0);
  const text = JSON.stringify(value);
  // A `toJSON` may answer differently the second time it is asked.
  if (text === undefined) throw new TypeError(`${what} turned into undefined, which is not JSON`);
  return wellFormed(text);
}

/** Throws a TypeError that names the path of what is not JSON; see `encode`. */
export const requireJson = (value, what) => check(value, what, 0);

/** Half a surrogate pair is no Unicode text; `JSON.stringify` leaves it as an escape, which JSON parsers refuse. */
export function wellFormed(text) {
  return text.includes('\\ud') ? text.replace(LONE_SURROGATE, '$1\ufffd') : text;
}

/** An escaped surrogate, but not an escaped backslash in front of the same letters. */
const LONE_SURROGATE = /(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g;

function check(value, path, depth) {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return;
    case 'number':
      if (!Number.isFinite(value)) throw new TypeError(`${path} is ${value}, which is not JSON`);
      return;
    case 'object':
      if (value !== null) checkObject(value, path, depth);
      return;
    default:
      throw new TypeError(`${path} is ${article(typeof value)}, which is not JSON`);
  }
}

function checkObject(value, path, depth) {
  if (depth > MAX_DEPTH) {
    throw new TypeError(`${shortened(path)} is nested too deeply or contains itself, which is not JSON`);
  }
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const item = value[i];
      if (typeof item !== 'string') check(item, `${path}[${i}]`, depth + 1);
    }
    return;
  }
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    if (typeof value.toJSON === 'function') {
      check(value.toJSON(), path, depth + 1);
      return;
    }
    if (isOpaque(value)) throw new TypeError(`${path} is ${article(value.constructor?.name)}, which is not JSON`);
    if (isGenerator(value)) throw new TypeError(`${path} is a running generator, which is not JSON`);
  } else if (typeof value.toJSON === 'function') {
    check(value.toJSON(), path, depth + 1);
    return;
  }
  for (const key of Object.keys(value)) {
    const item = value[key];
    if (item !== undefined && typeof item !== 'string') check(item, `${path}.${key}`, depth + 1);
  }
}

/** The beginning of a path that is too long to read. */
function shortened(path) {
  return path.length > MAX_PATH ? `${path.slice(0, MAX_PATH)}…` : path;
}

const OPAQUE = [Map, Set, WeakMap, WeakSet, WeakRef, Promise, Error, RegExp, ArrayBuffer];

function isOpaque(value) {
  return ArrayBuffer.isView(value) || OPAQUE.some((Class) => value instanceof Class);
}

/** What the generators of each kind have in common. They have no properties, so that JSON would make `{}` of them. */
const GENERATORS = [function* () {}, async function* () {}].map((make) => Object.getPrototypeOf(make.prototype));

const isGenerator = (value) => GENERATORS.some((prototype) => Object.prototype.isPrototypeOf.call(prototype, value));

function article(name) {
  return `a${/^[aeiou]/i.test(name ?? '') ? 'n' : ''} ${name}`;
}

/** JSON text of options: what JSON cannot say is refused by name, so that no option turns into "absent" or another. */
export function encodeOptions(options) {
  try {
    return encode(options, 'options');
  } catch (cause) {
    throw new ConfigError(describe(cause).message, { cause });
  }
}
