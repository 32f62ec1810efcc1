/**
 * `npm run bench:take-over`: how long a sidecar takes for the records that a killed one has left. All claims are gone by then, so
 * that each volume has to be proved to have had no PersistentVolume, and deleted; the cluster is full of other PersistentVolumes.
 */
import { mkdtemp } from 'node:fs/promises';
import { cpus, tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { scriptCommand, wholeNumber } from '../scripts/script-command.ts';
import { showing } from '../scripts/terminal-progress.ts';
import { freePorts } from '../test/support/control-plane/free-ports.ts';
import { type DriverProcess, startDriver } from '../test/support/driver-process.ts';
import { type StartedProcess, startProcess } from '../test/support/started-process.ts';
import { persistentVolumeClaims } from '../src/provision/objects.ts';
import { type BenchCluster, bundled, inParallel, removeFolder, startBenchCluster, until } from './bench-cluster.ts';
import { boundPair } from './bound-pair.ts';
import { createClaim, createClass, deleteClaim } from './claims.ts';
import { cpuMs, peakMb } from './process-usage.ts';

const { records, volumes } = scriptCommand('npm run bench:take-over --', 'The records of a killed sidecar, taken over.')
  .option('--records <N>', 'records that are open at the kill', wholeNumber(), 10_000)
  .option('--volumes <N>', 'bound PersistentVolumes beside them', wholeNumber(), 50_000)
  .parse()
  .opts<{ records: number; volumes: number }>();
const driverName = 'bench.csi.example.com';
const className = 'bench';
/** Of the administrator's requests. */
const width = 20;
const timeoutS = 10;

interface Sidecar extends AsyncDisposable {
  process: StartedProcess;
  /** Sum of a metric's samples; 0 for one that is not there, or while nothing responds. */
  metric: (name: string) => Promise<number>;
}

async function main(): Promise<void> {
  await using cluster = await startBenchCluster('kubernetes');
  const folder = await mkdtemp(path.join(tmpdir(), 'bench-'));
  const driver = await startDriver({ driverName, folder });
  try {
    await showing(
      () => `writing ${volumes} bound claims and volumes`,
      () => cluster.fill(pairs()),
    );
    await createClass(cluster, className, driverName);
    await leaveRecords(cluster, driver);
    await measure(cluster, driver);
  } finally {
    await driver.stop();
    await removeFolder(folder);
  }
}

function* pairs(): Generator<{ key: string; object: object }> {
  for (let index = 0; index < volumes; index++) {
    const { claim, volume } = boundPair(index, driverName);
    yield { key: `persistentvolumeclaims/${claim.metadata.namespace}/${claim.metadata.name}`, object: claim };
    yield { key: `persistentvolumes/${volume.metadata.name}`, object: volume };
  }
}

/** The driver makes all volumes, and none of its responses arrives; then the sidecar is killed, and the claims are deleted. */
async function leaveRecords(cluster: BenchCluster, driver: DriverProcess): Promise<void> {
  await using sidecar = await startSidecar(cluster, driver);
  const unclear = { code: 'DEADLINE_EXCEEDED', after: true, times: Number.MAX_SAFE_INTEGER };
  await driver.setFaults([{ method: 'CreateVolume', ...unclear }]);
  let made = 0;
  await showing(
    () => `${made} of ${records} volumes in progress`,
    async () => {
      await inParallel(records, width, (index) => createClaim(cluster, `open-${index}`, className));
      while ((made = (await driver.volumeIds()).length) < records) await delay(500);
    },
  );
  await sidecar.process.stop('SIGKILL');
  await driver.setFaults([]);
  await showing(
    () => 'deleting the claims',
    async () => {
      await inParallel(records, width, (index) => deleteClaim(cluster, `open-${index}`));
      const left = (): Promise<unknown[]> => cluster.client.list(persistentVolumeClaims, { namespace: 'default' });
      while ((await left()).length > 0) await delay(500);
    },
  );
}

async function measure(cluster: BenchCluster, driver: DriverProcess): Promise<void> {
  const [fromMs, startedMs] = [Date.now(), performance.now()];
  await using sidecar = await startSidecar(cluster, driver);
  const { pid } = sidecar.process;
  const sinceStart = (): number => (performance.now() - startedMs) / 1000;
  const open = (): Promise<number> => sidecar.metric('intent_journal_records');
  await until('the caches', () => sidecar.process.log().includes('Started provisioner controller'));
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
  const counts = await cluster.requests(fromMs, Date.now());
  const requests = [...(counts ?? [])].toSorted(([, a], [, b]) => b - a).map(([what, count]) => `${count} ${what}`);
  console.log(`${records} open records among ${volumes} PersistentVolumes, --timeout=${timeoutS}s, ${cpus().length} CPUs, Node ${process.version}
  ready               ${readySeconds.toFixed(1)} s after the start
  volumes deleted     ${deletedSeconds.toFixed(1)} s after the start, ${left} left
  records closed      ${sinceStart().toFixed(1)} s after the start, ${await open()} left, of which unproved: ${await sidecar.metric('intent_journal_reported_total')}
  CPU                 ${(cpuMs(pid) / 1000).toFixed(1)} s, ${(cpuMs(pid) / records).toFixed(2)} ms a record
  memory              ${peakMb(pid).toFixed(0)} MB at the peak
  requests            ${requests.join(', ')}`);
}

async function startSidecar(cluster: BenchCluster, { address }: DriverProcess): Promise<Sidecar> {
  const [port = 0] = await freePorts(1);
  const [command = '', ...words] = bundled.split(' ');
  const sidecar = await startProcess({
    program: command,
    args: [
      ...words,
      `--csi-address=${address}`,
      `--kubeconfig=${cluster.sidecarKubeconfig}`,
      `--timeout=${timeoutS}s`,
      '--retry-interval-start=1h',
      '--retry-interval-max=1h',
      `--http-endpoint=127.0.0.1:${port}`,
    ],
    env: { KUBECONFIG: undefined },
  });
  const metric = async (name: string): Promise<number> => {
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    const samples = text.matchAll(new RegExp(`^${name}(?:\\{.*\\})? (\\S+)$`, 'gm'));
    return [...samples].reduce((sum, [, value]) => sum + Number(value), 0);
  };
  return { process: sidecar, metric, [Symbol.asyncDispose]: () => sidecar.stop('SIGKILL') };
}

await main();
