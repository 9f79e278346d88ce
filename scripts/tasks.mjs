// What the scripts share: where things are, how to run a tool, and what is missing or out of date.

import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url));
export const readJson = (...path) => JSON.parse(readFileSync(join(root, ...path), 'utf8'));

/** The folders under npm/, one a platform: `[{ platform, dir, manifest }]`. */
export const platformPackages = () =>
  readdirSync(join(root, 'npm')).map((platform) => ({
    platform,
    dir: join(root, 'npm', platform),
    manifest: readJson('npm', platform, 'package.json'),
  }));

/** The platform package of the machine this runs on, or undefined where none exists. */
export function hostPackage() {
  const musl = process.platform === 'linux' && !process.report.getReport().header.glibcVersionRuntime;
  return platformPackages().find(
    ({ manifest: { os, cpu, libc } }) =>
      os.includes(process.platform) && cpu.includes(process.arch) && (!libc || libc.includes(musl ? 'musl' : 'glibc')),
  );
}

/** The JavaScript file behind a development tool's command: starting it with `node` needs no shell on any system. */
export function tool(name, command) {
  const { bin } = readJson('node_modules', name, 'package.json');
  return join(root, 'node_modules', name, typeof bin === 'string' ? bin : bin[command]);
}

/** npm is a .cmd file on Windows, which only a shell starts. Arguments are ours and need no quoting. */
const npmOptions = { cwd: root, shell: process.platform === 'win32' };

/** Runs npm and returns what it printed. */
export function npmOutput(args, options = {}) {
  const { status, stdout, error } = spawnSync('npm', args, {
    ...npmOptions,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    ...options,
  });
  if (error) throw error;
  if (status !== 0) throw new Error(`npm ${args.join(' ')} ended with status ${status}`);
  return stdout;
}

/** Runs a program, shows its output, hands each chunk to `watch` when given, and resolves to its exit status. */
export function run(command, args, { watch, ...options } = {}) {
  const child = spawn(command, args, {
    cwd: root,
    stdio: ['ignore', watch ? 'pipe' : 'inherit', 'inherit'],
    ...options,
  });
  child.stdout?.on('data', (chunk) => {
    process.stdout.write(chunk);
    watch(chunk);
  });
  return new Promise((resolve, reject) => {
    child.on('error', (error) => {
      reject(
        error.code === 'ENOENT' ? new Error(`${command} is not installed or not on PATH`, { cause: error }) : error,
      );
    });
    child.on('close', (status, signal) => resolve(status ?? `signal ${signal}`));
  });
}

/** Why node_modules does not hold what package-lock.json says, or undefined when it does. */
export function installationGap() {
  const record = join(root, 'node_modules', '.package-lock.json');
  if (!existsSync(record)) return 'nothing is installed';
  const installed = readJson('node_modules', '.package-lock.json').packages;
  for (const [path, wanted] of Object.entries(readJson('package-lock.json').packages)) {
    if (!path.startsWith('node_modules/') || wanted.optional || wanted.link) continue;
    if (installed[path]?.version !== wanted.version || !existsSync(join(root, path)))
      return `${path} is missing or old`;
  }
  // The link to this machine's platform package is an optional dependency, as the binaries of the tools are.
  const host = hostPackage();
  if (host && !existsSync(join(root, 'node_modules', host.manifest.name))) return 'optional dependencies are missing';
}

/** Installs the development dependencies when something is missing. */
export async function ensureInstalled() {
  const gap = installationGap();
  if (!gap) return;
  console.log(`installing development dependencies (${gap})`);
  // Both groups are named because NODE_ENV=production or an `omit` setting would leave them out.
  const args = ['ci', '--include=dev', '--include=optional', '--loglevel=error'];
  const status = await run('npm', args, npmOptions);
  if (status !== 0) throw new Error(`npm ci ended with ${status}`);
}

/** Newest change among files and folders, in milliseconds. */
function newest(paths) {
  return paths.reduce((latest, path) => {
    const info = statSync(path);
    const time = info.isDirectory() ? newest(readdirSync(path).map((name) => join(path, name))) : info.mtimeMs;
    return Math.max(latest, time);
  }, 0);
}

/** Why the addon of this machine must be built, or undefined when it is there and newer than its sources. */
export function addonGap() {
  const host = hostPackage();
  if (!host) throw new Error(`no platform package exists for ${process.platform} ${process.arch}`);
  const binary = join(host.dir, host.manifest.main);
  for (const path of [binary, join(root, 'native.cjs')]) if (!existsSync(path)) return `${basename(path)} is missing`;
  const sources = ['src', 'Cargo.toml', 'Cargo.lock', 'build.rs'].map((name) => join(root, name));
  if (newest(sources) > statSync(binary).mtimeMs) return 'sources have changed since it was built';
}

/** Builds the release addon when it is missing or out of date. */
export async function ensureAddon() {
  const gap = addonGap();
  if (!gap) return;
  console.log(`building the native addon (${gap}); the first build takes some minutes`);
  const status = await run(process.execPath, [join(root, 'scripts', 'build.mjs'), '--release']);
  if (status !== 0) throw new Error(`the build ended with ${status}`);
}

/** Runs a script's main function; an error becomes one line and exit status 1. */
export async function main(body) {
  try {
    process.exitCode = await body();
  } catch (error) {
    console.error(`error: ${error.message}`);
    process.exitCode = 1;
  }
}
