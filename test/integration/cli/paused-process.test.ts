/** A sidecar that is stopped in the middle of its work, and goes on when another one has taken over. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { storageProvisionerKey } from '../../../src/provision/objects.ts';
import { maxStalenessMs } from '../../../src/provision/volume/deletion-holds.ts';
import { ApiProxy, type ProxiedRequest } from '../../support/api-proxy.ts';
import { eventually } from '../../support/eventually.ts';
import { RecordingDriver } from '../../support/fakes/recording-driver.ts';
import { claimsRef, SandboxApi } from '../../support/sandbox-api.ts';
import { canFakeHostName, startSidecar } from '../../support/sidecar-process.ts';
import type { StartedProcess } from '../../support/started-process.ts';
import { Program } from '../../support/program.ts';

const driverName = 'd.example.com';
const volumesRef = { group: '', version: 'v1', plural: 'persistentvolumes' };
const classesRef = { group: 'storage.k8s.io', version: 'v1', plural: 'storageclasses' };
const leasesRef = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases' };
const secretsRef = { group: '', version: 'v1', plural: 'secrets' };
const stopAt = join(import.meta.dirname, '../../support/fakes/stop-at.ts');

const shortLease = { durationMs: 6000, renewDeadlineMs: 4000 };
const longLease = { durationMs: 60_000, renewDeadlineMs: 50_000 };

const isVolumeWrite = ({ method, url }: ProxiedRequest): boolean =>
  method !== 'GET' && url.startsWith('/api/v1/persistentvolumes');

const isRecordWrite = ({ method, url }: ProxiedRequest): boolean => method === 'PUT' && url.includes('-journal-');

/** Within that another process has taken over the record of a claim, and closed it, in milliseconds. */
const takeOverMs = 120_000;
/** A process without election that has not written its records for so long does so before anything else, in milliseconds. */
const silenceMs = 21_000;

/** Longer than what was seen of a volume counts, so that it is read again, in milliseconds: how long it is stopped is what is tested. */
const pauseMs = maxStalenessMs + 500;

/** One sidecar with a socket and a way to the API server of its own, so that what it sends can be counted. */
interface Actor {
  process: StartedProcess;
  driver: RecordingDriver;
  proxy: ApiProxy;
}

async function startDriver(): Promise<RecordingDriver> {
  const driver = await RecordingDriver.start({ name: driverName });
  driver.always('CreateVolume', ({ request }) => ({
    volume: { volume_id: `id-of-${String(request['name'])}`, capacity_bytes: 1 << 30 },
  }));
  return driver;
}

class Scene implements AsyncDisposable {
  readonly api: SandboxApi;
  readonly #flags: readonly string[];
  readonly #opened = new AsyncDisposableStack();

  private constructor(api: SandboxApi, flags: readonly string[]) {
    this.api = this.#opened.use(api);
    this.#flags = flags;
  }

  /** @param options.hasSecret - each call for a volume needs one. */
  static async start(flags: readonly string[], { hasSecret }: { hasSecret: boolean }): Promise<Scene> {
    const scene = new Scene(await SandboxApi.start(), flags);
    const parameters = {
      'csi.storage.k8s.io/provisioner-secret-name': 'secret',
      'csi.storage.k8s.io/provisioner-secret-namespace': 'ns2',
    };
    const more = { provisioner: driverName, reclaimPolicy: 'Delete', ...(hasSecret && { parameters }) };
    scene.api.own.create(classesRef, { metadata: { name: 'sc' }, ...more });
    scene.api.own.create(secretsRef, { metadata: { namespace: 'ns2', name: 'secret' }, data: {} });
    return scene;
  }

  /** @param options.stop - where it stops itself, as `STOP_AT`. */
  async startActor({ hostName, stop }: { hostName?: string; stop?: string } = {}): Promise<Actor> {
    const driver = this.#opened.use(await startDriver());
    const proxy = this.#opened.use(await ApiProxy.start({ url: this.api.url }));
    const process = await startSidecar({
      csiAddress: `unix://${driver.socketPath}`,
      kubeconfig: '',
      namespace: 'ns1',
      flags: [`--master=${proxy.url}`, '--timeout=5s', '-v=5', ...this.#flags],
      hostName,
      environment: stop === undefined ? {} : { STOP_AT: stop, NODE_OPTIONS: `--import=${stopAt}` },
    });
    this.#opened.defer(() => process.stop('SIGKILL'));
    return { process, driver, proxy };
  }

  /** A sidecar in this process, which ends before others start. */
  async makeVolume(): Promise<void> {
    await using driver = await startDriver();
    await using maker = new Program({
      socketPath: driver.socketPath,
      apiUrl: this.api.url,
      flags: this.#flags,
      environment: { POD_NAMESPACE: 'ns1' },
    });
    await this.hasVolume();
    maker.signal('SIGTERM');
    assert.deepEqual(await maker.ended, { code: 0 });
  }

  addClaim(name: string): void {
    const annotations = { [storageProvisionerKey]: driverName };
    this.api.addClaim({ name, annotations }, { volumeMode: 'Filesystem' });
  }

  /** What Kubernetes' own controller does when the claim of the only volume is deleted. */
  releaseVolume(): void {
    const [volume] = this.api.own.list(volumesRef);
    if (volume === undefined) throw new Error('there is no volume');
    const { claimRef } = volume['spec'] as { claimRef: { namespace: string; name: string } };
    this.api.own.delete(claimsRef, { namespace: claimRef.namespace, name: claimRef.name });
    this.api.own.updateStatus(volumesRef, { ...structuredClone(volume), status: { phase: 'Released' } });
  }

  /** An administrator wants to keep the storage of the only volume. */
  keepVolume(): void {
    const [volume] = this.api.own.list(volumesRef);
    if (volume === undefined) throw new Error('there is no volume');
    const spec = { ...(volume['spec'] as object), persistentVolumeReclaimPolicy: 'Retain' };
    this.api.own.update(volumesRef, { ...structuredClone(volume), spec });
  }

  async hasVolume(): Promise<void> {
    await eventually(() => assert.equal(this.api.own.list(volumesRef).length, 1));
  }

  /** Keys of the records that are open in the journal. */
  records(): string[] {
    return this.api.own
      .list(leasesRef)
      .flatMap(({ metadata }) => Object.keys(metadata.annotations ?? {}))
      .filter((key) => /^csi-provisioner\.journal\/[\da-f]{8}-/.test(key));
  }

  get holder(): string {
    const lease = this.api.own.get(leasesRef, { namespace: 'ns1', name: 'd-example-com' });
    return (lease?.['spec'] as { holderIdentity?: string } | undefined)?.holderIdentity ?? '';
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#opened.disposeAsync();
  }
}

function electionFlags({ durationMs, renewDeadlineMs }: typeof shortLease): string[] {
  return [
    '--leader-election',
    `--leader-election-lease-duration=${durationMs}ms`,
    `--leader-election-renew-deadline=${renewDeadlineMs}ms`,
    '--leader-election-retry-period=1s',
  ];
}

/** What of a sidecar reaches the driver and the volumes. */
function sentBy({ driver, proxy }: Actor): string[] {
  const calls = driver.calls.map(({ method }) => method).filter((method) => /^(Create|Delete)Volume$/.test(method));
  return [...calls, ...proxy.requests.filter(isVolumeWrite).map(({ method, url }) => `${method} ${url}`)];
}

async function isStopped({ process: { pid } }: Actor): Promise<void> {
  await eventually(async () => assert.match(await readFile(`/proc/${pid}/stat`, 'utf8'), /^\d+ \(.*\) T /s));
}

function goOn({ process: { pid } }: Actor): void {
  process.kill(pid, 'SIGCONT');
}

/** Where it is stopped, directly before it sends something. */
const moments = [
  { title: 'before CreateVolume', stop: 'answer PUT -journal-.*claimed', isDeletion: false },
  { title: 'as it saves a volume', stop: 'request POST /persistentvolumes', isDeletion: false },
  { title: 'before DeleteVolume', stop: 'answer GET /ns2/secrets/secret', isDeletion: true },
  { title: 'as it deletes a volume object', stop: 'request DELETE /persistentvolumes', isDeletion: true },
  { title: 'as it frees a volume object', stop: 'request PATCH /persistentvolumes', isDeletion: true },
];

/** Starts a sidecar that stops itself. */
async function stopped(scene: Scene, { stop, isDeletion }: (typeof moments)[number]): Promise<Actor> {
  if (isDeletion) {
    scene.addClaim('claimed');
    await scene.makeVolume();
  }
  const actor = await scene.startActor({ stop });
  if (isDeletion) scene.releaseVolume();
  else scene.addClaim('claimed');
  await isStopped(actor);
  return actor;
}

const skip = canFakeHostName() ? false : 'processes with a host name of their own are not permitted here';

describe('a leader that is stopped for longer than its lease', { skip, concurrency: true }, () => {
  for (const moment of moments) {
    test(`sends nothing more and ends, stopped ${moment.title}`, async () => {
      await using scene = await Scene.start(electionFlags(shortLease), { hasSecret: moment.isDeletion });
      const first = await stopped(scene, moment);
      const { holder } = scene;
      await scene.startActor({ hostName: 'other' });
      await eventually(() => assert.equal(scene.holder, 'other'));
      assert.notEqual(holder, 'other');
      const before = sentBy(first);
      goOn(first);
      assert.equal(await first.process.ending(), 'exit code 1');
      assert.deepEqual(sentBy(first).slice(before.length), [], first.process.log());
    });
  }
});

describe('a leader that is stopped for less than its renew deadline', { skip, concurrency: true }, () => {
  for (const moment of moments) {
    test(`goes on with what it did, stopped ${moment.title}`, async () => {
      await using scene = await Scene.start(electionFlags(longLease), { hasSecret: moment.isDeletion });
      const first = await stopped(scene, moment);
      const before = sentBy(first).length;
      await delay(pauseMs);
      goOn(first);
      await eventually(() => assert.ok(sentBy(first).length > before));
      assert.ok(first.process.running());
    });
  }
});

test('a sidecar that is stopped before DeleteVolume, for seconds, keeps a volume that was set to Retain meanwhile', async () => {
  await using scene = await Scene.start([], { hasSecret: true });
  const actor = await stopped(scene, { title: '', stop: 'answer GET /ns2/secrets/secret', isDeletion: true });
  scene.keepVolume();
  await delay(pauseMs);
  goOn(actor);
  const isReleased = ({ method }: ProxiedRequest): boolean => method === 'PATCH'; // of the finalizer
  await eventually(() => assert.ok(actor.proxy.requests.some(isReleased)));
  assert.deepEqual(
    actor.driver.calls.map(({ method }) => method).filter((method) => method === 'DeleteVolume'),
    [],
  );
});

describe('a sidecar without election that is stopped until another one has its records', { concurrency: true }, () => {
  for (const moment of moments.filter(({ isDeletion }) => !isDeletion)) {
    test(`makes nothing more of them, stopped ${moment.title}`, async () => {
      await using scene = await Scene.start([], { hasSecret: false });
      const first = await stopped(scene, moment);
      const stoppedMs = performance.now();
      await scene.startActor();
      await scene.hasVolume();
      await eventually(() => assert.deepEqual(scene.records(), []), { withinMs: takeOverMs });
      await delay(Math.max(0, stoppedMs + silenceMs - performance.now()));
      const before = sentBy(first);
      const written = first.proxy.requests.filter(isRecordWrite).length;
      const logged = first.process.log().length;
      goOn(first);
      await eventually(() => assert.ok(first.proxy.requests.filter(isRecordWrite).length > written));
      const isOver = /"Provisioning stopped".* exists already"/;
      await eventually(() => assert.match(first.process.log().slice(logged), isOver));
      assert.deepEqual(sentBy(first).slice(before.length), [], first.process.log());
      assert.ok(first.process.running());
    });
  }
});
