// Options, submissions, the stream and its events.

import {
  createSession,
  createToolLimiter,
  InputPriority,
  PermissionMode,
  prompt,
  SessionStreamEventType,
  type ConversationMessage,
  type InputId,
  type ISession,
  type JsonValue,
  type MessageId,
  type ModelInfo,
  type ModelMessage,
  type PendingSessionInput,
  type PermissionUpdate,
  type ProviderConnectionConfig,
  type RequestId,
  type RuntimeContext,
  type RuntimeHookRegistration,
  type RuntimePatch,
  type SessionId,
  type SessionOptions,
  type SessionStreamEvent,
  type ToolDisplayContent,
  type ToolExecutionRecord,
  type ToolProgress,
  type ToolUseId,
  type TokenUsage,
  type ToolLimiter,
} from '@blade-ai/agent-sdk';
import Type from 'typebox';
import { holds, typeOf, type Equal } from './expect.js';

const provider: ProviderConnectionConfig = { type: 'openai-compatible', baseUrl: 'http://127.0.0.1:1/v1' };

// Only provider and model are required.
const session = await createSession({ provider, model: 'm' });
typeOf(session).is<ISession>();
// @ts-expect-error no model
await createSession({ provider });
// @ts-expect-error no provider
await createSession({ model: 'm' });
// @ts-expect-error a provider has a type
await createSession({ provider: { apiKey: 'k' }, model: 'm' });
// @ts-expect-error no such option
await createSession({ provider, model: 'm', maxTurn: 3 });
// @ts-expect-error no such mode
await createSession({ provider, model: 'm', permissionMode: 'bypass' });
await createSession({ provider, model: 'm', permissions: { deny: ['Read(**/.env*)'] } });
// @ts-expect-error rules are lists of strings
await createSession({ provider, model: 'm', permissions: { deny: 'Read' } });
// @ts-expect-error no such list
await createSession({ provider, model: 'm', permissions: { denied: [] } });
// @ts-expect-error a fallback is deny or allow
await createSession({ provider, model: 'm', confirmationFallback: 'ask' });
// @ts-expect-error no such source
await createSession({ provider, model: 'm', toolSourcePolicy: { allowedSources: ['remote'] } });
// @ts-expect-error no such kind
await createSession({ provider, model: 'm', toolConcurrency: { exec: 1 } });
const limiter = createToolLimiter({ readonly: 20, write: 5, execute: 2, queue: 100 });
typeOf(limiter).is<ToolLimiter>();
typeOf(createToolLimiter()).is<ToolLimiter>();
await createSession({ provider, model: 'm', toolConcurrency: limiter });
// @ts-expect-error a limiter is not made by hand
export const handmade: ToolLimiter = {};
// @ts-expect-error limits are numbers
createToolLimiter({ execute: '1' });
// @ts-expect-error no such limit
createToolLimiter({ exec: 1 });

type RequiredKeys<T> = { [K in keyof T]-?: object extends Pick<T, K> ? never : K }[keyof T];
holds<Equal<RequiredKeys<SessionOptions>, 'provider' | 'model'>>();
holds<Equal<RequiredKeys<ProviderConnectionConfig>, 'type'>>();

const all: Required<SessionOptions> = {
  provider: {
    id: 'main',
    type: 'openai',
    apiKey: 'k',
    baseUrl: 'https://example.invalid/v1',
    headers: { 'x-team': 'blue' },
    organization: 'o',
    apiVersion: '1',
    projectId: 'p',
    requestTimeoutMs: 1_000,
    streamIdleTimeoutMs: 1_000,
  },
  model: 'm',
  temperature: 0,
  maxOutputTokens: 100,
  maxContextTokens: 1_000,
  providerOptions: { openai: { reasoningEffort: 'low' } },
  allowedTools: ['Read'],
  disallowedTools: [],
  artifacts: { directory: '/var/lib/app', keep: true },
  logger: { level: 'info', log: () => {} },
  toolSourcePolicy: { allowedSources: ['builtin', 'custom', 'mcp', 'session'], allowedTrustLevels: ['remote'] },
  tools: [],
  permissionMode: PermissionMode.PLAN,
  permissionHandler: async () => ({ behavior: 'allow' }),
  confirmationHandler: { requestConfirmation: async () => ({ approved: true }) },
  confirmationHandlerFactory: (sessionId) => {
    typeOf(sessionId).is<SessionId>();
    return { requestConfirmation: async () => ({ approved: false, reason: 'no' }) };
  },
  permissions: { allow: ['Bash(npm test:*)'], ask: ['Bash'], deny: ['Read(**/.env*)'] },
  confirmationFallback: 'deny',
  systemPrompt: 's',
  maxTurns: 3,
  toolTimeoutMs: 1_000,
  toolConcurrency: { readonly: 1, write: 1, execute: 1, queue: 1 },
  maxToolResultBytes: 1_000,
  defaultContext: { capabilities: { filesystem: { roots: ['/srv'], cwd: '/srv' } }, environment: { A: '1' } },
  outputFormat: { type: 'json_schema', json_schema: { name: 'city', schema: Type.Object({ name: Type.String() }) } },
  hooks: {
    PreToolUse: [
      async ({ toolName, toolInput }) => ({ action: 'continue', modifiedInput: { ...toolInput, toolName } }),
    ],
  },
  hookTimeoutMs: 1000,
  sessionEndHookTimeoutMs: 1000,
  middleware: { model: [], tool: [] },
  plugins: [{ name: 'p', tools: [] }],
  toolLifecycle: { onToolSettled: async () => {} },
  memoryManager: {
    list: async () => [],
    get: async () => undefined,
    save: async () => {},
    delete: async () => {},
    search: async () => [],
  },
};
void all;

// Members.
typeOf(session.sessionId).is<SessionId>();
typeOf(session.messages).is<readonly ConversationMessage[]>();
typeOf(session.isClosed).is<boolean>();
typeOf(session.getPendingInputs()).is<PendingSessionInput[]>();
typeOf(session.getDefaultContext()).is<RuntimeContext>();
typeOf(await session.supportedModels()).is<ModelInfo[]>();
typeOf(await session.fork()).is<ISession>();
typeOf(await session.setModel('n')).is<void>();
typeOf(session.setMaxTurns(3)).is<void>();
session.setPermissionMode('autoEdit');
session.setPermissionMode(PermissionMode.YOLO);
session.setDefaultContext({ metadata: { a: 1 } });
typeOf(await session.abort()).is<void>();
typeOf(await session.close()).is<void>();
declare const messageId: MessageId;
await session.fork({ messageId });
// @ts-expect-error an id of a message, not any string
await session.fork({ messageId: 'm1' });
// @ts-expect-error read-only
session.isClosed = true;
// @ts-expect-error no such mode
session.setPermissionMode('bypass');
{
  await using scoped = await createSession({ provider, model: 'm' });
  void scoped;
}

// send
const submission = await session.send(
  [
    { type: 'text', text: 'what is this?' },
    { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } },
  ],
  { signal: AbortSignal.timeout(1), maxTurns: 1, context: {}, priority: InputPriority.NOW },
);
typeOf(submission.inputId).is<InputId>();
if (submission.status === 'started') typeOf(submission.requestId).is<RequestId>();
else if (submission.status === 'steered') typeOf(submission.priority).is<'now' | 'next'>();
else {
  typeOf(submission.priority).is<'later'>();
  // @ts-expect-error a queued input has no request yet
  submission.requestId;
}
if (submission.status !== 'queued') await session.send('and this?', { expectedRequestId: submission.requestId });
// @ts-expect-error an id of a request, not any string
await session.send('x', { expectedRequestId: 'r1' });
// @ts-expect-error an input id is not a request id
await session.send('x', { expectedRequestId: submission.inputId });
// @ts-expect-error no such part
await session.send([{ type: 'audio', audio: 'x' }]);

// Events narrow on their type, and nothing is left over.
for await (const event of session.stream({ includeThinking: true })) {
  typeOf(event.sessionId).is<SessionId>();
  // @ts-expect-error only some events have a delta
  event.delta;
  switch (event.type) {
    case 'turn_start':
    case 'turn_end':
      typeOf(event.turn).is<number>();
      break;
    case 'turn_interrupted':
      typeOf(event.requestId).is<RequestId>();
      break;
    case 'input_applied':
      typeOf(event.priority).is<'now' | 'next'>();
      break;
    case SessionStreamEventType.CONTENT:
    case SessionStreamEventType.THINKING:
      typeOf(event.delta).is<string>();
      break;
    case 'tool_use':
      typeOf(event.id).is<ToolUseId>();
      typeOf(event.input).is<JsonValue>();
      break;
    case 'tool_progress':
      typeOf(event.progress).is<ToolProgress>();
      break;
    case 'tool_message':
      typeOf(event.content).is<ToolDisplayContent>();
      break;
    case 'tool_runtime_patch':
      typeOf(event.patch).is<RuntimePatch>();
      typeOf(event.patch.hooks?.[0]).is<RuntimeHookRegistration | undefined>();
      typeOf(event.patch.toolPolicy?.allow).is<string[] | undefined>();
      break;
    case 'tool_context_patch':
      typeOf(event.patch.metadata?.uploadId).is<JsonValue | undefined>();
      break;
    case 'tool_new_messages':
      typeOf(event.messages).is<ModelMessage[]>();
      break;
    case 'tool_permission_updates':
      typeOf(event.updates).is<PermissionUpdate[]>();
      break;
    case 'tool_result':
      typeOf(event.output).is<JsonValue>();
      typeOf(event.isError).is<boolean>();
      typeOf(event.display?.summary).is<string | undefined>();
      break;
    case 'usage':
      typeOf(event.usage).is<TokenUsage>();
      break;
    case 'result':
      typeOf(event.subtype).is<'success' | 'error'>();
      typeOf(event.content).is<string | undefined>();
      break;
    case 'error':
      typeOf(event.message).is<string>();
      if (event.code === 'MODEL_HTTP_ERROR') event.code satisfies string;
      // @ts-expect-error a failure has no usage
      event.usage;
      break;
    default:
      typeOf(event).is<never>();
  }
}
holds<Equal<(typeof SessionStreamEventType)[keyof typeof SessionStreamEventType], SessionStreamEvent['type']>>();

// The exact fields of every event.
type Fields<T extends SessionStreamEvent['type']> = Exclude<
  keyof Extract<SessionStreamEvent, { type: T }>,
  'type' | 'sessionId'
>;
holds<Equal<Fields<'turn_start' | 'turn_end'>, 'turn'>>();
holds<Equal<Fields<'turn_interrupted'>, 'inputId' | 'requestId' | 'turn'>>();
holds<Equal<Fields<'input_applied'>, 'inputId' | 'requestId' | 'priority' | 'turn'>>();
holds<Equal<Fields<'content'>, 'delta'>>();
holds<Equal<Fields<'thinking'>, 'delta'>>();
holds<Equal<Fields<'tool_use'>, 'id' | 'name' | 'input'>>();
holds<Equal<Fields<'tool_progress'>, 'id' | 'name' | 'progress'>>();
holds<Equal<Fields<'tool_message'>, 'id' | 'name' | 'content'>>();
holds<Equal<Fields<'tool_runtime_patch'>, 'id' | 'name' | 'patch'>>();
holds<Equal<Fields<'tool_context_patch'>, 'id' | 'name' | 'patch'>>();
holds<Equal<Fields<'tool_new_messages'>, 'id' | 'name' | 'messages'>>();
holds<Equal<Fields<'tool_permission_updates'>, 'id' | 'name' | 'updates'>>();
holds<Equal<Fields<'tool_result'>, 'id' | 'name' | 'output' | 'display' | 'isError'>>();
holds<Equal<Fields<'usage'>, 'usage'>>();
holds<Equal<Fields<'result'>, 'subtype' | 'content' | 'error'>>();
holds<Equal<Fields<'error'>, 'message' | 'code'>>();

// The stream is a full generator: it can be left, and driven by hand.
const stream = session.stream();
typeOf(await stream.next()).is<IteratorResult<SessionStreamEvent, void>>();
await stream.return();
await stream.throw(new Error('stop'));

// prompt
const result = await prompt('hello', { provider, model: 'm' });
typeOf(result.result).is<string>();
typeOf(result.toolCalls).is<ToolExecutionRecord[]>();
typeOf(result.usage).is<TokenUsage>();
typeOf(result.duration).is<number>();
typeOf(result.turnsCount).is<number>();
typeOf(result.toolCalls[0]?.isError).is<boolean | undefined>();
typeOf(result.toolCalls[0]?.duration).is<number | undefined>();
// @ts-expect-error no options
await prompt('hello');
