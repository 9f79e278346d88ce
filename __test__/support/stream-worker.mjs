// Reads a stream in a worker and reports what it saw.

import { parentPort } from 'node:worker_threads';
import { createSession } from '@blade-ai/agent-sdk';
import { scriptedProvider } from '@blade-ai/agent-sdk/testing';

const provider = scriptedProvider([{ text: Array(5_000).fill('世界 ') }]);
const session = await createSession({ provider, model: 'scripted' });
await session.send('go');
const seen = { deltas: 0, text: 0, result: undefined };
for await (const event of session.stream()) {
  if (event.type === 'content') {
    seen.deltas++;
    seen.text += event.delta.length;
  }
  if (event.type === 'result') seen.result = event.subtype;
}
parentPort.postMessage(seen);
