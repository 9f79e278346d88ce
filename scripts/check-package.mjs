// What would be published: exactly the listed files, one version everywhere, nothing of this machine.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { hostPackage, main, npmOutput, platformPackages, readJson, root } from './tasks.mjs';

const ROOT_FILES = [
  'CHANGELOG.md',
  'LICENSE',
  'README.md',
  'advanced.d.ts',
  'advanced.js',
  'examples/quickstart.mjs',
  'index.d.ts',
  'index.js',
  'native.cjs',
  'native.d.cts',
  'package.json',
  'testing.d.ts',
  'testing.js',
];
/** Facade modules: any kebab-case file, because entries import them and a missing one fails the tests. */
const FACADE = /^js\/(?:[a-z0-9]+(?:-[a-z0-9]+)*\/)*[a-z0-9]+(?:-[a-z0-9]+)*\.js$/;
/** Unpacked. The root holds text only; an addon of this size is stripped and optimised. */
const ROOT_LIMIT = 1_000_000;
const ADDON_LIMIT = 40_000_000;

const problems = [];
const check = (holds, problem) => {
  if (!holds) problems.push(problem);
};

function checkTarball(dir, label, { required, allowed, limit }) {
  const [packed] = Object.values(
    JSON.parse(npmOutput(['pack', '--dry-run', '--json', '--ignore-scripts'], { cwd: dir })),
  );
  const files = packed.files.map(({ path }) => path);
  for (const path of required) check(files.includes(path), `${label}: ${path} is missing from the tarball`);
  for (const path of files) {
    check(required.includes(path) || allowed?.test(path), `${label}: ${path} does not belong in the tarball`);
  }
  check(packed.unpackedSize <= limit, `${label}: ${packed.unpackedSize} bytes unpacked, at most ${limit} are allowed`);
  console.log(`${label}: ${files.length} files, ${packed.size} bytes packed, ${packed.unpackedSize} unpacked`);
}

await main(() => {
  const manifest = readJson('package.json');
  const { version } = manifest;
  checkTarball(root, manifest.name, { required: ROOT_FILES, allowed: FACADE, limit: ROOT_LIMIT });
  check(!manifest.dependencies, 'package.json: runtime dependencies are not allowed');
  for (const name of ['preinstall', 'install', 'postinstall', 'prepare']) {
    check(!manifest.scripts[name], `package.json: the install script ${name} is not allowed`);
  }
  for (const target of Object.values(manifest.exports).flatMap((entry) =>
    entry.types ? Object.values(entry) : entry,
  )) {
    check(existsSync(join(root, target)), `package.json: exports name ${target}, which does not exist`);
  }

  const cargo = /^version = "(.+)"$/m.exec(readFileSync(join(root, 'Cargo.toml'), 'utf8'))?.[1];
  check(cargo === version, `Cargo.toml has version ${cargo}, package.json ${version}`);
  const lock = readJson('package-lock.json');
  check(lock.version === version, `package-lock.json has version ${lock.version}, package.json ${version}`);
  for (const [path, { resolved = '' }] of Object.entries(lock.packages)) {
    check(!/^[a-z+]+:/.test(resolved), `package-lock.json: ${path} names a host (${resolved})`);
  }

  const platforms = platformPackages();
  const names = platforms.map((one) => one.manifest.name).sort();
  const optional = Object.keys(manifest.optionalDependencies).sort();
  check(names.join() === optional.join(), 'optionalDependencies and the folders under npm/ differ');
  check(manifest.napi.targets.length === names.length, 'napi.targets and the folders under npm/ differ');
  for (const { platform, manifest: own } of platforms) {
    const label = `npm/${platform}`;
    const pinned = manifest.optionalDependencies[own.name];
    check(own.version === version && pinned === version, `${label}: version ${own.version}, wanted as ${pinned}`);
    check(own.main === `${manifest.napi.binaryName}.${platform}.node`, `${label}: main is ${own.main}`);
    // These links make an unpublished version installable from a clean clone.
    const link = lock.packages[`node_modules/${own.name}`];
    check(link?.link && link.resolved === label, `package-lock.json: ${own.name} must be a link to ${label}`);
  }

  const host = hostPackage();
  const required = ['LICENSE', 'README.md', 'package.json', host.manifest.main];
  checkTarball(host.dir, host.manifest.name, { required, limit: ADDON_LIMIT });

  for (const problem of problems) console.error(`error: ${problem}`);
  return problems.length ? 1 : 0;
});
