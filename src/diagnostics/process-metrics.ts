import { readdirSync, readFileSync } from 'node:fs';
import { getHeapStatistics } from 'node:v8';
import { counter, gauge, type MetricRegistry } from '../base/metrics.ts';

const clockTicksPerSecond = 100; // USER_HZ, the unit of /proc on every Linux architecture that Node runs on

/**
 * Adds the metrics that every Prometheus client exports of its process: `process_*` as far as `/proc` has it, and `nodejs_*`
 * for memory and the event loop. All are read at each scrape.
 *
 * @param root - where `/proc/self` is.
 */
export function addProcessMetrics(registry: MetricRegistry, root = '/proc/self'): void {
  addCounters(registry, root);
  addGauges(registry, root);
  addNodeMetrics(registry);
}

function addCounters(registry: MetricRegistry, root: string): void {
  const families: [string, string, () => number | undefined][] = [
    ['process_cpu_seconds_total', 'Total user and system CPU time spent in seconds.', cpuSeconds],
    [
      'process_network_receive_bytes_total',
      'Number of bytes received by the process over the network.',
      () => networkBytes(root, 'InOctets'),
    ],
    [
      'process_network_transmit_bytes_total',
      'Number of bytes sent by the process over the network.',
      () => networkBytes(root, 'OutOctets'),
    ],
  ];
  for (const [name, help, read] of families) {
    if (read() === undefined) continue;
    counter({
      registry,
      name,
      help,
      collect: (family) => {
        family.reset();
        family.inc(read() ?? 0);
      },
    });
  }
}

function addGauges(registry: MetricRegistry, root: string): void {
  const startTime = startTimeSeconds(root);
  const families: [string, string, () => number | undefined][] = [
    ['process_start_time_seconds', 'Start time of the process since unix epoch in seconds.', () => startTime],
    ['process_resident_memory_bytes', 'Resident memory size in bytes.', () => process.memoryUsage.rss()],
    ['process_virtual_memory_bytes', 'Virtual memory size in bytes.', () => Number(statFields(root)?.[20])],
    [
      'process_virtual_memory_max_bytes',
      'Maximum amount of virtual memory available in bytes.',
      () => limit(root, 'Max address space'),
    ],
    ['process_open_fds', 'Number of open file descriptors.', () => openFiles(root)],
    ['process_max_fds', 'Maximum number of open file descriptors.', () => limit(root, 'Max open files')],
  ];
  for (const [name, help, read] of families) {
    const known = read();
    if (known === undefined || Number.isNaN(known)) continue;
    gauge({ registry, name, help, collect: (family) => family.set(read() ?? 0) });
  }
}

function addNodeMetrics(registry: MetricRegistry): void {
  gauge({
    registry,
    name: 'nodejs_version_info',
    help: 'Version of Node.js.',
    labels: ['version'],
  }).set({ version: process.version }, 1);
  const memory: [string, string, keyof NodeJS.MemoryUsage][] = [
    ['nodejs_heap_size_total_bytes', 'Memory reserved for JavaScript objects.', 'heapTotal'],
    ['nodejs_heap_size_used_bytes', 'Memory used by JavaScript objects.', 'heapUsed'],
    ['nodejs_external_memory_bytes', 'Memory outside the JavaScript heap that its objects hold.', 'external'],
  ];
  for (const [name, help, part] of memory) {
    gauge({ registry, name, help, collect: (family) => family.set(process.memoryUsage()[part]) });
  }
  gauge({
    registry,
    name: 'nodejs_heap_size_limit_bytes',
    help: 'Memory that JavaScript objects may use at most.',
    collect: (family) => family.set(getHeapStatistics().heap_size_limit),
  });
  addEventLoopMetrics(registry);
}

/** Utilization of the event loop; its measurement needs no timer. */
function addEventLoopMetrics(registry: MetricRegistry): void {
  for (const part of ['active', 'idle'] as const) {
    counter({
      registry,
      name: `nodejs_eventloop_${part}_seconds_total`,
      help: `Total time the event loop was ${part}.`,
      collect: (family) => {
        family.reset();
        family.inc(performance.eventLoopUtilization()[part] / 1000);
      },
    });
  }
}

function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

/** A file of `/proc`, or undefined where there is none. */
function read(root: string, name: string): string | undefined {
  try {
    return readFileSync(`${root}/${name}`, 'utf8');
  } catch {
    return undefined;
  }
}

/** Fields of `stat` from the third on (proc(5)); the second, the name, may hold blanks. */
function statFields(root: string): string[] | undefined {
  return read(root, 'stat')
    ?.replace(/^.*\) /s, '')
    .split(' ');
}

function startTimeSeconds(root: string): number | undefined {
  const ticks = statFields(root)?.[19];
  const boot = /^btime (\d+)$/m.exec(read(`${root}/..`, 'stat') ?? '')?.[1];
  return ticks === undefined || boot === undefined ? undefined : Number(boot) + Number(ticks) / clockTicksPerSecond;
}

/** The soft limit; no limit is 2^64, as Prometheus clients report it. */
function limit(root: string, name: string): number | undefined {
  const soft = new RegExp(`^${name} +(\\S+)`, 'm').exec(read(root, 'limits') ?? '')?.[1];
  return soft === 'unlimited' ? 2 ** 64 : soft === undefined ? undefined : Number(soft);
}

function openFiles(root: string): number | undefined {
  try {
    return readdirSync(`${root}/fd`).length - 1; // one of them is the folder, open for this listing
  } catch {
    return undefined;
  }
}

function networkBytes(root: string, column: string): number | undefined {
  const lines = (read(root, 'net/netstat') ?? '').split('\n').filter((line) => line.startsWith('IpExt:'));
  const [names, values] = lines.map((line) => line.split(' '));
  const position = names?.indexOf(column) ?? -1;
  const value = position < 0 ? undefined : values?.[position];
  return value === undefined ? undefined : Number(value);
}

/**
 * Adds a gauge that is always 1 and identifies the program by its labels, as Prometheus clients do.
 *
 * @param version - of the program, such as `v0.1.0`.
 */
export function addBuildInfo(registry: MetricRegistry, version: string): void {
  gauge({
    registry,
    name: 'csi_provisioner_build_info',
    help: 'Version of the sidecar, and what it runs on.',
    labels: ['version', 'node_version', 'platform'],
  }).set({ version, node_version: process.version, platform: `${process.platform}/${process.arch}` }, 1);
}
