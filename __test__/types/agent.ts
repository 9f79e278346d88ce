// createAgent and its responses.

import {
  AgentResponse,
  createAgent,
  ToolKind,
  type Agent,
  type AgentPermission,
  type AgentPermissionRequest,
  type AgentResponseEvent,
  type InputId,
  type RequestId,
  type SessionId,
  type ToolUseId,
} from '@blade-ai/agent-sdk';
import { scriptedProvider } from '@blade-ai/agent-sdk/testing';
import { typeOf } from './expect.js';

const agent = await createAgent({ model: 'm', apiKey: 'k' });
typeOf(agent).is<Agent>();
// @ts-expect-error no key
await createAgent({ model: 'm' });
// @ts-expect-error no model
await createAgent({ apiKey: 'k' });
// A connection object needs no key beside it.
await createAgent({ model: 'm', provider: scriptedProvider(['hello']) });
await createAgent({ model: 'm', provider: { type: 'openai-compatible', baseUrl: 'http://127.0.0.1:1/v1' } });
await createAgent({ model: 'm', provider: { type: 'openai' }, apiKey: 'k', baseUrl: 'http://127.0.0.1:1/v1' });
// @ts-expect-error a connection names its type
await createAgent({ model: 'm', provider: { apiKey: 'k' } });
// @ts-expect-error a type alone needs a key
await createAgent({ model: 'm', provider: 'openai-compatible' });
// @ts-expect-error no such profile
await createAgent({ model: 'm', apiKey: 'k', profile: 'remote' });

await createAgent({
  model: 'm',
  apiKey: 'k',
  provider: 'openai-compatible',
  baseUrl: 'http://127.0.0.1:1/v1',
  profile: 'local',
  filesystem: { roots: ['/srv'], cwd: '/srv' },
  tools: [],
  systemPrompt: 's',
  temperature: 0,
  maxOutputTokens: 1,
  maxTurns: 1,
  advanced: {
    connection: { headers: { a: 'b' }, streamIdleTimeoutMs: 1 },
    permission: 'accept-edits',
    toolTimeoutMs: 1,
    allowedTools: [],
    permissions: { ask: ['Write'] },
    confirmationFallback: 'allow',
  },
});
// @ts-expect-error the connection's type is the agent's provider
await createAgent({ model: 'm', apiKey: 'k', advanced: { connection: { type: 'openai' } } });
await createAgent({ model: 'm', apiKey: 'k', advanced: { logger: { log() {} } } });
// @ts-expect-error a logger has a method `log`
await createAgent({ model: 'm', apiKey: 'k', advanced: { logger: {} } });
// @ts-expect-error `permission` is the policy
await createAgent({ model: 'm', apiKey: 'k', advanced: { permissionMode: 'yolo' } });
// @ts-expect-error `permission` is the policy
await createAgent({ model: 'm', apiKey: 'k', advanced: { permissionHandler: async () => ({ behavior: 'allow' }) } });
// @ts-expect-error a top-level option
await createAgent({ model: 'm', apiKey: 'k', advanced: { tools: [] } });

// Permission: preset, word, promise of a word, full result.
const policies: AgentPermission[] = [
  'default',
  'bypass-permissions',
  'plan',
  () => 'deny',
  async (request) => (request.toolMeta.isReadOnly ? 'allow' : 'ask'),
  async () => 'ask' as const,
  (request) => {
    typeOf(request).is<AgentPermissionRequest>();
    typeOf(request.kind).is<ToolKind>();
    // @ts-expect-error named kind here
    request.toolKind;
    return request.kind === ToolKind.ReadOnly || request.kind === 'write'
      ? 'allow'
      : { behavior: 'deny', message: `not ${request.toolName}` };
  },
  async (request) => ({ behavior: 'allow', updatedInput: { ...request.input, safe: true } }),
];
void policies;
// @ts-expect-error no such preset
const badPreset: AgentPermission = 'yolo';
// @ts-expect-error no such word
const badWord: AgentPermission = () => 'maybe';
// @ts-expect-error a denial has a message
const badResult: AgentPermission = () => ({ behavior: 'deny' });
void [badPreset, badWord, badResult];

// Responses.
const response = await agent.send('hi', { maxTurns: 2 });
typeOf(response).is<AgentResponse>();
typeOf(response.submission).is<{ status: 'started'; inputId: InputId; requestId: RequestId }>();
typeOf(response.isSettled).is<boolean>();
typeOf(await response.text()).is<string>();
for await (const delta of response.textStream()) typeOf(delta).is<string>();
for await (const event of response.stream()) {
  typeOf(event).is<AgentResponseEvent>();
  if (event.type === 'result') typeOf(event.content).is<string | undefined>();
}
typeOf(
  response
    .on('tool_use', (event) => {
      typeOf(event.id).is<ToolUseId>();
    })
    .on('content', async (event) => {
      typeOf(event.delta).is<string>();
      // @ts-expect-error a delta has no usage
      event.usage;
    }),
).is<AgentResponse>();
// @ts-expect-error no such event
response.on('tool_call', () => {});
// @ts-expect-error responses come from agents
new AgentResponse();
const unknownValue: unknown = response;
if (unknownValue instanceof AgentResponse) await unknownValue.text();

// The rest of a Session is there; its stream is not.
typeOf(agent.sessionId).is<SessionId>();
agent.setPermissionMode('plan');
await agent.abort();
await agent.close();
// @ts-expect-error the stream belongs to the response
agent.stream();
await using scoped = await createAgent({ model: 'm', apiKey: 'k', provider: scriptedProvider([]).type });
void scoped;
