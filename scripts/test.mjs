// Everything that must pass, in order, stopping at the first failure.
//   node scripts/test.mjs                 all steps
//   node scripts/test.mjs build js types  only these

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { ensureInstalled, main, root, run, tool } from './tasks.mjs';

const node = process.execPath;
const clippy = (...features) => ['cargo', ['clippy', '--locked', '--all-targets', ...features, '--', '-D', 'warnings']];

/** Test files below __test__/, listed here because `node --test` of Node 20 takes no patterns. */
function testFiles() {
  const files = readdirSync(join(root, '__test__'), { recursive: true })
    .filter((name) => name.endsWith('.test.mjs'))
    .sort()
    .map((name) => join('__test__', name));
  if (files.length === 0) throw new Error('no test files below __test__/');
  return files;
}

/** Name of a step → the program it runs. Cheap checks come first. */
const steps = {
  format: () => ['cargo', ['fmt', '--check']],
  lint: () => [
    node,
    [
      tool('@biomejs/biome', 'biome'),
      'ci',
      '--error-on-warnings',
      `--colors=${process.stdout.isTTY ? 'force' : 'off'}`,
    ],
  ],
  'clippy-core': () => clippy('--no-default-features'),
  clippy: () => clippy(),
  rust: () => ['cargo', ['test', '--locked', '--no-default-features']],
  build: () => [node, ['scripts/build.mjs', '--release']],
  js: () => [node, ['--test', '--test-reporter=spec', '--import', './__test__/support/watch.mjs', ...testFiles()]],
  types: () => [node, [tool('typescript', 'tsc'), '--noEmit', '-p', '__test__/types']],
  package: () => [node, ['scripts/check-package.mjs']],
};

/** Counts in a runner's output: one line a binary from cargo, two lines from node. A checker without counts is one. */
function count(output, ok) {
  const total = (pattern) => [...output.matchAll(pattern)].reduce((sum, match) => sum + Number(match[1]), 0);
  const passed = total(/^test result: \w+\. (\d+) passed/gm) + total(/^ℹ pass (\d+)$/gm);
  const failed = total(/^test result: \w+\. \d+ passed; (\d+) failed/gm) + total(/^ℹ fail (\d+)$/gm);
  if (passed + failed === 0) return ok ? [1, 0] : [0, 1];
  // A runner that fails without a failed test (it did not compile, a process died) is a failure all the same.
  return [passed, ok ? failed : Math.max(failed, 1)];
}

await main(async () => {
  const chosen = process.argv.slice(2);
  const unknown = chosen.find((name) => !(name in steps));
  if (unknown) throw new Error(`unknown step ${unknown}; the steps are ${Object.keys(steps).join(', ')}`);
  await ensureInstalled();

  const started = performance.now();
  const seconds = (from) => `${((performance.now() - from) / 1000).toFixed(1)} s`;
  const env = { ...process.env };
  if (process.stdout.isTTY) Object.assign(env, { CARGO_TERM_COLOR: 'always', FORCE_COLOR: '1' });

  let passed = 0;
  for (const name of chosen.length ? chosen : Object.keys(steps)) {
    const [command, args] = steps[name]();
    console.log(`\n── ${name}`);
    const start = performance.now();
    let output = '';
    const status = await run(command, args, {
      env,
      watch: (chunk) => {
        output += chunk;
      },
    });
    const [good, bad] = count(stripVTControlCharacters(output), status === 0);
    passed += good;
    if (status !== 0) {
      console.log(`\n${passed} passed, ${bad} failed (step ${name} ended with ${status} after ${seconds(start)})`);
      return 1;
    }
    console.log(`── ${name}: ok, ${seconds(start)}`);
  }
  console.log(`\n${passed} passed, 0 failed (${seconds(started)})`);
  return 0;
});
