// The snippets of the tools guide, as they stand there. Lines that only give a snippet its surroundings are marked.

import Type from 'typebox';
import { defineTool } from '@blade-ai/agent-sdk';
import type {
  BladeConfig,
  BuiltinToolGroup,
  ConfirmationHandler,
  ConfirmationResponse,
  ContextSnapshot,
  ExecutionContext,
  JsonValue,
  MessageId,
  PermissionMode,
  ProviderConnectionConfig,
  SessionId,
  SessionOptions,
  ToolDefinition,
  ToolDescription,
  ToolDisplayContent,
  ToolEffect,
  ToolError,
  ToolExecution,
  ToolExposureConfig,
  ToolKind,
  ToolModelContent,
  ToolResult,
  ToolResultMetadata,
  ToolServiceName,
  ToolSideEffect,
  ToolYield,
} from '@blade-ai/agent-sdk';
import { createSession } from '@blade-ai/agent-sdk/advanced';
import { holds, type Equal } from './expect.js';

// surroundings
declare function search(query: string, limit: number): Promise<string[]>;
declare function lookupRecord(id: string): Promise<JsonValue>;
declare const provider: ProviderConnectionConfig;
declare const model: string;

// the snippet of defineTool
const searchDocs = defineTool({
  name: 'SearchDocs',
  description: 'Search the documentation index',
  parameters: Type.Object({
    query: Type.String(),
    limit: Type.Optional(Type.Number()),
  }),
  async execute(params) {
    const results = await search(params.query, params.limit ?? 10);
    return { results, count: results.length };
  },
});

// the snippet of what may be left out
const lookup = defineTool({
  name: 'Lookup',
  description: 'Look up one record by id',
  parameters: Type.Object({ id: Type.String() }),
  async execute({ id }) {
    return await lookupRecord(id);
  },
});

// the snippet of capabilities on demand
const delegated = defineTool({
  name: 'Delegate',
  description: 'Delegate a task',
  parameters: Type.Object({ prompt: Type.String() }),
  services: ['subagentRegistry'],
  requiresRuntime: true,
  async execute({ prompt }, context) {
    await context.runtime.assertExecutionLease();
    return { prompt, agents: context.subagentRegistry.getAllNames() };
  },
});

// the snippet of runtime progress, messages, and effects
const uploading: ToolDefinition = {
  // surroundings
  name: 'Upload',
  description: 'Upload',
  parameters: Type.Object({}),
  async *execute(params) {
    void params;
    yield {
      kind: 'progress',
      message: 'Uploading',
      completed: 1,
      total: 3,
    };
    yield {
      kind: 'message',
      content: { summary: 'Upload started' },
    };
    yield {
      kind: 'effect',
      effect: {
        type: 'contextPatch',
        patch: { metadata: { uploadId: 'upload-1' } },
      },
    };
    return {
      status: 'success',
      model: { uploadId: 'upload-1' },
    };
  },
};

// the snippet of selecting tools
const session = await createSession({
  provider,
  model,
  tools: [searchDocs],
  allowedTools: ['Read', 'Glob', 'Grep', 'SearchDocs'],
  disallowedTools: ['Bash'],
});

// the snippet of the source policy
const policy: Pick<SessionOptions, 'toolSourcePolicy'> = {
  toolSourcePolicy: {
    allowedSources: ['builtin', 'custom'],
    allowedTrustLevels: ['trusted', 'workspace'],
  },
};

void [lookup, delegated, uploading, session, policy];

// The types the guide spells out: ours must take and give what they take and give.
type Same<Ours, Guide> = [Ours] extends [Guide] ? ([Guide] extends [Ours] ? true : false) : false;

// ToolYield
type GuideYield =
  | {
      kind: 'progress';
      message?: string;
      data?: JsonValue;
      completed?: number;
      total?: number;
      resumeToken?: string;
    }
  | { kind: 'message'; content: ToolDisplayContent }
  | { kind: 'effect'; effect: ToolEffect };
holds<Same<ToolYield, GuideYield>>();

// ToolExecution
type GuideExecution<TData extends JsonValue = JsonValue> = AsyncGenerator<ToolYield, ToolResult<TData>, void>;
holds<Equal<ToolExecution, GuideExecution>>();

// ToolResult
type GuideResult =
  | {
      status: 'success';
      model: ToolModelContent;
      display?: ToolDisplayContent;
      data?: JsonValue;
      metadata?: ToolResultMetadata;
    }
  | {
      status: 'error';
      model: ToolModelContent;
      display?: ToolDisplayContent;
      error: ToolError;
      metadata?: ToolResultMetadata;
    };
holds<Same<ToolResult, GuideResult>>();

// ToolDefinition
interface GuideDefinition<TSchema extends Type.TSchema = Type.TSchema, TData extends JsonValue = JsonValue> {
  name: string;
  aliases?: string[];
  displayName?: string;
  description: string | ToolDescription;
  parameters: TSchema;
  sideEffect?: ToolSideEffect;
  kind?: ToolKind;
  group?: BuiltinToolGroup;
  exposure?: ToolExposureConfig;
  services?: readonly ToolServiceName[];
  requiresRuntime?: boolean;
  execute(params: Type.Static<TSchema>, context: ExecutionContext): ToolExecution<TData>;
}
type SearchSchema = (typeof searchDocs)['parameters'];
holds<Same<typeof searchDocs, GuideDefinition<SearchSchema, { results: string[]; count: number }>>>();
holds<Same<ToolDefinition, GuideDefinition>>();

// ExecutionContext
interface GuideContext {
  readonly sessionId?: SessionId;
  readonly messageId?: MessageId;
  readonly contextSnapshot?: ContextSnapshot;
  readonly signal?: AbortSignal;
  readonly confirmationHandler?: ConfirmationHandler;
  readonly permissionMode?: PermissionMode;
  readonly bladeConfig?: BladeConfig;
}
holds<Same<ExecutionContext, GuideContext>>();
holds<keyof ExecutionContext extends keyof GuideContext ? true : false>();

const handler: ConfirmationHandler = {
  async requestConfirmation(details): Promise<ConfirmationResponse> {
    details.abortSignal?.throwIfAborted();
    return { approved: true };
  },
};
void handler;
