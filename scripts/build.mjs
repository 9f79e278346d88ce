// Builds the addon and moves it into its platform package under npm/, so that packing the root and that folder gives
// what users get. Arguments go to `napi build`: `--release`, `--target <triple>`, and so on.

import { copyFileSync, readdirSync, renameSync, rmSync, utimesSync } from 'node:fs';
import { basename, join } from 'node:path';
import { ensureInstalled, main, platformPackages, root, run, tool } from './tasks.mjs';

const binaries = () => readdirSync(root).filter((name) => name.endsWith('.node'));

await main(async () => {
  await ensureInstalled();
  for (const name of binaries()) rmSync(join(root, name));

  const started = new Date();
  const status = await run(process.execPath, [
    tool('@napi-rs/cli', 'napi'),
    ...['build', '--platform', '--js', 'native.cjs', '--dts', 'native.d.cts'],
    ...process.argv.slice(2),
  ]);
  if (status !== 0) return 1;

  const built = binaries();
  const owner = platformPackages().find(({ manifest }) => manifest.main === built[0]);
  if (built.length !== 1 || !owner)
    throw new Error(`the build left ${built.join(', ') || 'no binary'}; none fits npm/`);
  // A rename replaces the file in one step: a process that has the old addon loaded keeps it.
  const target = join(owner.dir, built[0]);
  renameSync(join(root, built[0]), target);
  // An edit made during the build counts as newer than the addon.
  utimesSync(target, started, started);
  copyFileSync(join(root, 'LICENSE'), join(owner.dir, 'LICENSE'));
  console.log(`npm/${owner.platform}/${basename(target)}`);
});
