import { readFileSync } from 'node:fs';

/** Clock ticks per second of `/proc/PID/stat`; 100 on every Linux that Node runs on. */
const ticksPerSecond = 100;

/** CPU time a process used so far, user and system together, in milliseconds. Linux only. */
export function cpuMs(pid: number): number {
  return statTicksMs(pid, 14);
}

/** CPU time of the processes that this one started and that have ended, user and system, in milliseconds. Linux only. */
export function childrenCpuMs(): number {
  return statTicksMs(process.pid, 16);
}

/** CPU time that all processes of the machine have used since it started, in milliseconds. Linux only (proc(5), `/proc/stat`). */
export function machineCpuMs(): number {
  const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n');
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] = line.split(/\s+/).slice(1).map(Number);
  return ((user + nice + system + irq + softirq) * 1000) / ticksPerSecond;
}

/** The sum of two neighbouring fields of `/proc/PID/stat` (proc(5)), the first of which is given. */
function statTicksMs(pid: number, field: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' '); // the name before may hold blanks
  return ((Number(fields[field - 3]) + Number(fields[field - 2])) * 1000) / ticksPerSecond;
}

/** The memory of a process now, in MB (10^6 bytes). */
export interface MemoryUsage {
  /** Resident, what it shares with other processes and files included: what limits are compared with. */
  residentMb: number;
  /** Of that what is its own and in no file: heap, stacks, compiled code. */
  anonymousMb: number;
  /** Proportional set size: resident, each shared page divided among those that share it. */
  proportionalMb: number;
}

/** Linux only (proc(5), `status` and `smaps_rollup`). */
export function memoryUsage(pid: number): MemoryUsage {
  return {
    residentMb: residentMb(pid),
    anonymousMb: procMb(`/proc/${pid}/status`, 'RssAnon'),
    proportionalMb: procMb(`/proc/${pid}/smaps_rollup`, 'Pss'),
  };
}

/** As `87 MB resident, 41 MB anonymous, 52 MB proportional`. */
export function memoryText({ residentMb, anonymousMb, proportionalMb }: MemoryUsage): string {
  return `${residentMb.toFixed(0)} MB resident, ${anonymousMb.toFixed(0)} MB anonymous, ${proportionalMb.toFixed(0)} MB proportional`;
}

/** Resident memory of a process now, in MB (10^6 bytes). Linux only. */
export function residentMb(pid: number): number {
  return procMb(`/proc/${pid}/status`, 'VmRSS');
}

/** The most memory a process ever had resident, in MB. Linux only. */
export function peakMb(pid: number): number {
  return procMb(`/proc/${pid}/status`, 'VmHWM');
}

function procMb(file: string, field: string): number {
  return (Number(new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(readFileSync(file, 'utf8'))?.[1]) * 1.024) / 1000;
}
