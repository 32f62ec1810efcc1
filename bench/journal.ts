/**
 * `npm run bench:journal`: what the intent journal costs. Two sidecars, with `--intent-journal=lease` and `=off`, run side
 * by side with a driver each; they are loaded in turns, so that whatever else the machine does hits both. Then a cluster
 * for each, whose driver cannot tell whether it has made a volume: all records stay open. `--compare traces` does the same with
 * traces off and on.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { cpus } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Option } from 'commander';
import { scriptCommand, wholeNumber } from '../scripts/script-command.ts';
import { showing } from '../scripts/terminal-progress.ts';
import { bundled } from '../test/support/program-file.ts';
import type { DriverProcess } from '../test/support/driver-process.ts';
import { inParallel, until } from '../test/support/stage.ts';
import type { StartedProcess } from '../test/support/started-process.ts';
import { type BenchStage, type MeteredSidecar, openBenchStage, startMetered, width } from './bench-stage.ts';
import { median } from './statistics.ts';
import { cpuMs, peakMb, residentMb } from '../scripts/process-usage.ts';

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
/** Before a claim that is to find everything idle, also the journal's own quiet writes, in milliseconds. */
const quietMs = 1500;
/** Late events and what the journal writes once it is quiet, in milliseconds. */
const lateMs = 3000;

/** A sidecar and what it works with. */
interface Subject extends MeteredSidecar {
  mode: Mode;
  driver: DriverProcess;
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
  await using stage = await openBenchStage(target);
  const off = await startSubject(stage, 'off');
  const on = await startSubject(stage, 'on');
  const machine = `${cpus().length} CPUs, Node ${process.version}`;
  console.log(`${rounds} times ${claimCount} claims for each on ${stage.place}, hostpath driver, ${machine}\n`);
  const turns: Record<Mode, Turn[]> = { off: [], on: [] };
  for (let round = 0; round <= rounds; round++) {
    const order = round % 2 === 0 ? [off, on] : [on, off];
    for (const subject of order) {
      const name = `turn ${round + 1} of ${rounds + 1}, ${subject.mode}`;
      const turn = await showing(
        () => `${name}: ${stage.volumeNames.size} volumes now`,
        () => load(stage, subject),
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
          quiet[subject.mode].push(await quietClaim(stage, subject, n));
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

async function startSubject(stage: BenchStage, mode: Mode, flags: readonly string[] = []): Promise<Subject> {
  const driver = await stage.startDriver(`${mode}.bench.example.com`);
  await stage.createClass(mode, driver.driverName);
  const [node = '', ...words] = bundled.split(' ');
  const profile =
    values.profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${path.join(values.profile, mode)}`];
  const sidecar = await startMetered(stage, {
    program: [node, ...profile, ...words].join(' '),
    csiAddress: driver.address,
    flags: [`--intent-journal=${compare === 'journal' && mode === 'off' ? 'off' : 'lease'}`, ...flags],
    environment: {
      OTEL_EXPORTER_OTLP_ENDPOINT: compare === 'traces' && mode === 'on' ? await receiver(stage) : undefined,
    },
  });
  await waitFor(sidecar.process, 'the first volume', async () => {
    await stage.createClaim({ name: `${mode}-first` }, mode);
    await until('it', () => stage.boundClaims.has(`default/${mode}-first`), 60_000);
  });
  return { ...sidecar, mode, driver };
}

/** Starts a receiver of traces, which keeps none. @returns its URL. */
async function receiver(stage: BenchStage): Promise<string> {
  const server = createServer((request, response) => request.resume().on('end', () => response.end()));
  stage.defer(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** One turn: claims are made, measured, and deleted, which is not. */
async function load(stage: BenchStage, { mode, process: sidecar, metric }: Subject): Promise<Turn> {
  const { boundClaims, volumeNames } = stage;
  const [boundBefore, volumesBefore] = [boundClaims.size, volumeNames.size];
  const journal = async (): Promise<[number, number]> => [
    await metric('intent_journal_write_duration_seconds_count'),
    await metric('intent_journal_written_bytes_total'),
  ];
  const [writesBefore, bytesBefore] = await journal();
  const [fromMs, cpuBefore, startedMs] = [Date.now(), cpuMs(sidecar.pid), performance.now()];
  let seconds = 0;
  await waitFor(sidecar, 'all claims bound', async () => {
    await inParallel(claimCount, width, (index) => stage.createClaim({ name: `${mode}-${index}` }, mode));
    await until('it', () => boundClaims.size === boundBefore + claimCount);
    seconds = (performance.now() - startedMs) / 1000;
  });
  await delay(lateMs);
  const used = cpuMs(sidecar.pid) - cpuBefore;
  const requests = await stage.requests(fromMs, Date.now());
  const [writes, bytes] = await journal();
  await inParallel(claimCount, width, (index) => stage.deleteClaim({ name: `${mode}-${index}` }));
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
async function quietClaim(stage: BenchStage, { mode }: Subject, n: number): Promise<number> {
  await delay(quietMs);
  const startedMs = performance.now();
  const { metadata } = await stage.createClaim({ name: `${mode}-quiet-${n}` }, mode);
  const volume = `pvc-${metadata.uid ?? ''}`;
  while (!stage.volumeNames.has(volume)) await delay(1);
  return performance.now() - startedMs;
}

/** Memory while the outcome of every call is unclear. */
async function measureOpen(mode: Mode): Promise<void> {
  await using stage = await openBenchStage(target);
  const subject = await startSubject(stage, mode, ['--retry-interval-start=1h', '--retry-interval-max=1h']);
  const { driver, metric } = subject;
  const { pid } = subject.process;
  await driver.setFaults([{ method: 'CreateVolume', code: 'DEADLINE_EXCEEDED', times: Number.MAX_SAFE_INTEGER }]);
  await delay(lateMs);
  const [idleMb, cpuBefore, startedMs] = [residentMb(pid), cpuMs(pid), performance.now()];
  let called = 0;
  await showing(
    () => `${mode}: ${called} of ${openCount} volumes in progress`,
    async () => {
      await inParallel(openCount, width, (index) => stage.createClaim({ name: `open-${index}` }, mode));
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
