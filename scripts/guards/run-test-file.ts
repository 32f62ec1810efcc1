import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import type { WorkingCopy } from './working-copy.ts';

export interface TestRun {
  outcome: 'passed' | 'failed' | 'timeout';
  ms: number;
  /** The end of what it wrote. */
  output: string;
}

export interface TestRunOptions {
  limitMs: number;
  /** Folder for V8's coverage, of the processes that it starts, too. */
  coverage?: string;
  signal: AbortSignal;
}

const keptOutput = 20_000;

/** Runs one test file of the copy in a process group of its own, of which nothing is left afterwards. */
export async function runTestFile(copy: WorkingCopy, test: string, options: TestRunOptions): Promise<TestRun> {
  const { limitMs, coverage, signal } = options;
  signal.throwIfAborted();
  await mkdir(copy.temporary, { recursive: true, mode: 0o755 }); // some tests look from another user's account
  const beganAt = performance.now();
  const child = spawn(process.execPath, ['--import=./test/support/file-limits.ts', test], {
    cwd: copy.folder,
    env: environment(copy, coverage),
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  let output = '';
  const keep = (text: string): void => {
    output = (output + text).slice(-keptOutput);
  };
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', keep);
  const late = AbortSignal.timeout(limitMs);
  const ended = AbortSignal.any([signal, late]);
  const end = (): void => killGroup(child.pid);
  ended.addEventListener('abort', end, { once: true });
  let outcome: TestRun['outcome'];
  try {
    await once(child, 'exit');
    outcome = late.aborted ? 'timeout' : child.exitCode === 0 ? 'passed' : 'failed';
  } finally {
    ended.removeEventListener('abort', end);
    end();
    child.stdout.destroy();
    child.stderr.destroy();
    await removeMounts(copy.temporary);
    await rm(copy.temporary, { recursive: true, force: true, maxRetries: 5 });
  }
  signal.throwIfAborted();
  const ms = Math.round(performance.now() - beganAt);
  return { outcome, ms, output };
}

function environment(copy: WorkingCopy, coverage: string | undefined): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(([name]) => !/^(NODE_|TEST_)/.test(name));
  const common = { ...Object.fromEntries(inherited), TMPDIR: copy.temporary, TEST_PROGRAMS: copy.programs };
  // code from the cache has no precise coverage
  if (coverage !== undefined) return { ...common, NODE_V8_COVERAGE: coverage, NODE_DISABLE_COMPILE_CACHE: '1' };
  return { ...common, NODE_COMPILE_CACHE: path.join(copy.folder, '.cache/node') };
}

/** A test that was killed may have left a frozen file system, in which whatever removes its files would hang. */
async function removeMounts(folder: string): Promise<void> {
  const mounts = await readFile('/proc/self/mounts', 'utf8').catch(() => ''); // only on Linux
  for (const line of mounts.split('\n')) {
    const mount = line.split(' ')[1] ?? '';
    if (!mount.startsWith(`${folder}/`)) continue;
    for (const [program, flag] of [
      ['fsfreeze', '--unfreeze'],
      ['umount', '--lazy'],
    ] as const) {
      const left = spawn(program, [flag, mount], { stdio: 'ignore' });
      await once(left, 'exit').catch(() => undefined); // such as without that program
    }
  }
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // all of it has ended
  }
}
