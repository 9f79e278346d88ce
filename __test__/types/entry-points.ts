// What each entry point has, and what the scripted provider takes and gives.

// @ts-expect-error an internal type stays internal
import type { Branded } from '@blade-ai/agent-sdk';
import * as root from '@blade-ai/agent-sdk';
import * as advanced from '@blade-ai/agent-sdk/advanced';
import type * as testing from '@blade-ai/agent-sdk/testing';
import {
  scriptedProvider,
  type ScriptedProvider,
  type ScriptedRequest,
  type ScriptedTurn,
} from '@blade-ai/agent-sdk/testing';
import { holds, typeOf, type Equal, type IsAny } from './expect.js';

// `/advanced` is a superset of the root with the same shapes.
holds<Exclude<keyof typeof root, keyof typeof advanced> extends never ? true : false>();
holds<
  Equal<
    Exclude<keyof typeof advanced, keyof typeof root>,
    'createNodeSession' | 'promptNode' | 'createServerSession' | 'promptServer' | 'getBuiltinTools' | 'MemoryManager'
  >
>();
holds<Equal<keyof typeof testing, 'scriptedProvider'>>();
holds<Equal<typeof advanced.createNodeSession, typeof advanced.createSession>>();
holds<Equal<typeof advanced.promptNode, typeof advanced.prompt>>();
holds<Equal<typeof advanced.createServerSession, typeof root.createSession>>();
holds<Equal<typeof advanced.promptServer, typeof root.prompt>>();
typeOf(advanced.getBuiltinTools()).is<Promise<root.ToolDefinition[]>>();
// @ts-expect-error built-in tools are not at the root
root.getBuiltinTools;

export type Internal = Branded;

// No export is `any`.
type AnyExports<T> = { [K in keyof T]: IsAny<T[K]> extends true ? K : never }[keyof T];
holds<Equal<AnyExports<typeof root>, never>>();
holds<Equal<AnyExports<typeof advanced>, never>>();
holds<Equal<AnyExports<typeof testing>, never>>();

// A script: text, parts, faults, functions of the request.
const turns: ScriptedTurn[] = [
  'hello',
  { text: ['he', 'llo'], thinking: 'hm', usage: { inputTokens: 1, outputTokens: 2 }, finishReason: 'stop' },
  { toolCalls: [{ name: 'Add', input: { a: 1 } }, { id: 'c2', name: 'Add', input: '{"a": ' }, { name: 'Now' }] },
  { text: 'x', usage: false, delayMs: 5 },
  { fault: { kind: 'http', status: 429, message: 'slow down', retryAfterMs: 1 } },
  { text: ['a', 'b'], fault: { kind: 'disconnect', after: 1 } },
  { fault: { kind: 'malformed' } },
  { fault: { kind: 'hang' } },
  { fault: { kind: 'error', message: 'overloaded' } },
];
// @ts-expect-error no such fault
turns.push({ fault: { kind: 'timeout' } });
// @ts-expect-error an HTTP fault has a status
turns.push({ fault: { kind: 'http' } });
// @ts-expect-error a call has a name
turns.push({ toolCalls: [{ input: {} }] });

const provider = scriptedProvider(turns, { streamIdleTimeoutMs: 50 });
typeOf(provider).is<ScriptedProvider>();
typeOf(provider.type).is<'scripted'>();
typeOf(provider.remaining).is<number>();
typeOf(provider.requests).is<readonly ScriptedRequest[]>();
typeOf(provider.requests[0]?.messages.at(-1)?.role).is<root.MessageRole | undefined>();
typeOf(provider.requests[0]?.tools[0]?.parameters).is<root.JsonObject | undefined>();
scriptedProvider((request) => `you sent ${request.messages.length} messages to ${request.model}`);
scriptedProvider(['first', async (request) => ({ text: String(request.temperature) })]);
// @ts-expect-error turns are required
scriptedProvider();
// @ts-expect-error the journal is read-only
provider.requests.length = 0;

// It goes wherever a connection goes.
const session = await root.createSession({ provider, model: 'scripted' });
await advanced.prompt('hi', { provider, model: 'scripted' });
await session.close();
