// Runs a script of this repository with the package installed and built: node scripts/with-addon.mjs <script> [args]

import { ensureAddon, ensureInstalled, main, run } from './tasks.mjs';

await main(async () => {
  const [script, ...args] = process.argv.slice(2);
  if (!script) throw new Error('usage: node scripts/with-addon.mjs <script> [args]');
  await ensureInstalled();
  await ensureAddon();
  return run(process.execPath, [script, ...args]);
});
