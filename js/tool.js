// Tool authoring: `defineTool` and the generator protocol it compiles to.

import { builtinName } from './builtin-name.js';
import { ToolSideEffect } from './constants.js';
import { describe, SdkError } from './errors.js';
import { wellFormed } from './json.js';
import { checkSchema } from './schema.js';

/** Definition → the author's own `execute`, so that a Session can call it without the generator around it. */
const authored = new WeakMap();

const SIDE_EFFECTS = Object.values(ToolSideEffect);

export function defineTool(definition) {
  const { name, parameters, sideEffect, execute } = definition;
  if (typeof name !== 'string' || name === '') throw new TypeError('a tool needs a name: a non-empty string');
  if (typeof execute !== 'function') throw new TypeError(`tool ${name} needs execute: an async function`);
  if (parameters === null || typeof parameters !== 'object') {
    throw new TypeError(`tool ${name} needs parameters: a TypeBox schema or a JSON Schema object`);
  }
  checkSideEffect(sideEffect);
  checkSchema(name, parameters);
  const tool = {
    ...definition,
    // biome-ignore lint/correctness/useYield: an authored tool yields nothing; the protocol is a generator all the same
    async *execute(params, context) {
      const data = await execute(params, context);
      return { status: 'success', model: data, data };
    },
  };
  authored.set(tool, execute);
  return tool;
}

function checkSideEffect(value) {
  if (value !== undefined && !SIDE_EFFECTS.includes(value)) {
    throw new TypeError(
      `Tool sideEffect must be pure, idempotent, or non_idempotent, got ${JSON.stringify(value) ?? String(value)}`,
    );
  }
}

/** The author's `execute` of a definition made by `defineTool`; undefined for one that speaks the generator protocol. */
export const authoredExecute = (definition) => authored.get(definition);

/** JSON text of definitions for the native registry. `pluginOf(index)` names the plugin a definition comes from. */
export function definitionsText(definitions, pluginOf) {
  const texts = definitions.map((definition, index) => {
    try {
      const builtin = builtinName(definition);
      return wellFormed(JSON.stringify(builtin ?? described(definition, pluginOf(index))));
    } catch (cause) {
      const { message } = describe(cause);
      const name = typeof definition?.name === 'string' ? ` ("${definition.name}")` : '';
      throw new SdkError(`tools[${index}]${name}: ${message}`, { code: 'TOOL_DEFINITION_ERROR', cause });
    }
  });
  return `[${texts.join(',')}]`;
}

/** What the native registry needs to know of a definition. */
function described(definition, plugin) {
  if (definition === null || typeof definition !== 'object' || typeof definition.execute !== 'function') {
    throw new TypeError('this is no tool definition; make it with defineTool()');
  }
  const { name, aliases, displayName, description, parameters, kind, sideEffect } = definition;
  const { group, exposure, services, requiresRuntime } = definition;
  checkSideEffect(sideEffect);
  try {
    checkSchema(name, parameters);
  } catch (cause) {
    throw new SdkError(cause.message, { code: 'TOOL_DEFINITION_ERROR', cause });
  }
  return {
    ...(authored.has(definition) ? undefined : describeRuntime(name, definition)),
    name,
    aliases,
    displayName,
    description,
    parameters,
    kind,
    sideEffect,
    group,
    exposure,
    services,
    requiresRuntime,
    plugin,
  };
}

/** What only the runtime protocol can say of a tool. */
function describeRuntime(name, definition) {
  const { isReadOnly, isConcurrencySafe, isDestructive, interruptBehavior, maxResultSizeChars } = definition;
  const runtime = { isReadOnly, isConcurrencySafe, isDestructive, interruptBehavior, maxResultSizeChars };
  for (const callback of ['resolveBehavior', 'validate', 'checkPermissions']) {
    const given = definition[callback];
    if (given === undefined) continue;
    if (typeof given !== 'function') throw new TypeError(`tool ${name}: ${callback} must be a function`);
    runtime[callback] = true;
  }
  return { runtime };
}

export async function collectToolExecution(execution, onYield) {
  try {
    for (;;) {
      const step = await execution.next();
      if (step.done) return step.value;
      await onYield?.(step.value);
    }
  } catch (failure) {
    // The generator is closed in any case; the first failure is the one that counts.
    try {
      await execution.return?.();
    } catch {
      // A failing clean-up does not replace its cause.
    }
    throw failure;
  }
}

// biome-ignore lint/correctness/useYield: a finished execution yields nothing by definition
export async function* completeToolExecution(result) {
  return result;
}
