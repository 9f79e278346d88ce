// Stopping: by the caller's signal, by a deadline, and by leaving the loop.

import { createSession, defineTool, ToolKind } from '@blade-ai/agent-sdk';
import { scriptedProvider } from '@blade-ai/agent-sdk/testing';

/** Tells that the tool runs. */
let running = () => {};

/** A tool that never ends by itself. It releases what it holds when its signal aborts, as every tool should. */
const waitForEver = defineTool({
  name: 'Wait',
  description: 'Wait for ever',
  parameters: { type: 'object', properties: {} },
  kind: ToolKind.ReadOnly,
  execute: (_params, { signal }) =>
    new Promise((_resolve, reject) => {
      running();
      const timer = setInterval(() => {}, 60_000);
      signal.addEventListener('abort', () => {
        clearInterval(timer);
        console.log('  the tool was told to stop and has cleaned up');
        reject(signal.reason);
      });
    }),
});

async function withSession(turns, options, body) {
  const session = await createSession({
    provider: scriptedProvider(turns),
    model: 'scripted',
    tools: [waitForEver],
    ...options,
  });
  try {
    await body(session);
  } finally {
    await session.close();
  }
}

const callWait = { toolCalls: [{ name: 'Wait' }] };

console.log('the caller aborts its signal');
await withSession([callWait, 'Hello again.'], {}, async (session) => {
  const controller = new AbortController();
  running = () => controller.abort();
  await session.send('Wait.', { signal: controller.signal });
  let terminal = 'none';
  for await (const event of session.stream()) {
    if (event.type === 'result' || event.type === 'error') terminal = event.type;
  }
  // Cancelling is not a failure: the stream just ends, and the Session takes the next message.
  console.log(`  terminal event: ${terminal}`);
  await session.send('Still there?');
  for await (const event of session.stream()) if (event.type === 'result') console.log(`  ${event.content}`);
});

console.log('a tool exceeds its deadline');
running = () => {};
await withSession([callWait, 'The tool took too long.'], { toolTimeoutMs: 20 }, async (session) => {
  await session.send('Wait.');
  for await (const event of session.stream()) {
    // An error of a tool is a result the model reads. The request goes on.
    if (event.type === 'tool_result') console.log(`  ${event.output}`);
    if (event.type === 'result') console.log(`  ${event.content}`);
  }
});

console.log('the model goes silent');
const silent = scriptedProvider([{ text: 'I was going to', fault: { kind: 'hang', after: 1 } }], {
  streamIdleTimeoutMs: 20,
});
await withSession([], { provider: silent }, async (session) => {
  await session.send('Say something.');
  for await (const event of session.stream())
    if (event.type === 'error') console.log(`  ${event.code}: ${event.message}`);
});

console.log('the consumer has seen enough');
await withSession([{ text: ['one ', 'two ', 'three'] }], {}, async (session) => {
  await session.send('Count.');
  for await (const event of session.stream()) {
    if (event.type === 'content') {
      console.log(`  ${event.delta.trim()}, and out`);
      break; // cancels the request and waits for its cleanup
    }
  }
});
