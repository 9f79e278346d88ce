// Orderly shutdown of a process.

import { ConfigError } from './errors.js';
import { liveOwners } from './mailbox.js';

const registered = new Set();
let running = false;

export function registerCleanup(cleanup) {
  if (typeof cleanup !== 'function') throw new ConfigError('registerCleanup needs a function');
  const entry = { cleanup };
  registered.add(entry);
  return { unregister: () => void registered.delete(entry) };
}

export async function gracefulShutdown({ timeoutMs = 5_000, onError = () => {} } = {}) {
  if (running) return;
  running = true;
  const report = (error) => {
    try {
      onError(error);
    } catch {
      // Nobody is left to tell.
    }
  };
  try {
    const cleanups = [...registered].map(({ cleanup }) => cleanup);
    for (const owner of liveOwners()) if (typeof owner.close === 'function') cleanups.push(() => owner.close());
    const all = Promise.all(cleanups.map((cleanup) => Promise.resolve().then(cleanup).catch(report)));
    if (timeoutMs <= 0) {
      await all;
      return;
    }
    let timer;
    const late = new Promise((resolve) => {
      timer = setTimeout(() => {
        report(new Error(`cleanups did not finish within ${timeoutMs} ms`));
        resolve();
      }, timeoutMs);
    });
    await Promise.race([all, late]);
    clearTimeout(timer);
  } finally {
    registered.clear();
    running = false;
  }
}

export function resetCleanupRegistry() {
  registered.clear();
}
