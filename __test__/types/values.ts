// Constants, ids, errors, context, middleware, lifecycle.

import {
  AbortError,
  composeMiddleware,
  ConfigError,
  CONVERSATION_MESSAGE_SOURCES,
  createContextSnapshot,
  EventSequence,
  FencingToken,
  getErrorCode,
  getErrorMessage,
  getErrorName,
  gracefulShutdown,
  hasFilesystemCapability,
  type HookEvent,
  type InputId,
  type InputPriority,
  isBuiltinProviderType,
  isConversationMessageSource,
  mergeContext,
  type MessageRole,
  ModelTimeoutError,
  type PermissionDecision,
  PermissionMode,
  PROVIDER_TYPES,
  ProviderRegistryError,
  registerCleanup,
  RequestId,
  resetCleanupRegistry,
  SdkError,
  SessionHandoffError,
  SessionId,
  SessionInputError,
  toError,
  type ToolErrorType,
  ToolExecutionError,
  ToolKind,
  type ToolSideEffect,
  TurnId,
  type BuiltinProviderType,
  type ContextSnapshot,
  type ConversationMessageSource,
  type JsonObject,
  type JsonValue,
  type Middleware,
  type ModelMessage,
  type ProviderType,
  type RuntimeContext,
} from '@blade-ai/agent-sdk';
import { holds, typeOf, type Equal } from './expect.js';

// Constants have exactly the documented members, and their types are their values.
holds<
  Equal<
    typeof ToolSideEffect,
    { readonly PURE: 'pure'; readonly IDEMPOTENT: 'idempotent'; readonly NON_IDEMPOTENT: 'non_idempotent' }
  >
>();
holds<
  Equal<
    typeof PermissionMode,
    { readonly DEFAULT: 'default'; readonly AUTO_EDIT: 'autoEdit'; readonly YOLO: 'yolo'; readonly PLAN: 'plan' }
  >
>();
holds<Equal<typeof PermissionDecision, { readonly ALLOW: 'allow'; readonly DENY: 'deny'; readonly ASK: 'ask' }>>();
holds<Equal<typeof InputPriority, { readonly NOW: 'now'; readonly NEXT: 'next'; readonly LATER: 'later' }>>();
holds<
  Equal<
    typeof MessageRole,
    { readonly SYSTEM: 'system'; readonly USER: 'user'; readonly ASSISTANT: 'assistant'; readonly TOOL: 'tool' }
  >
>();
holds<
  Equal<
    ToolErrorType,
    'validation_error' | 'permission_denied' | 'execution_error' | 'interrupted' | 'timeout_error' | 'network_error'
  >
>();
holds<Equal<keyof typeof ToolKind, 'ReadOnly' | 'Write' | 'Execute'>>();
holds<typeof ToolKind.ReadOnly extends 'readonly' ? true : false>();
holds<Equal<{ [K in HookEvent]: K }, { -readonly [K in keyof typeof HookEvent]: (typeof HookEvent)[K] }>>();
// @ts-expect-error constants do not change
PermissionMode.DEFAULT = 'plan';

// A kind is a string, tells itself apart from the others, and cannot be made from a literal.
function label(kind: ToolKind): string {
  switch (kind) {
    case 'readonly':
      return kind.toUpperCase();
    case 'write':
    case 'execute':
      return kind;
    default:
      typeOf(kind).is<never>();
      return kind;
  }
}
label(ToolKind.Write);
// @ts-expect-error a raw literal
label('write');
declare const kind: ToolKind;
// @ts-expect-error no kind has this value
if (kind === 'delete') label(kind);

// Ids are strings or numbers with a mark.
const sessionId = SessionId('s1');
const requestId = RequestId('r1');
const text: string = sessionId;
const count: number = FencingToken(4) + EventSequence(3);
void [text, count];
// @ts-expect-error any string is not an id
const bare: SessionId = 's1';
// @ts-expect-error one kind of id does not stand in for another
const crossed: InputId = requestId;
// @ts-expect-error a sequence is a number
EventSequence('3');
// @ts-expect-error an id is made from a string
SessionId(3);
void [bare, crossed];
const ids = new Map<RequestId, string>([[requestId, 'x']]);
ids.get(RequestId('r1'));

// JSON.
const json: JsonValue = { a: [1, 'b', null, { c: true }] };
void json;
// @ts-expect-error not JSON
const dateJson: JsonValue = new Date();
// @ts-expect-error not JSON
const undefinedJson: JsonObject = { a: undefined };
void [dateJson, undefinedJson];

// Errors.
const error = new ConfigError('toolTimeoutMs must be from 1 to 2147483647, got 0', { cause: new Error('x') });
typeOf(error.code).is<'CONFIG_ERROR'>();
const sdkError: SdkError = error;
typeOf(sdkError.toJSON()).is<JsonObject>();
typeOf(new SdkError('x', { code: 'SESSION_CLOSED', status: 500 }).status).is<number | undefined>();
typeOf(new AbortError().code).is<'ABORT'>();
// @ts-expect-error cancelling is not a failure
const abortAsSdkError: SdkError = new AbortError();
void abortAsSdkError;
typeOf(new ModelTimeoutError('x', { code: 'MODEL_REQUEST_TIMEOUT' }).code).is<
  'MODEL_REQUEST_TIMEOUT' | 'MODEL_STREAM_IDLE_TIMEOUT'
>();
// @ts-expect-error a timeout says which
new ModelTimeoutError('x');
// @ts-expect-error its code is its own
new ConfigError('x', { code: 'INTERNAL' });
typeOf(new ToolExecutionError('x', { toolName: 'T' }).toolName).is<string>();
typeOf(
  new ProviderRegistryError('x', { code: 'PROVIDER_ADAPTER_NOT_FOUND', providerType: 'nope' }).providerType,
).is<string>();
typeOf(new SessionHandoffError('x', { code: 'SESSION_HANDOFF_ACTIVE_WORK' }).activeShellIds).is<readonly string[]>();
try {
  throw error;
} catch (caught) {
  if (caught instanceof SessionInputError && caught.code === 'SESSION_REQUEST_MISMATCH')
    typeOf(caught).is<SessionInputError>();
  typeOf(getErrorCode(caught)).is<string | undefined>();
  typeOf(getErrorMessage(caught)).is<string>();
  typeOf(getErrorName(caught)).is<string>();
  typeOf(toError(caught)).is<Error>();
}

// Providers and message sources.
holds<
  Equal<BuiltinProviderType, 'openai' | 'anthropic' | 'azure-openai' | 'gemini' | 'deepseek' | 'openai-compatible'>
>();
const custom: ProviderType = 'my-gateway';
if (isBuiltinProviderType(custom)) custom satisfies BuiltinProviderType;
typeOf(PROVIDER_TYPES.length).is<6>();
typeOf(CONVERSATION_MESSAGE_SOURCES[0]).is<'catalog'>();
const source: unknown = 'catalog';
if (isConversationMessageSource(source)) typeOf(source).is<ConversationMessageSource>();
const message: ModelMessage = {
  role: 'assistant',
  content: [{ type: 'text', text: 'x' }],
  tool_calls: [{ id: 'c1', type: 'function', function: { name: 'T', arguments: '{}' } }],
};
// @ts-expect-error no such role
message.role = 'developer';

// Runtime context.
const context: RuntimeContext = mergeContext({ environment: { A: '1' } }, { metadata: { a: 1 } });
if (hasFilesystemCapability(context)) typeOf(context.capabilities.filesystem.roots).is<readonly string[]>();
const snapshot = createContextSnapshot(sessionId, TurnId('t1'), context);
typeOf(snapshot).is<ContextSnapshot>();
typeOf(snapshot.filesystemRoots).is<readonly string[]>();
// @ts-expect-error a snapshot does not change
snapshot.filesystemRoots.push('/');
// @ts-expect-error a turn id does not name a Session
createContextSnapshot(TurnId('t1'), TurnId('t1'));

// Middleware.
const double: Middleware<number, Promise<number>> = async (request, next) => 2 * (await next(request + 1));
const run = composeMiddleware([double, (request, next) => next(request)], async (request: number) => request);
typeOf(await run(1)).is<number>();
// @ts-expect-error the request has a type
run('1');

// Lifecycle.
const handle = registerCleanup(async () => {});
handle.unregister();
await gracefulShutdown();
await gracefulShutdown({ timeoutMs: 0, onError: (reason) => typeOf(reason).is<unknown>() });
resetCleanupRegistry();
