import { readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { FileCpu } from '../../test/support/file-cpu.ts';

/**
 * Has the processes that the run starts report what each test file takes.
 *
 * @returns what has been reported as a table, the most expensive file first; to be called once, at the end.
 */
export function startCpuReport(): () => string {
  const report = path.join(tmpdir(), 'cpu-of-files');
  process.env['TEST_CPU_REPORT'] = report;
  return () => {
    const rows = readFileSync(report, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as FileCpu);
    rmSync(report);
    return cpuTable(rows);
  };
}

function cpuTable(rows: readonly FileCpu[]): string {
  const cpu = ({ ownMs, childrenMs }: FileCpu): number => ownMs + childrenMs;
  const lines = rows
    .toSorted((a, b) => cpu(b) - cpu(a))
    .map((row) => [cpu(row), row.childrenMs, row.loadMs, row.wallMs].map(seconds).join(' ') + `  ${row.file}`);
  const total = rows.reduce((sum, row) => sum + cpu(row), 0);
  return [
    'seconds of CPU, of that in child processes and to load the sources, and of wall-clock time:',
    ...lines,
    `${seconds(total)} in all`,
  ].join('\n');
}

function seconds(ms: number): string {
  return (ms / 1000).toFixed(1).padStart(7);
}
