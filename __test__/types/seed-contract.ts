// The contract of tools, sentence by sentence, where a sentence is about types. docs/parity.md names these comments.

import Type from 'typebox';
import { defineTool, ToolKind, ToolSideEffect } from '@blade-ai/agent-sdk';
import type {
  ConfirmationDetails,
  ConfirmationHandler,
  ConfirmationResponse,
  JsonObject,
  ModelAttemptId,
  PermissionRequestId,
  SessionOptions,
  ToolDefinition,
  ToolDefinitionInput,
  ToolExecutionLifecycle,
  ToolExecutionStartedLifecycle,
  ToolInvocationLifecycle,
  ToolKind as Kind,
  ToolPermissionResolution,
  ToolScheduledLifecycle,
  ToolServiceName,
  ToolSettledLifecycle,
  ToolUseId,
} from '@blade-ai/agent-sdk';
import type * as root from '@blade-ai/agent-sdk';
import { holds, typeOf, type Equal } from './expect.js';

type Same<Ours, Guide> = [Ours] extends [Guide] ? ([Guide] extends [Ours] ? true : false) : false;
type Required<T> = { [K in keyof T]-?: undefined extends T[K] ? never : K }[keyof T];

// execute parameters are inferred through Type.Static<TSchema>
const parameters = Type.Object({ query: Type.String(), limit: Type.Optional(Type.Number()) });
const inferred = defineTool({
  name: 'Inferred',
  description: 'd',
  parameters,
  async execute(params) {
    typeOf(params).is<Type.Static<typeof parameters>>();
    return params.limit ?? null;
  },
});
typeOf<Parameters<(typeof inferred)['execute']>[0]>({ query: 'q' }).is<{ query: string; limit?: number }>();

// application code does not declare the internal type of erased definitions
const other = defineTool({
  name: 'Other',
  description: 'd',
  parameters: Type.Object({ id: Type.Integer() }),
  async execute({ id }) {
    return [id];
  },
});
export const options: Pick<SessionOptions, 'tools'> = { tools: [inferred, other] };

// only name, description, parameters, and execute are required
holds<Equal<Required<ToolDefinitionInput>, 'name' | 'description' | 'parameters' | 'execute'>>();
holds<Equal<Required<ToolDefinition>, 'name' | 'description' | 'parameters' | 'execute'>>();

// TypeScript does not accept raw string literals for kind
const minimal = { name: 'T', description: 'd', parameters: Type.Object({}), execute: async () => 1 };
for (const kind of [ToolKind.ReadOnly, ToolKind.Write, ToolKind.Execute]) defineTool({ ...minimal, kind });
// @ts-expect-error a raw literal
defineTool({ ...minimal, kind: 'readonly' });
// @ts-expect-error a raw literal
defineTool({ ...minimal, kind: 'write' });
// @ts-expect-error a raw literal
defineTool({ ...minimal, kind: 'execute' });
// @ts-expect-error neither where a kind is expected alone
export const kind: Kind = 'readonly';

// sideEffect takes the ToolSideEffect constants
for (const sideEffect of [ToolSideEffect.PURE, ToolSideEffect.IDEMPOTENT, ToolSideEffect.NON_IDEMPOTENT]) {
  defineTool({ ...minimal, sideEffect });
}

// the execute context exposes declared services and nothing else
defineTool({
  ...minimal,
  services: ['memoryManager'],
  async execute(_, context) {
    await context.memoryManager.list();
    // @ts-expect-error not declared
    context.subagentRegistry;
    // @ts-expect-error not requested
    context.runtime;
    return null;
  },
});

// ToolServiceName defines the available service names
holds<
  Equal<
    ToolServiceName,
    | 'subagentRegistry'
    | 'memoryManager'
    | 'mcpRegistry'
    | 'skillRegistry'
    | 'backgroundAgentManager'
    | 'discoverableCatalog'
  >
>();

// public definitions return Promise<JsonValue>, neither ToolResult nor async generators
defineTool({
  ...minimal,
  // @ts-expect-error a generator
  async *execute() {
    yield { kind: 'progress' };
    return { status: 'success', model: 1 };
  },
});
// @ts-expect-error not a promise
defineTool({ ...minimal, execute: () => 1 });
// @ts-expect-error no JSON
defineTool({ ...minimal, execute: async () => new Map() });

// the fields of ToolDefinition
type Fields =
  | 'name'
  | 'aliases'
  | 'displayName'
  | 'description'
  | 'parameters'
  | 'sideEffect'
  | 'kind'
  | 'group'
  | 'exposure'
  | 'services'
  | 'requiresRuntime'
  | 'execute';
holds<Equal<keyof ToolDefinition, Fields>>();
holds<Equal<keyof ToolDefinitionInput, Fields>>();

// defineTool() / ToolDefinition does not expose interruptBehavior
holds<'interruptBehavior' extends keyof ToolDefinition | keyof ToolDefinitionInput ? false : true>();
defineTool({
  ...minimal,
  // @ts-expect-error no part of authoring
  interruptBehavior: 'cancel',
});

// ConfirmationDetails has an abortSignal, ConfirmationHandler has requestConfirmation
typeOf<ConfirmationDetails['abortSignal']>(undefined).is<AbortSignal | undefined>();
interface GuideHandler {
  requestConfirmation(details: ConfirmationDetails): Promise<ConfirmationResponse>;
}
holds<Same<ConfirmationHandler, GuideHandler>>();
holds<Equal<keyof ConfirmationHandler, 'requestConfirmation'>>();

// ToolExecutionLifecycle
interface GuideLifecycle {
  onToolScheduled?(event: ToolScheduledLifecycle): Promise<ToolInvocationLifecycle | undefined>;
  onToolSettled?(event: ToolSettledLifecycle): Promise<void>;
}
holds<Same<ToolExecutionLifecycle, GuideLifecycle>>();
holds<Equal<keyof ToolExecutionLifecycle, keyof GuideLifecycle>>();

// ToolScheduledLifecycle
interface GuideScheduled {
  toolCallId: ToolUseId;
  toolName: string;
  modelAttemptId?: ModelAttemptId;
  modelInput: JsonObject;
  input: JsonObject;
  sideEffect: ToolSideEffect;
  interruptBehavior: 'block' | 'cancel';
}
holds<
  Equal<
    { [K in keyof ToolScheduledLifecycle]: ToolScheduledLifecycle[K] },
    { [K in keyof GuideScheduled]: GuideScheduled[K] }
  >
>();

// ToolExecutionStartedLifecycle
interface GuideStarted {
  input: JsonObject;
  sideEffect: ToolSideEffect;
}
holds<Same<ToolExecutionStartedLifecycle, GuideStarted>>();
holds<Equal<keyof ToolExecutionStartedLifecycle, keyof GuideStarted>>();

// ToolInvocationLifecycle
interface GuideInvocation {
  onPermissionRequested?(details: ConfirmationDetails, input: JsonObject): Promise<PermissionRequestId>;
  onPermissionResolved?(resolution: ToolPermissionResolution): Promise<void>;
  onExecutionStarted?(event: ToolExecutionStartedLifecycle): Promise<void>;
}
holds<Same<ToolInvocationLifecycle, GuideInvocation>>();
holds<Equal<keyof ToolInvocationLifecycle, keyof GuideInvocation>>();

// everything a tool package needs is public at the root
export type Needed = [
  root.ToolDefinition,
  root.ToolDefinitionInput,
  root.ToolExecutionContext,
  root.ExecutionContext,
  root.ContextSnapshot,
  root.ToolServiceName,
  root.JsonValue,
  typeof root.defineTool,
  typeof root.ToolKind,
  typeof root.ToolSideEffect,
];
