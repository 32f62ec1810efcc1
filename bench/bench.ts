/**
 * `npm run bench`: what provisioning and deleting cost, on the real control plane where its programs are found or can
 * be built, else on the sandbox.
 */
import { execFile } from 'node:child_process';
import { cpus } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Option } from 'commander';
import { showing } from '../scripts/terminal-progress.ts';
import { scriptCommand, wholeNumber } from '../scripts/script-command.ts';
import { type PersistentVolume, persistentVolumes } from '../src/provision/objects.ts';
import { goHelp, otherSidecar } from '../test/support/go-sidecar/go-sidecar.ts';
import { bundled } from '../test/support/program-file.ts';
import { inParallel, until, untilReady } from '../test/support/stage.ts';
import { driverName, openBenchStage, width } from './bench-stage.ts';
import { mean, print } from './bench-report.ts';
import { ratioTable } from './ratio-table.ts';
import { buildProbe, heldText, longestStall } from './event-loop.ts';
import { memoryUsage, peakMb } from '../scripts/process-usage.ts';
import { comeAndGo, type LoadOptions, measure, type Result, start } from './sidecar-load.ts';

const values = scriptCommand('npm run bench --', 'What provisioning and deleting cost.')
  .option('--claims <N>', 'claims in the larger of two runs, the other has a quarter of them', wholeNumber(2), 200)
  .addOption(new Option('--target <T>', 'cluster').choices(['kubernetes', 'sandbox']).default('kubernetes'))
  .option('--program <CMD>', 'what to run as the sidecar; default: the bundle as the image runs it')
  .option(
    '--peer <CMD>',
    `another sidecar, run the same way on the same cluster and driver; ratios are printed; ${goHelp}`,
  )
  .option('--turns <N>', 'with a peer: runs of each that count, in alternating order', wholeNumber(3), 3)
  .option('--driver-ms <N>', 'how long the driver takes for a volume, in milliseconds', wholeNumber(0), 0)
  .option('--latency-ms <N>', 'how far the API server is from the sidecar: one way, in milliseconds', wholeNumber(0), 0)
  .option('--peer-flags <F>', 'further flags for the peer, such as a raised client-side rate limit', '')
  .parse()
  .opts<{
    claims: number;
    target: 'kubernetes' | 'sandbox';
    program?: string;
    peer?: string;
    turns: number;
    peerFlags: string;
    driverMs: number;
    latencyMs: number;
  }>();
const { claims: claimCount, target, turns, program = bundled, driverMs, latencyMs } = values;

const counts = { claimCount, fewerCount: Math.max(1, Math.floor(claimCount / 4)) };

async function main(): Promise<void> {
  const peer = await otherSidecar(values.peer);
  await using stage = await openBenchStage(target, { latencyMs });
  if (driverMs > 0) await stage.driver.setFaults([{ method: 'CreateVolume', delayMs: driverMs }]);
  const pace = driverMs > 0 ? ` that takes ${driverMs} ms for a volume` : '';
  console.log(
    `${claimCount} claims on ${stage.place}, hostpath driver${pace}, ${cpus().length} CPUs, Node ${process.version}`,
  );
  const options: LoadOptions = { stage, ...counts };
  const ours = await measureAll(options, peer);
  await printStalls(options);
  await printFloors(options, ours);
}

/** @returns what our own sidecar needed. */
async function measureAll(options: LoadOptions, peer: string | undefined): Promise<Result> {
  if (peer === undefined) {
    const alone = await measure(options, 'ours', program);
    print('ours', alone, counts);
    return alone;
  }
  const [ours, theirs] = await inTurns(options, [program, `${peer} ${values.peerFlags}`]);
  print('ours, means', mean(ours), counts);
  print('peer, means', mean(theirs), counts);
  console.log(`\nmedians of ${turns} alternating turns after a warm-up\n${ratioTable(ours, theirs)}`);
  return mean(ours);
}

/** In alternating order, since the later run finds a warmer cluster. */
async function inTurns(options: LoadOptions, programs: readonly [string, string]): Promise<[Result[], Result[]]> {
  const results: [Result[], Result[]] = [[], []];
  await measure(options, 'warm-up', programs[0]);
  for (let turn = 0; turn < turns; turn++) {
    for (const index of turn % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const)) {
      const result = await measure(options, `turn-${turn}-${index}`, programs[index]);
      results[index].push(result);
      console.log(
        `turn ${turn + 1}, ${['ours', 'peer'][index]}: ${result.volumesPerSecond.toFixed(1)} volumes saved per second, ${result.claimsPerSecond.toFixed(1)} claims bound`,
      );
    }
  }
  return results;
}

/**
 * How long the same load holds the event loop, in a process of its own: the probe that sees it takes CPU itself. Then what of the
 * memory that the load took is given back within a minute.
 */
async function printStalls(options: LoadOptions): Promise<void> {
  const sidecar = await start(options.stage, program, await buildProbe(options.stage.folder));
  try {
    await untilReady(sidecar);
    await delay(3000);
    const atStart = await longestStall(sidecar);
    const idle = memoryUsage(sidecar.pid);
    await comeAndGo(options, sidecar.pid, 'stalls', claimCount);
    console.log(
      `  event loop          blocked for ${heldText(atStart)} at the start, ${heldText(await longestStall(sidecar))} under load`,
    );
    const [after, peak] = [memoryUsage(sidecar.pid), peakMb(sidecar.pid)];
    await showing(
      () => 'a minute of rest',
      () => delay(60_000),
    );
    const rested = memoryUsage(sidecar.pid);
    console.log(`  memory, beside that ${idle.residentMb.toFixed(0)} MB idle, ${peak.toFixed(0)} at the peak, \
${after.residentMb.toFixed(0)} after the load, ${rested.residentMb.toFixed(0)} a minute later`);
  } finally {
    await sidecar.stop();
  }
}

async function printFloors(options: LoadOptions, ours: Result): Promise<void> {
  console.log('\nfloor: a bare script, one CreateVolume and three POSTs per claim');
  const paced = await floor(options, ours.claimsPerSecond);
  const saturated = await floor(options, Infinity);
  const ratio = (ours.cpuMsPerFurtherClaim / paced.cpuMsPerClaim).toFixed(2);
  console.log(`  at our pace         ${floorText(paced)}; a further claim of ours takes ${ratio} times that
  as fast as it goes  ${floorText(saturated)}`);
}

interface Floor {
  claimsPerSecond: number;
  cpuMsPerClaim: number;
}

function floorText({ claimsPerSecond, cpuMsPerClaim }: Floor): string {
  return `${claimsPerSecond.toFixed(0)} claims per second, ${cpuMsPerClaim.toFixed(2)} ms of CPU per claim`;
}

/** @param perSecond - claims begun in a second; `Infinity`: whenever an earlier one has ended. */
async function floor({ stage }: LoadOptions, perSecond: number): Promise<Floor> {
  const { stdout } = await promisify(execFile)(process.execPath, [
    path.join(import.meta.dirname, 'floor.ts'),
    `--kubeconfig=${stage.kubeconfig}`,
    `--address=${stage.driver.address}`,
    `--driver=${driverName}`,
    `--claims=${claimCount}`,
    `--per-second=${perSecond}`,
  ]);
  const { seconds, cpuMs: used } = JSON.parse(stdout) as { seconds: number; cpuMs: number };
  await inParallel(claimCount, width, (index) =>
    stage.client.delete(persistentVolumes, { name: `floor-${index}` } satisfies Partial<PersistentVolume['metadata']>),
  );
  await until('the floor volumes gone', () => stage.volumeNames.size === 0);
  return { claimsPerSecond: claimCount / seconds, cpuMsPerClaim: used / claimCount };
}

await main();
