/** What `npm test -- --cpu` asks of the processes of the test files: how much CPU each file takes. */
import { appendFileSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { after, before } from 'node:test';

const root = path.join(import.meta.dirname, '../..');
const report = process.env['TEST_CPU_REPORT'];
/** Of `/proc/PID/stat`, as on any Linux. */
const ticksPerSecond = 100;

/** One line of the report. */
export interface FileCpu {
  /** Relative to the root. */
  file: string;
  ownMs: number;
  /** Of processes that it started, and that ended. */
  childrenMs: number;
  /** To load what it imports, a part of `ownMs`. */
  loadMs: number;
  wallMs: number;
}

/** Calls `load`, which makes the suite of a file, and reports what the suite takes. */
export function withCpuReported(file: string, load: () => void): void {
  if (report === undefined) {
    load();
    return;
  }
  let start = taken();
  before(() => {
    start = taken();
  });
  const beforeLoad = taken();
  load();
  const loadMs = taken().ownMs - beforeLoad.ownMs;
  after(() => {
    write(report, file, start, loadMs);
  });
}

/** For a file that has this process to itself. */
export function reportCpuAtExit(): void {
  const file = process.argv[1];
  if (report === undefined || file?.endsWith('.test.ts') !== true) return;
  process.on('exit', () => {
    write(report, path.relative(root, file), { ownMs: 0, childrenMs: 0, at: performance.timeOrigin - Date.now() }, 0);
  });
}

function write(to: string, file: string, start: ReturnType<typeof taken>, loadMs: number): void {
  const end = taken();
  const row: FileCpu = {
    file,
    ownMs: end.ownMs - start.ownMs + loadMs,
    childrenMs: end.childrenMs - start.childrenMs,
    loadMs,
    wallMs: end.at - start.at,
  };
  appendFileSync(to, `${JSON.stringify(row)}\n`);
}

function taken() {
  const { user, system } = process.cpuUsage();
  // behind the name of the program in parentheses: `cutime` and `cstime` are the 16th and 17th field of all
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ').at(-1)?.split(' ') ?? [];
  const ticks = Number(fields[13]) + Number(fields[14]);
  return { ownMs: (user + system) / 1000, childrenMs: (ticks * 1000) / ticksPerSecond, at: performance.now() };
}
