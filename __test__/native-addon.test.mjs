// What a user reads when the native addon of the machine is not there, and that it loads when it is.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';

const checkout = fileURLToPath(new URL('..', import.meta.url));
const manifest = createRequire(import.meta.url)('@blade-ai/agent-sdk/package.json');

const musl = process.platform === 'linux' && !process.report.getReport().header.glibcVersionRuntime;
const abi = { linux: musl ? '-musl' : '-gnu', win32: '-msvc' }[process.platform] ?? '';
const addonPackage = `@blade-ai/agent-sdk-${process.platform}-${process.arch}${abi}`;

/** The loader as a user has it, in a folder of its own; `prepare` gets the folder of the machine's platform package. */
function installed(t, prepare = () => {}) {
  const folder = mkdtempSync(join(tmpdir(), 'native-addon-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const sdk = join(folder, 'node_modules', '@blade-ai', 'agent-sdk');
  for (const file of ['package.json', 'native.cjs', 'js/native.js']) {
    mkdirSync(dirname(join(sdk, file)), { recursive: true });
    cpSync(join(checkout, file), join(sdk, file));
  }
  prepare(join(folder, 'node_modules', addonPackage));
  return join(sdk, 'js', 'native.js');
}

/** Imports a module in a process of its own and returns what became of it. */
function load(file, before = '') {
  const program = `${before}
    const report = (value) => console.log(JSON.stringify(value));
    await import(${JSON.stringify(pathToFileURL(file).href)}).then(
      ({ native }) => report({ exports: Object.keys(native) }),
      ({ name, code, message, cause }) => report({ name, code, message, cause: cause instanceof Error }),
    );`;
  const env = { ...process.env };
  delete env.NAPI_RS_NATIVE_LIBRARY_PATH;
  const args = ['--input-type=module', '--eval', program];
  return JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8', env }));
}

test('the addon of this machine loads from the checkout', () => {
  const { exports = [], message } = load(join(checkout, 'js', 'native.js'));
  assert.ok(exports.length > 0, message);
});

test('the addon loads from an installed platform package', (t) => {
  const source = realpathSync(join(checkout, 'node_modules', addonPackage));
  const file = installed(t, (target) => cpSync(source, target, { recursive: true }));
  const { exports = [], message } = load(file);
  assert.ok(exports.length > 0, message);
});

test('a missing addon names its package, the command that brings it and the usual reason', (t) => {
  const error = load(installed(t));
  assert.equal(error.code, 'NATIVE_ADDON_MISSING');
  assert.equal(error.name, 'Error');
  assert.equal(error.cause, true);
  assert.match(error.message, new RegExp(`cannot find its native addon: ${addonPackage} is not installed`));
  assert.match(error.message, new RegExp(`npm i ${addonPackage}@${manifest.version}\\n`));
  assert.match(error.message, /--omit=optional/);
});

test('an addon that is there but does not load is reported as broken, with the reason of the system', (t) => {
  const file = installed(t, (target) => {
    const main = `agent-sdk.${addonPackage.slice('@blade-ai/agent-sdk-'.length)}.node`;
    mkdirSync(target, { recursive: true });
    writeFileSync(
      join(target, 'package.json'),
      JSON.stringify({ name: addonPackage, version: manifest.version, main }),
    );
    writeFileSync(join(target, main), 'not a library');
  });
  const error = load(file);
  assert.equal(error.code, 'NATIVE_ADDON_MISSING');
  assert.match(error.message, new RegExp(`the native addon in ${addonPackage} does not load: .*${addonPackage}`));
  assert.match(error.message, /Reinstall it with: npm i /);
});

test('a platform without an addon is told which platforms have one', (t) => {
  const pretend = "Object.defineProperty(process, 'platform', { value: 'sunos' });";
  const error = load(installed(t), pretend);
  assert.equal(error.code, 'NATIVE_ADDON_MISSING');
  assert.match(error.message, /no native addon for this platform .*sunos-/);
  assert.match(error.message, /supported: darwin-arm64, .*linux-x64-gnu/);
});
