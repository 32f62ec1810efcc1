/**
 * Runs inside the program that is measured, loaded by `node --import`: how long its event loop is held, and a resync
 * that comes early, so that a bench need not wait a quarter of an hour for it.
 *
 * SIGUSR2 writes a line to standard error, `event loop {"heldMs":…,"cpuMs":…}`: the maximum since the start or the last
 * such signal. What loading the program itself takes does not count.
 */

const everyMs = 5;
const resyncMs = 900_000;
const earlyResyncMs = 25_000;

interface Moment {
  ms: number;
  cpuMs: number;
}

let last: Moment | undefined;
let held = { heldMs: 0, cpuMs: 0 };

function now(): Moment {
  const { user, system } = process.threadCpuUsage();
  return { ms: performance.now(), cpuMs: (user + system) / 1000 };
}

function sample(): void {
  const present = now();
  if (last !== undefined) {
    held.heldMs = Math.max(held.heldMs, present.ms - last.ms - everyMs);
    held.cpuMs = Math.max(held.cpuMs, present.cpuMs - last.cpuMs);
  }
  last = present;
}

setInterval(sample, everyMs).unref();
process.on('SIGUSR2', () => {
  process.stderr.write(`event loop ${JSON.stringify(held)}\n`);
  held = { heldMs: 0, cpuMs: 0 };
});

const setTimer = globalThis.setTimeout;
globalThis.setTimeout = Object.assign(
  (run: () => void, ms?: number, ...rest: []) => setTimer(run, ms === resyncMs ? earlyResyncMs : ms, ...rest),
  setTimer,
);

export {};
