// Statistics, and meters of this process.

import { setTimeout as sleep } from 'node:timers/promises';

/** The value below which the share `q` of the values lies. */
export function quantile(values, q) {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (sorted.length - 1) * q;
  const low = Math.floor(at);
  return sorted[low] + (sorted[Math.ceil(at)] - sorted[low]) * (at - low);
}

export const median = (values) => quantile(values, 0.5);

/** Wall and CPU time of this process (all its threads) in microseconds while `work` runs `times` times, per time. */
export async function timed(times, work) {
  const cpu = process.cpuUsage();
  const start = performance.now();
  for (let i = 0; i < times; i++) await work(i);
  const wall = (performance.now() - start) * 1000;
  const { user, system } = process.cpuUsage(cpu);
  return { wall: wall / times, cpu: (user + system) / times };
}

/** Resident and heap memory in bytes once garbage is gone. */
export async function settledMemory() {
  for (let i = 0; i < 3; i++) {
    globalThis.gc();
    await sleep(20);
  }
  const { rss, heapUsed } = process.memoryUsage();
  return { rss, heap: heapUsed };
}

/** Throws when a workload did not do what it is measured for: a fast wrong answer is no result. */
export function expect(what, found, wanted) {
  if (found !== wanted) throw new Error(`${what}: ${found} instead of ${wanted}`);
}
