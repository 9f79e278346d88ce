// What a call of a JavaScript tool that does nothing costs, alone and among 64 of one turn: node bench/calls.mjs
//
// The model is a script in this process, so that no network is measured. "plain" is a request without tools.

import { parseArgs } from 'node:util';
import { createSession, defineTool } from '@blade-ai/agent-sdk';
import { scriptedProvider } from '@blade-ai/agent-sdk/testing';
import { expect, quantile } from './measure.mjs';

/** Few turns of many calls: the script reads the whole history in each, which is not what is measured. */
const TURNS = { alone: 32, many: 4 };
const MANY = 64;
const { values } = parseArgs({ options: { reps: { type: 'string', default: '200' } } });
const reps = Number(values.reps);

let ran = 0;
const noop = defineTool({
  name: 'noop',
  description: 'Does nothing',
  kind: 'readonly',
  parameters: {
    type: 'object',
    properties: { i: { type: 'integer' }, text: { type: 'string' } },
    required: ['i'],
    additionalProperties: false,
  },
  async execute() {
    ran++;
    return 'ok';
  },
});

const input = '{"i":7,"text":"what the tool is given"}';
const turn = (calls) => ({ toolCalls: Array.from({ length: calls }, () => ({ name: 'noop', input })) });

/** Microseconds of a request with so many turns of so many calls. */
async function request(turns, calls) {
  const provider = scriptedProvider([...Array.from({ length: turns }, () => turn(calls)), 'done']);
  const session = await createSession({ provider, model: 'm', tools: [noop], toolConcurrency: { readonly: MANY } });
  ran = 0;
  const started = performance.now();
  await session.send('go');
  let result;
  for await (const event of session.stream()) if (event.type === 'result') result = event.content;
  const time = (performance.now() - started) * 1000;
  await session.close();
  expect('result', result, 'done');
  expect('calls', ran, turns * calls);
  return time;
}

const figures = { plain: [], 'alone, with its turn': [], 'among 64, with the turn': [], 'among 64': [] };
for (let rep = -5; rep < reps; rep++) {
  const plain = await request(0, 0);
  const alone = ((await request(TURNS.alone, 1)) - plain) / TURNS.alone;
  const few = (await request(TURNS.many, 1)) - plain;
  const many = (await request(TURNS.many, MANY)) - plain;
  // The first rounds warm up.
  if (rep < 0) continue;
  figures.plain.push(plain);
  figures['alone, with its turn'].push(alone);
  figures['among 64, with the turn'].push(many / TURNS.many / MANY);
  figures['among 64'].push((many - few) / TURNS.many / (MANY - 1));
}

console.log(`Node ${process.version}, medians of ${reps} in µs, and the range of the middle 80 %`);
for (const [name, list] of Object.entries(figures)) {
  const [middle, low, high] = [0.5, 0.1, 0.9].map((share) => quantile(list, share).toFixed(1));
  console.log(`${name.padEnd(24)} ${middle.padStart(7)}   ${low}..${high}`);
}
