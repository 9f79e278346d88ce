// What a call of a JavaScript tool that does nothing costs, alone and among 64 of one turn: node bench/calls.mjs
//
// The model is a script in this process, so that no network is measured. A turn without tools is a request of its own
// ("plain"); what a call adds is told apart from it in two ways, both in README.md beside this file.

import { parseArgs } from 'node:util';
import { createSession, defineTool } from '@blade-ai/agent-sdk';
import { scriptedProvider } from '@blade-ai/agent-sdk/testing';
import { expect, median } from './measure.mjs';

const TURNS = 20;
const MANY = 64;
const { values } = parseArgs({ options: { reps: { type: 'string', default: '60' } } });
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

const figures = { plain: [], 'alone, with its turn': [], alone: [], 'among 64, with the turn': [], 'among 64': [] };
for (let rep = -5; rep < reps; rep++) {
  const plain = await request(0, 0);
  const one = (await request(TURNS, 1)) - plain;
  const many = (await request(TURNS, MANY)) - plain;
  if (rep < 0) continue;
  figures.plain.push(plain);
  figures['alone, with its turn'].push(one / TURNS);
  figures['among 64, with the turn'].push(many / TURNS / MANY);
  figures['among 64'].push((many - one) / TURNS / (MANY - 1));
  figures.alone.push(one / TURNS - plain);
}

console.log(`Node ${process.version}, medians of ${reps}, µs`);
for (const [name, list] of Object.entries(figures)) {
  const [median_, least, most] = [median(list), Math.min(...list), Math.max(...list)].map((value) => value.toFixed(1));
  console.log(`${name.padEnd(24)} ${median_.padStart(7)}   ${least}..${most}`);
}
