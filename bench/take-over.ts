/**
 * `npm run bench:take-over`: how long a sidecar takes for the records that a killed one has left. All claims are gone by then, so
 * that each volume has to be proved to have had no PersistentVolume, and deleted; the cluster is full of other PersistentVolumes.
 */
import { cpus } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { scriptCommand, wholeNumber } from '../scripts/script-command.ts';
import { showing } from '../scripts/terminal-progress.ts';
import { cpuMs, peakMb } from '../scripts/process-usage.ts';
import { persistentVolumeClaims } from '../src/provision/objects.ts';
import { boundPair } from '../test/support/bound-pair.ts';
import { putObjects, type StoredObject } from '../test/support/etcd-objects.ts';
import { bundled } from '../test/support/program-file.ts';
import { inParallel, untilReady } from '../test/support/stage.ts';
import {
  type BenchStage,
  className,
  driverName,
  type MeteredSidecar,
  openBenchStage,
  startMetered,
  width,
} from './bench-stage.ts';

const { records, volumes } = scriptCommand('npm run bench:take-over --', 'The records of a killed sidecar, taken over.')
  .option('--records <N>', 'records that are open at the kill', wholeNumber(), 10_000)
  .option('--volumes <N>', 'bound PersistentVolumes beside them', wholeNumber(), 50_000)
  .parse()
  .opts<{ records: number; volumes: number }>();
const timeoutS = 10;

async function main(): Promise<void> {
  await using stage = await openBenchStage('kubernetes');
  await showing(
    () => `writing ${volumes} bound claims and volumes`,
    () => putObjects(stage.cluster.etcdUrl ?? '', pairs()),
  );
  await leaveRecords(stage);
  await measure(stage);
}

function* pairs(): Generator<StoredObject> {
  for (let index = 0; index < volumes; index++) {
    const { claim, volume } = boundPair(index, driverName);
    yield { key: `persistentvolumeclaims/${claim.metadata.namespace}/${claim.metadata.name}`, object: claim };
    yield { key: `persistentvolumes/${volume.metadata.name}`, object: volume };
  }
}

/** The driver makes all volumes, and none of its responses arrives; then the sidecar is killed, and the claims are deleted. */
async function leaveRecords(stage: BenchStage): Promise<void> {
  const { driver } = stage;
  const sidecar = await startSidecar(stage);
  const unclear = { code: 'DEADLINE_EXCEEDED', after: true, times: Number.MAX_SAFE_INTEGER };
  await driver.setFaults([{ method: 'CreateVolume', ...unclear }]);
  let made = 0;
  await showing(
    () => `${made} of ${records} volumes in progress`,
    async () => {
      await inParallel(records, width, (index) => stage.createClaim({ name: `open-${index}` }, className));
      while ((made = (await driver.volumeIds()).length) < records) await delay(500);
    },
  );
  await sidecar.process.stop('SIGKILL');
  await driver.setFaults([]);
  await showing(
    () => 'deleting the claims',
    async () => {
      await inParallel(records, width, (index) => stage.deleteClaim({ name: `open-${index}` }));
      const left = (): Promise<unknown[]> => stage.client.list(persistentVolumeClaims, { namespace: 'default' });
      while ((await left()).length > 0) await delay(500);
    },
  );
}

async function measure(stage: BenchStage): Promise<void> {
  const { driver } = stage;
  const [fromMs, startedMs] = [Date.now(), performance.now()];
  const sidecar = await startSidecar(stage);
  const { pid } = sidecar.process;
  const sinceStart = (): number => (performance.now() - startedMs) / 1000;
  const open = (): Promise<number> => sidecar.metric('intent_journal_records');
  await untilReady(sidecar.process, 300_000);
  const readySeconds = sinceStart();
  let [left, deletedSeconds] = [records, 0];
  await showing(
    () => `${left} volumes are left`,
    async () => {
      while ((left = (await driver.volumeIds()).length) > 0 && sinceStart() < 600) await delay(500);
      deletedSeconds = sinceStart();
      while ((await open()) > 0 && sinceStart() < 660) await delay(500);
    },
  );
  const counts = await stage.requests(fromMs, Date.now());
  const requests = [...(counts ?? [])].toSorted(([, a], [, b]) => b - a).map(([what, count]) => `${count} ${what}`);
  console.log(`${records} open records among ${volumes} PersistentVolumes, --timeout=${timeoutS}s, ${cpus().length} CPUs, Node ${process.version}
  ready               ${readySeconds.toFixed(1)} s after the start
  volumes deleted     ${deletedSeconds.toFixed(1)} s after the start, ${left} left
  records closed      ${sinceStart().toFixed(1)} s after the start, ${await open()} left, of which unproved: ${await sidecar.metric('intent_journal_reported_total')}
  CPU                 ${(cpuMs(pid) / 1000).toFixed(1)} s, ${(cpuMs(pid) / records).toFixed(2)} ms a record
  memory              ${peakMb(pid).toFixed(0)} MB at the peak
  requests            ${requests.join(', ')}`);
}

async function startSidecar(stage: BenchStage): Promise<MeteredSidecar> {
  return await startMetered(stage, {
    program: bundled,
    csiAddress: stage.driver.address,
    flags: [`--timeout=${timeoutS}s`, '--retry-interval-start=1h', '--retry-interval-max=1h'],
  });
}

await main();
