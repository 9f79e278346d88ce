// What tests of the pipeline share: tools, scripted turns, and a Session over them.

import { createSession, defineTool } from '@blade-ai/agent-sdk';
import { createSession as createLocalSession } from '@blade-ai/agent-sdk/advanced';
import { scriptedProvider } from '@blade-ai/agent-sdk/testing';
import { ask, results } from './run.mjs';

export const anything = { type: 'object' };

/** A tool that answers what `execute` gives; reading unless told otherwise, so that nobody is asked. */
export const tool = (name, execute, more) =>
  defineTool({ name, description: name, parameters: anything, kind: 'readonly', execute, ...more });

/** A tool that speaks the generator protocol. */
export const generator = (name, execute) => ({ ...tool(name, async () => null), execute });

export const calls = (...list) => ({
  toolCalls: list.map((call) => (typeof call === 'string' ? { name: call } : call)),
});

export async function open(t, turns, options = {}) {
  const provider = Array.isArray(turns) ? scriptedProvider(turns) : turns;
  const create = options.profile === 'local' ? createLocalSession : createSession;
  const session = await create({ model: 'm', ...options, provider });
  t.after(() => session.close());
  return { session, provider };
}

/** Runs one turn of calls and gives the results in declared order, with what the model read of each. */
export async function turn(t, list, options) {
  const { session, provider } = await open(t, [calls(...list), 'done'], options);
  const events = await ask(session);
  const read = provider.requests[1]?.messages.filter((message) => message.role === 'tool') ?? [];
  return { events, results: results(events), read, session, provider };
}

export function circular() {
  const value = {};
  value.self = value;
  return value;
}

export const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
