// Layers around model operations: what they are shown, what they may change, and who closes their generators.

import { composeMiddleware } from './middleware.js';
import { encode } from './json.js';

/** Frozen copies of ours: they are not copied again, and are known to be unchanged. */
const copies = new WeakSet();

/** Fields that a layer may not change. */
const FIXED = ['operation', 'model', 'signal'];

/** Freezes a JSON value that nobody else holds. */
export function frozen(value) {
  if (value !== null && typeof value === 'object' && !copies.has(value)) {
    for (const item of Object.values(value)) frozen(item);
    copies.add(Object.freeze(value));
  }
  return value;
}

/** A frozen deep copy of what must be JSON. */
function copyOf(value, path) {
  if (value !== null && typeof value === 'object' && copies.has(value)) return value;
  return frozen(JSON.parse(encode(value, path)));
}

function listOf(value, path) {
  if (!Array.isArray(value)) throw new TypeError(`${path} of a model request must be an array`);
  if (copies.has(value)) return value;
  const list = Object.freeze(value.map((item, at) => objectOf(item, `${path}[${at}]`)));
  copies.add(list);
  return list;
}

function objectOf(value, path) {
  const copy = copyOf(value, path);
  // A number would stand for the place of a message that was not changed.
  if (copy === null || typeof copy !== 'object') throw new TypeError(`${path} of a model request must be an object`);
  return copy;
}

/** A request as layers see it. Absent fields stay absent. */
export function requestOf({ operation, model, messages, tools, options, signal }) {
  return Object.freeze({
    operation,
    model,
    messages: listOf(messages, 'messages'),
    ...(tools != null && { tools: listOf(tools, 'tools') }),
    ...(options != null && { options: copyOf(options, 'options') }),
    ...(signal != null && { signal }),
  });
}

/** The request that a layer hands on. */
function handedOn(changed, request) {
  if (changed === undefined || changed === request) return request;
  if (changed === null || typeof changed !== 'object') {
    throw new TypeError('next() takes a model request, or nothing for the current one');
  }
  for (const field of FIXED) {
    if (changed[field] !== request[field]) {
      throw new TypeError(`a middleware cannot change ${field} of a model request; spread the request it was given`);
    }
  }
  return requestOf(changed);
}

/** Wraps an operation that gives a promise. */
export function aroundPromise(list, name, terminal) {
  const layers = having(list, name).map(
    (middleware) => (request, next) => middleware[name](request, (changed) => next(handedOn(changed, request))),
  );
  return composeMiddleware(layers, terminal);
}

/** Wraps an operation that gives an async generator. Whatever a layer does with the one inside of it, it is closed. */
export function aroundGenerator(list, name, terminal) {
  const layers = having(list, name).map((middleware) => (request, next) => enclosed(middleware, name, request, next));
  return composeMiddleware(layers, terminal);
}

const having = (list, name) => list.filter((middleware) => middleware[name] !== undefined);

async function* enclosed(middleware, name, request, next) {
  let inner;
  let failed = true;
  try {
    const generator = middleware[name](request, (changed) => {
      inner = next(handedOn(changed, request));
      return inner;
    });
    if (typeof generator?.[Symbol.asyncIterator] !== 'function') {
      throw new TypeError(`${name} must return an async generator: write it as async *${name}(request, next)`);
    }
    const result = yield* generator;
    failed = false;
    return result;
  } finally {
    // Does nothing where the layer has read it to its end.
    await closed(inner, failed);
  }
}

/** Closes a generator. After a failure its own does not count: the first one is what went wrong. */
async function closed(generator, failed) {
  try {
    await generator?.return?.();
  } catch (failure) {
    if (!failed) throw failure;
  }
}
