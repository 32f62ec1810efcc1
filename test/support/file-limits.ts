/**
 * Imported by `npm test` before each test file, so that every file ends, and ends its processes. Node.js ends a test after
 * `--test-timeout`, but waits for ever for a file that a timer, a socket or a child process keeps alive.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { afterEach, beforeEach } from 'node:test';
import { isMainThread } from 'node:worker_threads';
import { reportCpuAtExit } from './file-cpu.ts';

/** How long a file may do nothing between two tests, hooks of suites included: longer than `--test-timeout`. */
const idleMs = 630_000;

if (isMainThread) {
  endWhenIdle();
  process.on('exit', (code) => {
    const left = killChildren();
    if (code !== 0 || left.length === 0) return;
    console.error(`tests have left these programs running: ${left.join('; ')}`);
    process.exitCode = 1;
  });
  reportCpuAtExit();
}

function endWhenIdle(): void {
  let last = 'the start';
  const watch = (): NodeJS.Timeout =>
    setTimeout(() => {
      const open = process.getActiveResourcesInfo().join(', ');
      console.error(`no test began or ended for ${idleMs / 1000} s after ${last}; what is open: ${open}`);
      process.exit(1);
    }, idleMs).unref();
  let watchdog = watch();
  beforeEach((context) => {
    last = `"${context.name}"`;
    clearTimeout(watchdog); // a test that runs has its own timeout
  });
  afterEach(() => {
    clearTimeout(watchdog);
    watchdog = watch();
  });
}

/** @returns their command lines. */
function killChildren(): string[] {
  const killed: string[] = [];
  for (const pid of children()) {
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
      // Those guard processes of others, and end by themselves; what has ended has no command line any more.
      if (command === '' || command.includes('die-with-parent')) continue;
      process.kill(Number(pid), 'SIGKILL');
      killed.push(command);
    } catch {
      // has ended
    }
  }
  return killed;
}

function children(): string[] {
  try {
    const tasks = readdirSync('/proc/self/task');
    return tasks.flatMap((task) => readFileSync(`/proc/self/task/${task}/children`, 'utf8').split(' ').filter(Boolean));
  } catch {
    return []; // not Linux
  }
}
