// Measures the package against a floor of plain JavaScript: node bench/run.mjs [--only stream,loop] [--reps 5]
// README.md beside this file says how to read the table.

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { median } from './measure.mjs';
import { makeTree } from './tree.mjs';
import { workloads } from './workloads/index.mjs';

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const load = () => loadavg()[0].toFixed(1);

function settings() {
  const { values } = parseArgs({ options: { only: { type: 'string' }, reps: { type: 'string', default: '5' } } });
  const names = values.only?.split(',') ?? Object.keys(workloads);
  const unknown = names.find((name) => !Object.hasOwn(workloads, name));
  if (unknown !== undefined) throw new Error(`no workload ${unknown}; there are ${Object.keys(workloads).join(', ')}`);
  const reps = Number(values.reps);
  if (!Number.isInteger(reps) || reps < 1) throw new Error(`--reps ${values.reps} is not a positive whole number`);
  return { names, reps };
}

async function startModel() {
  const process_ = spawn(process.execPath, [here('model-server.mjs')], { stdio: ['pipe', 'pipe', 'inherit'] });
  const [line] = await once(process_.stdout, 'data');
  return { url: String(line).trim(), stop: () => process_.stdin.end() };
}

function makeTrees(sizes) {
  const parent = mkdtempSync(join(tmpdir(), 'agent-sdk-bench-'));
  const trees = {};
  for (const size of sizes) {
    const root = join(parent, String(size));
    trees[size] = { root, ...makeTree(root, size) };
  }
  return { trees, remove: () => rmSync(parent, { recursive: true, force: true }) };
}

async function measure(name, options) {
  const args = ['--expose-gc', here('child.mjs'), name, JSON.stringify(options)];
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 300_000 });
  return JSON.parse(stdout);
}

/** Figures of a case by side, one a repetition. The sides take turns, so that both meet the same disturbances. */
async function repeat(name, options, reps) {
  const figures = Object.fromEntries(workloads[name].sides.map((side) => [side, []]));
  for (let i = 0; i < reps; i++) {
    for (const side of workloads[name].sides) figures[side].push(await measure(name, { ...options, side }));
  }
  return figures;
}

/** Ratios repetition by repetition: their median and their range. */
function ratio(above, below) {
  const ratios = above.map((value, i) => value / below[i]);
  return { ratio: median(ratios), least: Math.min(...ratios), most: Math.max(...ratios) };
}

function rowsOf(workload, { name }, figures) {
  const [floor, ...others] = workload.sides;
  return Object.entries(workload.metrics).flatMap(([key, metric]) => {
    const of = (side) => figures[side].map((figure) => figure[key]);
    const row = (side, against) => ({
      what: `${workload.title}: ${name}`,
      metric,
      pair: `${side} / ${against}`,
      values: [median(of(side)), median(of(against))],
      ...ratio(of(side), of(against)),
    });
    const rows = others.map((side) => row(side, floor));
    return others.includes('rg') ? [...rows, row('sdk', 'rg')] : rows;
  });
}

function growthRows({ title, sides, growth: { from, to, metric } }, byCase) {
  return sides.map((side) => {
    const [long, short] = [to, from].map((name) => byCase[name][side].map((figure) => figure[metric]));
    const values = [median(long), median(short)];
    return { what: `${title}: ${to} / ${from}`, metric: 'CPU a turn', pair: side, values, ...ratio(long, short) };
  });
}

const digits = (value) => (value >= 100 ? value.toFixed(0) : value.toPrecision(3));

function print(rows) {
  const cells = rows.map(({ what, metric, pair, values, ratio, least, most }) => [
    what,
    metric,
    pair,
    ...values.map(digits),
    `${ratio.toFixed(2)} x`,
    `${least.toFixed(2)}..${most.toFixed(2)}`,
  ]);
  const table = [['workload', 'cost', 'pair', 'first', 'second', 'ratio', 'range'], ...cells];
  const widths = table[0].map((_, column) => Math.max(...table.map((row) => row[column].length)));
  for (const row of table) {
    const line = row.map((cell, i) => (i < 3 ? cell.padEnd(widths[i]) : cell.padStart(widths[i])));
    console.log(line.join('  '));
  }
}

const { names, reps } = settings();
const chosen = names.map((name) => workloads[name]);
const model = chosen.some((workload) => workload.model) ? await startModel() : undefined;
const { trees, remove } = makeTrees(new Set(chosen.flatMap((workload) => workload.trees ?? [])));
const before = load();
try {
  const rows = [];
  for (const name of names) {
    const workload = workloads[name];
    const byCase = {};
    for (const each of workload.cases) {
      process.stderr.write(`${workload.title}: ${each.name}\n`);
      byCase[each.name] = await repeat(name, { ...each, url: model?.url, trees }, reps);
      rows.push(...rowsOf(workload, each, byCase[each.name]));
    }
    if (workload.growth) rows.push(...growthRows(workload, byCase));
  }
  console.log(
    `Node ${process.version}, ${process.platform} ${process.arch}, ${availableParallelism()} CPUs, ` +
      `load ${before} to ${load()}, medians of ${reps}\n`,
  );
  print(rows);
} finally {
  model?.stop();
  remove();
}
