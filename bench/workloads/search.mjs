// Grep and Glob, called directly, against a walker in JavaScript and against ripgrep where it is installed.

import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, median, timed } from '../measure.mjs';
import { NEEDLE } from '../tree.mjs';

/** All files below a directory, without what its `.gitignore` names (plain names only). */
function walk(root) {
  const ignored = new Set(['.git', ...readFileSync(join(root, '.gitignore'), 'utf8').split(/\/?\n/)]);
  const files = [];
  const visit = (directory) => {
    for (const entry of readdirSync(directory, { withFileTypes: true })) {
      if (ignored.has(entry.name)) continue;
      const path = join(directory, entry.name);
      if (entry.isDirectory()) visit(path);
      else files.push(path);
    }
  };
  visit(root);
  return files;
}

const floor = {
  grep: (root) => walk(root).filter((path) => new RegExp(NEEDLE).test(readFileSync(path, 'utf8'))).length,
  glob: (root) => walk(root).filter((path) => path.endsWith('.tsx')).length,
};

function ripgrep(...args) {
  const { status, stdout, error } = spawnSync('rg', args, { encoding: 'utf8', maxBuffer: 2 ** 28 });
  if (error) throw error;
  expect('exit status of rg', status, 0);
  return stdout.split('\n').length - 1;
}

const rg = {
  grep: (root) => ripgrep('-l', NEEDLE, root),
  glob: (root) => ripgrep('--files', '-g', '**/*.tsx', root),
};

async function sdk() {
  const { getBuiltinTools } = await import('@blade-ai/agent-sdk/advanced');
  const tools = new Map((await getBuiltinTools()).map((tool) => [tool.name, tool]));
  const call = async (name, root, params) => {
    const capabilities = { filesystem: { roots: [root], cwd: root } };
    const contextSnapshot = { cwd: root, filesystemRoots: [root], context: { capabilities }, capabilities };
    const execution = tools.get(name).execute({ path: root, ...params }, { sessionId: 'bench', contextSnapshot });
    for (;;) {
      const { done, value } = await execution.next();
      if (done && value.status === 'success') return value.model;
      if (done) throw new Error(JSON.stringify(value.model));
    }
  };
  return {
    grep: async (root) => (await call('Grep', root, { pattern: NEEDLE, output_mode: 'files_with_matches' })).length,
    glob: async (root) => (await call('Glob', root, { pattern: '**/*.tsx', max_results: 1000 })).match(/^- /gm).length,
  };
}

async function measure({ side, tool, trees, files, rounds }) {
  const tools = side === 'sdk' ? await sdk() : { floor, rg }[side];
  const { root, needles, tsx } = trees[files];
  const found = { grep: needles, glob: tsx }[tool];
  const walls = [];
  // The first round warms this process and the page cache.
  for (let i = 0; i <= rounds; i++) {
    const { wall } = await timed(1, async () => expect(`${tool} results`, await tools[tool](root), found));
    if (i > 0) walls.push(wall);
  }
  return { wall: median(walls) / 1000 };
}

const hasRipgrep = () => spawnSync('rg', ['--version']).status === 0;

export default {
  title: 'search',
  floor: 'a walker with readdirSync, readFileSync and a RegExp',
  trees: [20_000, 50],
  cases: ['grep', 'glob'].flatMap((tool) => [
    { name: `${tool}, 20,000 files`, tool, files: 20_000, rounds: 5 },
    { name: `${tool}, 50 files`, tool, files: 50, rounds: 50 },
  ]),
  metrics: { wall: 'wall ms' },
  sides: ['floor', 'sdk', ...(hasRipgrep() ? ['rg'] : [])],
  run: measure,
};
