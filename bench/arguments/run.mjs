// Arguments from text to validated: the native core against JSON.parse and a compiled ajv check, in one interleaved run.
//   npm install --prefix bench/arguments && node bench/arguments/run.mjs [--reps 15]

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import Ajv from 'ajv/dist/2019.js';
import { median } from '../measure.mjs';

const ROUNDS = 2_000;
const { values } = parseArgs({ options: { reps: { type: 'string', default: '101' } } });
const reps = Number(values.reps);
const read = (name) => JSON.parse(readFileSync(new URL(name, import.meta.url), 'utf8'));

const text = JSON.stringify(read('document.json'));
const check = new Ajv({ strict: false }).compile(read('schema.json'));

function script() {
  const started = process.hrtime.bigint();
  for (let i = 0; i < ROUNDS; i++) {
    if (!check(JSON.parse(text))) throw new Error('the document does not match its schema');
  }
  return Number(process.hrtime.bigint() - started) / ROUNDS / 1000;
}

const cwd = fileURLToPath(new URL('../../', import.meta.url));
const command = ['bench', '--quiet', '--no-default-features', '--bench', 'arguments'];
const child = spawn('cargo', command, { cwd, stdio: ['pipe', 'pipe', 'inherit'] });
const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();

async function native() {
  child.stdin.write(`${ROUNDS}\n`);
  const { value, done } = await lines.next();
  if (done) throw new Error('the native side has ended');
  return Number(value) / ROUNDS / 1000;
}

const figures = { native: [], script: [] };
for (let rep = 0; rep <= reps; rep++) {
  const round = { native: await native(), script: script() };
  // The first round warms up.
  if (rep > 0) for (const side of ['native', 'script']) figures[side].push(round[side]);
}
child.stdin.end();
await once(child, 'exit');

const ratios = figures.native.map((value, i) => value / figures.script[i]);
const show = (list) => `${median(list).toFixed(2)} (${Math.min(...list).toFixed(2)}..${Math.max(...list).toFixed(2)})`;
console.log(`${Buffer.byteLength(text)} bytes, Node ${process.version}, ${reps} repetitions of ${ROUNDS}`);
console.log(`native core          ${show(figures.native)} µs`);
console.log(`JSON.parse and ajv   ${show(figures.script)} µs`);
console.log(`ratio                ${show(ratios)} x`);
