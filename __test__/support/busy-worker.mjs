// A worker with a Session at work. It says "busy" once its work is under way and then goes on until it is ended, or,
// with `once`, until its work is done.

import { parentPort, workerData } from 'node:worker_threads';
import { createSession, defineTool } from '@blade-ai/agent-sdk';
import { getBuiltinTools } from '@blade-ai/agent-sdk/advanced';
import { scriptedProvider } from '@blade-ai/agent-sdk/testing';

const { mode, once } = workerData;
let said = false;
const busy = () => {
  if (!said) parentPort.postMessage('busy');
  said = true;
};

const define = (name, execute) => defineTool({ name, description: name, parameters: { type: 'object' }, execute });
const calls = (...names) => ({ toolCalls: names.map((name) => ({ name })) });
const endless = async function* () {
  for (let n = 0; ; n++) {
    busy();
    yield { kind: 'progress', message: String(n) };
  }
};
const chatter = async function* () {
  for (;;) {
    busy();
    yield { content: 'x' };
  }
};
const forever = () => new Promise(busy);

const tools = [
  define('Answer', async () => 'x'.repeat(1_000)),
  define('Reject', async () => Promise.reject(new Error('no'))),
  define('Timer', () => new Promise((resolve) => setTimeout(resolve, 1, 'late'))),
  define('Forever', forever),
  { ...define('Endless', async () => null), execute: endless },
];

/** How often each mode plays its turn before the answer. */
const modes = {
  stream: { turns: () => ({ text: Array(2_000).fill('delta 世界 ') }) },
  tools: { turns: () => calls('Answer', 'Reject', 'Timer', 'Answer', 'Answer') },
  hang: { turns: () => calls('Forever', 'Answer', 'Forever') },
  generator: { turns: () => calls('Endless', 'Answer') },
  permission: { turns: () => calls('Answer', 'Timer'), permissionHandler: forever },
  decided: { turns: () => calls('Answer', 'Timer'), permissionHandler: async () => ({ behavior: 'allow' }) },
  middleware: { turns: () => ({ text: Array(2_000).fill('delta 世界 ') }), wrapStream: (_, next) => next() },
  chatter: { turns: () => 'never', wrapStream: chatter },
};

async function request({ turns, permissionHandler, wrapStream }) {
  let left = once ? 3 : Number.POSITIVE_INFINITY;
  const provider = scriptedProvider(() => (left-- > 0 ? turns() : 'end'));
  const options = { provider, model: 'm', permissionMode: 'yolo', tools, permissionHandler, maxTurns: 100_000 };
  if (wrapStream !== undefined) options.middleware = { model: [{ wrapStream }] };
  const session = await createSession(options);
  do {
    await session.send('go');
    for await (const event of session.stream()) if (event.type !== 'turn_start') busy();
  } while (!once);
  await session.close();
}

async function sessions() {
  do {
    const session = await createSession({ provider: scriptedProvider(['a', 'b']), model: 'm', tools });
    await session.send('go');
    for await (const _ of session.stream()) busy();
    await session.send('left alone');
    await session.stream().next();
  } while (!once);
}

async function direct() {
  const root = process.cwd();
  const context = { contextSnapshot: { filesystemRoots: [root], cwd: root } };
  const [grep] = (await getBuiltinTools()).filter(({ name }) => name === 'Grep');
  do {
    const run = grep.execute({ pattern: 'export', path: 'js' }, context);
    busy();
    for (let step = await run.next(); !step.done; step = await run.next());
  } while (!once);
}

await (mode === 'sessions' ? sessions() : mode === 'direct' ? direct() : request(modes[mode]));
