// Sessions over a script, and the verbs tests speak in.

import { createSession, defineTool } from '@blade-ai/agent-sdk';
import { scriptedProvider } from '@blade-ai/agent-sdk/testing';

/** A Session that plays turns; closed with the test unless the test did it. Tools run without questions. */
export async function open(t, turns, options = {}) {
  const provider = scriptedProvider(turns);
  const session = await createSession({ provider, model: 'scripted', permissionMode: 'yolo', ...options });
  t.after(() => session.close().catch(() => {}));
  return { session, provider };
}

/** A tool without parameters unless the test says otherwise. */
export function tool(name, execute, more = {}) {
  return defineTool({ name, description: name, parameters: { type: 'object' }, execute, ...more });
}

/** A definition that speaks the generator protocol itself. */
export function generatorTool(name, execute, more = {}) {
  return { ...tool(name, async () => null, more), execute };
}

/** A turn of calls: names, or `[name, input]`. */
export const calls = (...list) => ({
  toolCalls: list.map((one) => (typeof one === 'string' ? { name: one } : { name: one[0], input: one[1] })),
});

/** Everything a stream says. */
export async function all(stream) {
  const events = [];
  for await (const event of stream) events.push(event);
  return events;
}

/** Sends and reads to the end. */
export async function ask(session, message = 'go', options) {
  await session.send(message, options);
  return all(session.stream());
}

export const ofType = (events, type) => events.filter((event) => event.type === type);
export const textOf = (events) =>
  ofType(events, 'content')
    .map(({ delta }) => delta)
    .join('');

/** A promise with its handles. */
export function deferred() {
  let resolve;
  let reject;
  const promise = new Promise((...settle) => {
    [resolve, reject] = settle;
  });
  return { promise, resolve, reject };
}

/** The next macrotask: everything that was ready before it has run. */
export const macrotask = () => new Promise((resolve) => setImmediate(resolve));

/** Waits until `holds()` is true, a macrotask at a time. */
export async function until(holds) {
  while (!holds()) await macrotask();
}
