/**
 * The global setup of test runs; what it sets in the environment, the processes of the test files and those that they start
 * inherit.
 */
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

export function globalSetup(): void {
  // Halves the CPU that a start from sources takes. Where nothing can be written, Node.js goes on without;
  // NODE_DISABLE_COMPILE_CACHE=1 disables it, for instance to measure coverage.
  process.env['NODE_COMPILE_CACHE'] ??= path.join(import.meta.dirname, '../../.cache/node');
  keepTemporaryFilesTogether();
}

/**
 * One folder for the run, which goes at its end however that comes about. What tests that pass leave in it fails the run, and so do
 * programs that still run in its environment.
 */
function keepTemporaryFilesTogether(): void {
  const folder = mkdtempSync(path.join(tmpdir(), 'test-'));
  chmodSync(folder, 0o755); // some tests look from another user's account
  process.env['TMPDIR'] = folder;
  process.on('exit', (code) => {
    const remains = [...readdirSync(folder), ...endedPrograms(folder)];
    if (code === 0 && remains.length > 0) {
      console.error(`tests have left behind: ${remains.join(', ')}`);
      process.exitCode = 1;
    }
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  });
}

/** So long a program may take to end once nobody needs it any more, such as one whose parent was killed. */
const endingMs = 5000;

/** Ends the programs that still run with this folder for temporary files. @returns their command lines. */
function endedPrograms(folder: string): string[] {
  const end = Date.now() + endingMs;
  let running = programsIn(folder);
  while (running.length > 0 && Date.now() < end) {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
    running = programsIn(folder);
  }
  for (const { pid } of running) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // has ended
    }
  }
  return running.map(({ command }) => command);
}

function programsIn(folder: string): { pid: number; command: string }[] {
  if (!existsSync('/proc/self/environ')) return []; // not Linux
  const others = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid);
  return others.flatMap((pid) => {
    try {
      if (!readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').includes(`TMPDIR=${folder}`)) return [];
      return [{ pid: Number(pid), command: readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim() }];
    } catch {
      return []; // has ended, or is somebody else's
    }
  });
}
