// What `execute` knows about its arguments and its context, and what a definition must not contain.

import {
  collectToolExecution,
  completeToolExecution,
  defineTool,
  ToolKind,
  ToolSideEffect,
  type DiscoverableTool,
  type ExecutionContext,
  type FencingToken,
  type JsonObject,
  type MemoryManager,
  type SessionId,
  type ToolDefinition,
  type ToolExecution,
  type ToolResult,
  type ToolServiceName,
  type ToolYield,
} from '@blade-ai/agent-sdk';
import Type, { type Static } from 'typebox';
import { holds, typeOf, type IsAny } from './expect.js';

// Arguments are inferred from the TypeBox schema, optional and nested ones included.
const search = defineTool({
  name: 'Search',
  description: { short: 'Search', long: 'Search the index', usageNotes: ['be specific'], important: ['no secrets'] },
  parameters: Type.Object({
    query: Type.String({ minLength: 1 }),
    limit: Type.Optional(Type.Integer({ minimum: 1 })),
    mode: Type.Union([Type.Literal('fast'), Type.Literal('deep')]),
    nested: Type.Object({ tags: Type.Array(Type.String()) }),
  }),
  async execute(params, context) {
    typeOf(params.query).is<string>();
    typeOf(params.limit).is<number | undefined>();
    typeOf(params.mode).is<'fast' | 'deep'>();
    typeOf(params.nested.tags).is<string[]>();
    typeOf(context.sessionId).is<SessionId | undefined>();
    typeOf(context.signal).is<AbortSignal | undefined>();
    // @ts-expect-error the schema has no such property
    params.querry;
    return { results: params.nested.tags, count: 1 };
  },
});
typeOf(search).is<ToolDefinition<(typeof search)['parameters'], { results: string[]; count: number }>>();
holds<IsAny<Parameters<typeof search.execute>[0]> extends false ? true : false>();

// Destructured arguments, and every combinator that describes an object.
defineTool({
  name: 'Destructured',
  description: 'd',
  parameters: Type.Object({ id: Type.String() }),
  execute: async ({ id }, { signal }) => {
    typeOf(id).is<string>();
    signal?.throwIfAborted();
    return id;
  },
});
const Either = Type.Union([Type.Object({ id: Type.String() }), Type.Object({ name: Type.String() })]);
defineTool({
  name: 'Union',
  description: 'd',
  parameters: Either,
  async execute(params) {
    typeOf(params).is<Static<typeof Either>>();
    return 'id' in params ? params.id : params.name;
  },
});
defineTool({
  name: 'Intersection',
  description: 'd',
  parameters: Type.Intersect([Type.Object({ a: Type.Number() }), Type.Object({ b: Type.Number() })]),
  async execute({ a, b }) {
    return a + b;
  },
});
defineTool({
  name: 'Unsafe',
  description: 'd',
  parameters: Type.Unsafe<{ when: string }>({ type: 'object' }),
  async execute({ when }) {
    typeOf(when).is<string>();
    return null;
  },
});
defineTool({
  name: 'Record',
  description: 'd',
  parameters: Type.Record(Type.String(), Type.Number()),
  async execute(params) {
    typeOf(params.x).is<number | undefined>();
    return Object.keys(params);
  },
});

// A plain JSON Schema works too; its arguments are a JSON object.
defineTool({
  name: 'Plain',
  description: 'd',
  parameters: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
  async execute(params) {
    typeOf(params).is<JsonObject>();
    return params.path ?? null;
  },
});
defineTool({
  name: 'PlainConst',
  description: 'd',
  parameters: { type: 'object', properties: {} } as const,
  async execute(params) {
    typeOf(params).is<JsonObject>();
    return 1;
  },
});
declare const loaded: JsonObject;
defineTool({
  name: 'Loaded',
  description: 'd',
  parameters: loaded,
  async execute(params) {
    typeOf(params).is<JsonObject>();
    return 1;
  },
});

// Schemas of other libraries, and things that are not schemas, are refused.
declare const zod3: { _def: { typeName: 'ZodObject' }; parse(value: unknown): { a: string } };
declare const zod4: { _zod: { def: object }; parse(value: unknown): { a: string } };
// @ts-expect-error Zod 3
defineTool({ name: 'Z', description: 'd', parameters: zod3, execute: async () => 1 });
// @ts-expect-error Zod 4
defineTool({ name: 'Z', description: 'd', parameters: zod4, execute: async () => 1 });
// @ts-expect-error not a schema
defineTool({ name: 'Z', description: 'd', parameters: 'object', execute: async () => 1 });

// Required fields.
// @ts-expect-error no name
defineTool({ description: 'd', parameters: Type.Object({}), execute: async () => 1 });
// @ts-expect-error no description
defineTool({ name: 'T', parameters: Type.Object({}), execute: async () => 1 });
// @ts-expect-error no parameters
defineTool({ name: 'T', description: 'd', execute: async () => 1 });
// @ts-expect-error no execute
defineTool({ name: 'T', description: 'd', parameters: Type.Object({}) });
// @ts-expect-error a structured description needs its short sentence
defineTool({ name: 'T', description: { long: 'l' }, parameters: Type.Object({}), execute: async () => 1 });

// The result is JSON data in a promise.
type Row = { id: string; tags: string[] };
interface RowInterface {
  id: string;
}
declare const row: Row;
declare const rowInterface: RowInterface;
defineTool({ name: 'T', description: 'd', parameters: Type.Object({}), execute: async () => [row] });
// @ts-expect-error an interface has no index signature, so it could hold anything
defineTool({ name: 'T', description: 'd', parameters: Type.Object({}), execute: async () => rowInterface });
for (const value of [null, true, 1, 'x', [1, 'a', { b: null }], { a: { b: [1] } }]) {
  defineTool({ name: 'T', description: 'd', parameters: Type.Object({}), execute: async () => value });
}
// @ts-expect-error a date is not JSON
defineTool({ name: 'T', description: 'd', parameters: Type.Object({}), execute: async () => new Date() });
// @ts-expect-error nothing is not JSON
defineTool({ name: 'T', description: 'd', parameters: Type.Object({}), execute: async () => undefined });
// @ts-expect-error a bigint is not JSON
defineTool({ name: 'T', description: 'd', parameters: Type.Object({}), execute: async () => 1n });
// @ts-expect-error a function is not JSON
defineTool({ name: 'T', description: 'd', parameters: Type.Object({}), execute: async () => () => 1 });
// @ts-expect-error not a promise
defineTool({ name: 'T', description: 'd', parameters: Type.Object({}), execute: () => 1 });
defineTool({
  name: 'T',
  description: 'd',
  parameters: Type.Object({}),
  // @ts-expect-error an authored tool is not a generator
  async *execute() {
    yield { kind: 'progress' };
    return { status: 'success', model: 1 };
  },
});

// `kind` takes the constants alone; `sideEffect` also its literals.
const base = { name: 'T', description: 'd', parameters: Type.Object({}), execute: async () => 1 };
defineTool({ ...base, kind: ToolKind.ReadOnly, sideEffect: ToolSideEffect.PURE });
defineTool({ ...base, kind: ToolKind.Write, sideEffect: 'idempotent' });
defineTool({ ...base, kind: ToolKind.Execute });
// @ts-expect-error a raw literal
defineTool({ ...base, kind: 'readonly' });
// @ts-expect-error a raw literal
defineTool({ ...base, kind: 'write' });
// @ts-expect-error any other string
defineTool({ ...base, kind: 'delete' });
// @ts-expect-error not a side effect
defineTool({ ...base, sideEffect: 'maybe' });

// The other options.
defineTool({
  ...base,
  aliases: ['Old'],
  displayName: 'A tool',
  group: 'filesystem',
  exposure: { mode: 'deferred', alwaysLoad: false, discoveryHint: 'words' },
});
// @ts-expect-error not an exposure mode
defineTool({ ...base, exposure: { mode: 'lazy' } });
// @ts-expect-error not a group
defineTool({ ...base, group: 'misc' });
defineTool({
  name: 'T',
  description: 'd',
  parameters: Type.Object({}),
  // @ts-expect-error decided by the pipeline, not declared by authored tools
  interruptBehavior: 'cancel',
  execute: async () => 1,
});

// Services and runtime are there on demand and not otherwise.
defineTool({
  name: 'Ordinary',
  description: 'd',
  parameters: Type.Object({}),
  async execute(_, context) {
    // @ts-expect-error not requested
    context.runtime;
    // @ts-expect-error not declared
    context.memoryManager;
    // @ts-expect-error the context is read-only
    context.permissionMode = 'yolo';
    return 1;
  },
});
defineTool({
  name: 'Capable',
  description: 'd',
  parameters: Type.Object({ q: Type.String() }),
  services: ['memoryManager', 'subagentRegistry'],
  requiresRuntime: true,
  async execute({ q }, context) {
    typeOf(context.memoryManager).is<MemoryManager>();
    typeOf(context.subagentRegistry.getAllNames()).is<string[]>();
    typeOf(context.runtime.executionFence).is<FencingToken | undefined>();
    await context.runtime.assertExecutionLease();
    typeOf(await context.runtime.runWithExecutionLease(async () => 'inside')).is<string>();
    typeOf(context.sessionId).is<SessionId | undefined>();
    // @ts-expect-error not declared
    context.skillRegistry;
    return (await context.memoryManager.search(q)).map((memory) => memory.name);
  },
});
defineTool({
  name: 'NoRuntime',
  description: 'd',
  parameters: Type.Object({}),
  requiresRuntime: false,
  async execute(_, context) {
    // @ts-expect-error declined
    context.runtime;
    return 1;
  },
});
// The order of the fields does not matter.
defineTool({
  async execute({ id }, context) {
    typeOf(id).is<string>();
    await context.runtime.assertExecutionLease();
    return (await context.memoryManager.get(id))?.body ?? null;
  },
  requiresRuntime: true,
  services: ['memoryManager'],
  parameters: Type.Object({ id: Type.String() }),
  description: 'd',
  name: 'Reversed',
});
// @ts-expect-error no such service
defineTool({ ...base, services: ['database'] });
typeOf<ToolServiceName>('memoryManager').is<
  | 'subagentRegistry'
  | 'memoryManager'
  | 'mcpRegistry'
  | 'skillRegistry'
  | 'backgroundAgentManager'
  | 'discoverableCatalog'
>();

defineTool({
  ...base,
  services: ['discoverableCatalog'],
  async execute(_, context) {
    const found = context.discoverableCatalog.list();
    typeOf(found).is<readonly DiscoverableTool[]>();
    // @ts-expect-error the list is not the tool's to change
    found.push();
    return found.map(({ name, aliases, displayName, description, hint }) => {
      typeOf(aliases).is<readonly string[]>();
      return [name, displayName, description, hint];
    });
  },
});

// Definitions of different tools share a list without a cast.
const counter = defineTool({
  ...base,
  async execute() {
    return 1;
  },
});
const tools: ToolDefinition[] = [search, counter];
const frozen: readonly ToolDefinition[] = Object.freeze([search, counter]);
void tools;
void frozen;

// A definition can be run directly; its execution is collected with its type.
declare const context: ExecutionContext;
const execution = search.execute({ query: 'q', mode: 'fast', nested: { tags: [] } }, context);
typeOf(execution).is<ToolExecution<{ results: string[]; count: number }>>();
const result = await collectToolExecution(execution, (event) => {
  typeOf(event).is<ToolYield>();
});
typeOf(result).is<ToolResult<{ results: string[]; count: number }>>();
if (result.status === 'success') {
  typeOf(result.data).is<{ results: string[]; count: number } | undefined>();
  // @ts-expect-error a success has no error
  result.error;
} else {
  typeOf(result.error.message).is<string>();
  // @ts-expect-error a failure has no data
  result.data;
}
await collectToolExecution(execution, async (event) => {
  if (event.kind === 'progress') typeOf(event.completed).is<number | undefined>();
  if (event.kind === 'message') typeOf(event.content.summary).is<string>();
  if (event.kind === 'effect' && event.effect.type === 'newMessages') event.effect.messages.at(0);
});
// @ts-expect-error wrong argument
search.execute({ query: 1, mode: 'fast', nested: { tags: [] } }, context);
completeToolExecution({ status: 'success', model: 'x' });
completeToolExecution({ status: 'error', model: 'x', error: { message: 'x', type: 'network_error' } });
// @ts-expect-error a failure says what went wrong
completeToolExecution({ status: 'error', model: 'x' });

// The runtime protocol itself, as packages that wrap definitions produce it.
const streaming: ToolDefinition = {
  name: 'Streaming',
  description: 'd',
  parameters: Type.Object({}),
  async *execute() {
    yield { kind: 'progress', message: 'half', completed: 1, total: 2 };
    return { status: 'success', model: 'done' };
  },
};
void streaming;
