/**
 * `npm run bench:journal`: what the intent journal costs. Two sidecars, with `--intent-journal=lease` and `=off`, run side
 * by side with a driver each; they are loaded in turns, so that whatever else the machine does hits both. Then a cluster
 * for each, whose driver cannot tell whether it has made a volume: all records stay open. `--compare traces` does the same with
 * traces off and on.
 */
import { once } from 'node:events';
import { mkdtemp } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { cpus, tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Option } from 'commander';
import { scriptCommand, wholeNumber } from '../scripts/script-command.ts';
import { showing } from '../scripts/terminal-progress.ts';
import { freePorts } from '../test/support/control-plane/free-ports.ts';
import { type DriverProcess, startDriver } from '../test/support/driver-process.ts';
import { type StartedProcess, startProcess } from '../test/support/started-process.ts';
import { type BenchCluster, bundled, inParallel, removeFolder, startBenchCluster, until } from './bench-cluster.ts';
import { createClaim, createClass, deleteClaim } from './claims.ts';
import { median } from './median.ts';
import { cpuMs, peakMb, residentMb } from './process-usage.ts';

const values = scriptCommand('npm run bench:journal --', 'What the intent journal costs, in turns with and without it.')
  .option('--claims <N>', 'claims in one turn', wholeNumber(), 500)
  .option('--rounds <N>', 'turns of each that count; one more comes first and does not', wholeNumber(), 4)
  .option('--quiet <N>', 'single claims for each, with a pause before each', wholeNumber(0), 20)
  .option('--open <N>', 'records that are open at once; 0 leaves that out', wholeNumber(0), 10_000)
  .addOption(new Option('--target <T>', 'cluster').choices(['kubernetes', 'sandbox']).default('kubernetes'))
  .addOption(
    new Option('--compare <WHAT>', 'what is off and on; of traces --open leaves nothing to see')
      .choices(['journal', 'traces'])
      .default('journal'),
  )
  .option('--profile <DIR>', 'keeps a CPU profile of each sidecar there')
  .parse()
  .opts<{
    claims: number;
    rounds: number;
    quiet: number;
    open: number;
    target: 'kubernetes' | 'sandbox';
    compare: 'journal' | 'traces';
    profile?: string;
  }>();
const { claims: claimCount, rounds, quiet: quietCount, open: openCount, target, compare } = values;
const modes = ['off', 'on'] as const;
type Mode = (typeof modes)[number];
/** Claims that are created, or deleted, at once. */
const width = 20;
/** Before a claim that is to find everything idle, also the journal's own quiet writes, in milliseconds. */
const quietMs = 1500;
/** Late events and what the journal writes once it is quiet, in milliseconds. */
const lateMs = 3000;

/** A sidecar and what it works with. */
interface Subject extends AsyncDisposable {
  mode: Mode;
  driver: DriverProcess;
  sidecar: StartedProcess;
  /** Sum of a metric's samples; 0 for one that is not there. */
  metric: (name: string) => Promise<number>;
}

interface Turn {
  claimsPerSecond: number;
  /** In milliseconds. */
  cpuPerClaim: number;
  journalWritesPerClaim: number;
  journalBytesPerClaim: number;
  requestsPerClaim: number | undefined;
}

async function main(): Promise<void> {
  await compareUnderLoad();
  if (openCount > 0) for (const mode of modes) await measureOpen(mode);
}

async function compareUnderLoad(): Promise<void> {
  await using cluster = await startBenchCluster(target);
  await using off = await startSubject(cluster, 'off');
  await using on = await startSubject(cluster, 'on');
  const machine = `${cpus().length} CPUs, Node ${process.version}`;
  console.log(`${rounds} times ${claimCount} claims for each on ${cluster.name}, hostpath driver, ${machine}\n`);
  const turns: Record<Mode, Turn[]> = { off: [], on: [] };
  for (let round = 0; round <= rounds; round++) {
    const order = round % 2 === 0 ? [off, on] : [on, off];
    for (const subject of order) {
      const name = `turn ${round + 1} of ${rounds + 1}, ${subject.mode}`;
      const turn = await showing(
        () => `${name}: ${cluster.volumeNames.size} volumes now`,
        () => load(cluster, subject),
      );
      if (round > 0) turns[subject.mode].push(turn);
      console.log(`  ${subject.mode.padEnd(6)}${turnText(turn)}${round === 0 ? ' (does not count)' : ''}`);
    }
  }
  const quiet: Record<Mode, number[]> = { off: [], on: [] };
  const writes = 'intent_journal_write_duration_seconds';
  const before = [await on.metric(`${writes}_sum`), await on.metric(`${writes}_count`)] as const;
  await showing(
    () => `${quiet.off.length + quiet.on.length} of ${2 * quietCount} quiet claims`,
    async () => {
      for (let n = 0; n < quietCount; n++) {
        for (const subject of n % 2 === 0 ? [off, on] : [on, off]) {
          quiet[subject.mode].push(await quietClaim(cluster, subject, n));
        }
      }
    },
  );
  console.log('\nmedians            off      on       difference of pairs');
  printRow('claims per second', turns, ({ claimsPerSecond }) => claimsPerSecond, 1);
  printRow('CPU per claim, ms', turns, ({ cpuPerClaim }) => cpuPerClaim, 2);
  printRow('journal writes', turns, ({ journalWritesPerClaim }) => journalWritesPerClaim, 3);
  printRow('requests per claim', turns, ({ requestsPerClaim }) => requestsPerClaim, 2);
  printRow('quiet claim, ms', quiet, (ms) => ms, 1);
  const seconds = (await on.metric(`${writes}_sum`)) - before[0];
  const count = (await on.metric(`${writes}_count`)) - before[1];
  console.log(`a write of the journal took ${((seconds * 1000) / count).toFixed(1)} ms meanwhile, on average`);
}

async function startSubject(cluster: BenchCluster, mode: Mode, flags: readonly string[] = []): Promise<Subject> {
  await using cleanup = new AsyncDisposableStack();
  const folder = await mkdtemp(path.join(tmpdir(), 'bench-'));
  cleanup.defer(() => removeFolder(folder));
  const driverName = `${mode}.bench.example.com`;
  const driver = await startDriver({ driverName, folder });
  cleanup.defer(() => driver.stop());
  await createClass(cluster, mode, driverName);
  const [port = 0] = await freePorts(1);
  const [command = '', ...words] = bundled.split(' ');
  const profile =
    values.profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${path.join(values.profile, mode)}`];
  const connection = [`--csi-address=${driver.address}`, `--kubeconfig=${cluster.sidecarKubeconfig}`];
  const sidecar = await startProcess({
    program: command,
    args: [
      ...profile,
      ...words,
      ...connection,
      `--intent-journal=${compare === 'journal' && mode === 'off' ? 'off' : 'lease'}`,
      `--http-endpoint=127.0.0.1:${port}`,
      ...flags,
    ],
    env: {
      KUBECONFIG: undefined,
      OTEL_EXPORTER_OTLP_ENDPOINT: compare === 'traces' && mode === 'on' ? await receiver(cleanup) : undefined,
    },
  });
  cleanup.defer(() => sidecar.stop());
  await waitFor(sidecar, 'the first volume', async () => {
    await createClaim(cluster, `${mode}-first`, mode);
    await until('it', () => cluster.boundClaims.has(`default/${mode}-first`), 60_000);
  });
  const metric = async (name: string): Promise<number> => {
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    const samples = text.matchAll(new RegExp(`^${name}(?:\\{.*\\})? (\\S+)$`, 'gm'));
    return [...samples].reduce((sum, [, value]) => sum + Number(value), 0);
  };
  const owned = cleanup.move();
  return { mode, driver, sidecar, metric, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** Starts a receiver of traces, which keeps none. @returns its URL. */
async function receiver(cleanup: AsyncDisposableStack): Promise<string> {
  const server = createServer((request, response) => request.resume().on('end', () => response.end()));
  cleanup.defer(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** One turn: claims are made, measured, and deleted, which is not. */
async function load(cluster: BenchCluster, { mode, sidecar, metric }: Subject): Promise<Turn> {
  const { boundClaims, volumeNames } = cluster;
  const [boundBefore, volumesBefore] = [boundClaims.size, volumeNames.size];
  const journal = async (): Promise<[number, number]> => [
    await metric('intent_journal_write_duration_seconds_count'),
    await metric('intent_journal_written_bytes_total'),
  ];
  const [writesBefore, bytesBefore] = await journal();
  const [fromMs, cpuBefore, startedMs] = [Date.now(), cpuMs(sidecar.pid), performance.now()];
  let seconds = 0;
  await waitFor(sidecar, 'all claims bound', async () => {
    await inParallel(claimCount, width, (index) => createClaim(cluster, `${mode}-${index}`, mode));
    await until('it', () => boundClaims.size === boundBefore + claimCount);
    seconds = (performance.now() - startedMs) / 1000;
  });
  await delay(lateMs);
  const used = cpuMs(sidecar.pid) - cpuBefore;
  const requests = await cluster.requests(fromMs, Date.now());
  const [writes, bytes] = await journal();
  await inParallel(claimCount, width, (index) => deleteClaim(cluster, `${mode}-${index}`));
  await until('all volumes gone', () => volumeNames.size === volumesBefore && boundClaims.size === boundBefore);
  await delay(lateMs);
  return {
    claimsPerSecond: claimCount / seconds,
    cpuPerClaim: used / claimCount,
    journalWritesPerClaim: (writes - writesBefore) / claimCount,
    journalBytesPerClaim: (bytes - bytesBefore) / claimCount,
    requestsPerClaim: requests && [...requests.values()].reduce((sum, count) => sum + count, 0) / claimCount,
  };
}

/** @returns milliseconds from the claim to its volume. */
async function quietClaim(cluster: BenchCluster, { mode }: Subject, n: number): Promise<number> {
  await delay(quietMs);
  const startedMs = performance.now();
  const volume = await createClaim(cluster, `${mode}-quiet-${n}`, mode);
  while (!cluster.volumeNames.has(volume)) await delay(1);
  return performance.now() - startedMs;
}

/** Memory while the outcome of every call is unclear. */
async function measureOpen(mode: Mode): Promise<void> {
  await using cluster = await startBenchCluster(target);
  await using subject = await startSubject(cluster, mode, ['--retry-interval-start=1h', '--retry-interval-max=1h']);
  const { driver, sidecar, metric } = subject;
  const { pid } = sidecar;
  await driver.setFaults([{ method: 'CreateVolume', code: 'DEADLINE_EXCEEDED', times: Number.MAX_SAFE_INTEGER }]);
  await delay(lateMs);
  const [idleMb, cpuBefore, startedMs] = [residentMb(pid), cpuMs(pid), performance.now()];
  let called = 0;
  await showing(
    () => `${mode}: ${called} of ${openCount} volumes in progress`,
    async () => {
      await inParallel(openCount, width, (index) => createClaim(cluster, `open-${index}`, mode));
      while ((called = (await driver.calls('CreateVolume')).length) <= openCount) await delay(500);
    },
  );
  const seconds = (performance.now() - startedMs) / 1000;
  await delay(2 * lateMs);
  const used = (cpuMs(pid) - cpuBefore) / openCount;
  const text = `${residentMb(pid).toFixed(0)} MB, ${peakMb(pid).toFixed(0)} MB at the peak, ${idleMb.toFixed(0)} MB before; \
CPU per claim ${used.toFixed(2)} ms; ${seconds.toFixed(0)} s`;
  console.log(`\n${openCount} volumes in progress, ${mode}: resident memory ${text}`);
  if (mode === 'off') return;
  const records = await metric('intent_journal_records');
  const [size, written] = [await metric('intent_journal_bytes'), await metric('intent_journal_written_bytes_total')];
  console.log(
    `  ${records} open records of ${(size / records).toFixed(0)} bytes each, ${(written / openCount).toFixed(0)} bytes written for each`,
  );
}

async function waitFor(sidecar: StartedProcess, what: string, done: () => Promise<void>): Promise<void> {
  try {
    await done();
  } catch (error) {
    throw new Error(`${what}: ${String(error)}\n${sidecar.log().slice(-4000)}`, { cause: error });
  }
}

function turnText(turn: Turn): string {
  const requests =
    turn.requestsPerClaim === undefined ? '' : `, ${turn.requestsPerClaim.toFixed(2)} requests per claim`;
  return `${turn.claimsPerSecond.toFixed(1)} claims/s, CPU ${turn.cpuPerClaim.toFixed(2)} ms per claim${requests}, \
journal ${turn.journalWritesPerClaim.toFixed(3)} writes and ${turn.journalBytesPerClaim.toFixed(0)} bytes per claim`;
}

function printRow<T>(name: string, all: Record<Mode, T[]>, of: (one: T) => number | undefined, digits: number): void {
  const [off, on] = modes.map((mode) => all[mode].map((one) => of(one) ?? Number.NaN)) as [number[], number[]];
  const differences = on.map((value, index) => value - (off[index] ?? Number.NaN)).toSorted((a, b) => a - b);
  const cells = [median(off), median(on)].map((value) => value.toFixed(digits).padEnd(9));
  const [least = Number.NaN, most = Number.NaN] = [differences[0], differences.at(-1)];
  const range = `median ${median(differences).toFixed(digits)}, ${least.toFixed(digits)} to ${most.toFixed(digits)}`;
  if (Number.isNaN(median(off))) console.log(`${name.padEnd(19)}not recorded here`);
  else console.log(`${name.padEnd(19)}${cells.join('')}${range}`);
}

await main();
