/**
 * `npm run bench:why`: how long `why` takes on a real control plane full of claims, and how many requests it sends.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { loadavg } from 'node:os';
import path from 'node:path';
import { scriptCommand, wholeNumber } from '../scripts/script-command.ts';
import { showing } from '../scripts/terminal-progress.ts';
import type { AuditEvent } from '../test/support/control-plane/audit-log.ts';
import { findPrograms } from '../test/support/control-plane/programs.ts';
import { startCrowdedCluster, type CrowdedCluster } from '../test/support/crowded-cluster.ts';
import { median } from './statistics.ts';
import { childrenCpuMs } from '../scripts/process-usage.ts';

const bundle = path.join(import.meta.dirname, '../dist/csi-provisioner.js');
const values = scriptCommand('npm run bench:why --', 'How long why takes on a real control plane full of claims.')
  .option('--claims <N>', 'bound claims, with as many volumes and attachments', wholeNumber(), 10_000)
  .option('--events <N>', 'events, and as many Pods, in the namespace of the claims to explain', wholeNumber(0), 5000)
  .option('--runs <N>', 'runs for each row, of which the medians are printed', wholeNumber(), 11)
  .option('--kubernetes <MINOR>', 'such as 1.32; default: the newest')
  .option('--program <CMD>', 'what to run; default: the bundle')
  .option('--beside <CMD>', 'another build, such as one before a change; the runs of both alternate')
  .parse()
  .opts<{ claims: number; events: number; runs: number; kubernetes?: string; program?: string; beside?: string }>();

async function main(): Promise<void> {
  const { claims, events, kubernetes: minor } = values;
  await findPrograms({ minor }); // compiles them the first time, with a progress line of its own
  await using crowd = await showing(
    () => `filling a cluster with ${claims} claims`,
    () => startCrowdedCluster({ claims, events, minor }),
  );
  console.log(`${claims} bound claims, ${events} events and Pods in the namespace, load ${loadText()}`);
  for (const what of ['bound', 'waiting', 'failing', 'leftover'] as const) await measure(what, crowd);
  console.log(`load ${loadText()} at the end`);
}

async function measure(what: 'bound' | 'waiting' | 'failing' | 'leftover', crowd: CrowdedCluster): Promise<void> {
  const { runs, program = `${process.execPath} ${bundle}`, beside } = values;
  const builds = [program, ...(beside === undefined ? [] : [beside])].map((command) => ({
    command,
    wallMs: [] as number[],
    cpuMs: 0,
    requests: [] as AuditEvent[],
  }));
  for (let index = 0; index < runs; index++) {
    for (const build of builds) {
      const earlier = (await crowd.requests()).length;
      const cpuBeforeMs = childrenCpuMs();
      build.wallMs.push(await run(build.command, crowd.kubeconfig, crowd[what]));
      build.cpuMs += childrenCpuMs() - cpuBeforeMs;
      build.requests.push(...(await crowd.requests()).slice(earlier));
    }
  }
  for (const { command, wallMs, cpuMs, requests } of builds) {
    const name = command === beside ? 'beside' : what;
    console.log(
      `${name.padEnd(10)}${median(wallMs).toFixed(0)} ms (${Math.min(...wallMs).toFixed(0)} to ${Math.max(...wallMs).toFixed(0)}), ${(cpuMs / runs).toFixed(0)} ms of CPU, ${requests.length / runs} requests, the slowest of the API server:`,
    );
    for (const [request, ms] of slowest(requests)) console.log(`${ms.toFixed(0).padStart(14)} ms  ${request}`);
  }
}

/** @returns wall-clock time in milliseconds. */
async function run(command: string, kubeconfig: string, object: string): Promise<number> {
  const [program = '', ...args] = command.split(' ');
  const startMs = performance.now();
  const child = spawn(program, [...args, 'why', object, `--kubeconfig=${kubeconfig}`], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const [code] = (await once(child, 'close')) as [number];
  if (code > 2) throw new Error(`why ${object} ended with ${code}`);
  return performance.now() - startMs;
}

/** Three requests with their median in milliseconds, as the audit log times them. */
function slowest(requests: readonly AuditEvent[]): [string, number][] {
  const times = Object.groupBy(requests, ({ requestURI }) => requestURI);
  const medians = Object.entries(times).map(([uri, events = []]): [string, number] => [
    uri,
    median(events.map((each) => microsMs(each.stageTimestamp) - microsMs(each.requestReceivedTimestamp))),
  ]);
  return medians.toSorted(([, a], [, b]) => b - a).slice(0, 3);
}

/** Milliseconds since the epoch of a time with microseconds. */
function microsMs(time: string): number {
  return Date.parse(time) + Number(time.slice(-4, -1)) / 1000;
}

function loadText(): string {
  return (loadavg()[0] ?? 0).toFixed(1);
}

await main();
