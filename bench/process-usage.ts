import { readFileSync } from 'node:fs';

/** Clock ticks per second of `/proc/PID/stat`; 100 on every Linux that Node runs on. */
const ticksPerSecond = 100;

/** CPU time a process used so far, user and system together, in milliseconds. Linux only. */
export function cpuMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' '); // the name before may hold blanks
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / ticksPerSecond;
}

/** Resident memory of a process now, in MB (10^6 bytes). Linux only. */
export function residentMb(pid: number): number {
  return statusKb(pid, 'VmRSS') / 1000;
}

/** The most memory a process ever had resident, in MB. Linux only. */
export function peakMb(pid: number): number {
  return statusKb(pid, 'VmHWM') / 1000;
}

function statusKb(pid: number, field: string): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(status)?.[1]) * 1.024;
}
