/** A sidecar that is stopped in the middle of its work, and goes on when another one has taken over. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { loadCsi } from '../../../src/csi/csi-proto.ts';
import { storageProvisionerKey } from '../../../src/provision/keys.ts';
import { eventually } from '../../support/eventually.ts';
import { RecordingDriver } from '../../support/fakes/recording-driver.ts';
import { type ProxiedRequest, RecordingProxy } from '../../support/fakes/recording-proxy.ts';
import { claimsRef, SandboxApi } from '../../support/sandbox-api.ts';
import { canFakeHostName, startSidecar } from '../../support/sidecar-process.ts';
import type { StartedProcess } from '../../support/started-process.ts';

const csi = loadCsi();
const driverName = 'd.example.com';
const volumesRef = { group: '', version: 'v1', plural: 'persistentvolumes' };
const classesRef = { group: 'storage.k8s.io', version: 'v1', plural: 'storageclasses' };
const leasesRef = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases' };

const shortLease = { durationMs: 6000, renewDeadlineMs: 4000 };
const longLease = { durationMs: 60_000, renewDeadlineMs: 50_000 };

const isRecordWrite = ({ method, url }: ProxiedRequest): boolean => method === 'PUT' && url.includes('-journal-');
const isVolumeWrite = ({ method, url }: ProxiedRequest): boolean =>
  method !== 'GET' && url.startsWith('/api/v1/persistentvolumes');

/** One sidecar with a socket and a way to the API server of its own, so that what it sends can be counted. */
interface Actor {
  process: StartedProcess;
  driver: RecordingDriver;
  proxy: RecordingProxy;
}

class Scene implements AsyncDisposable {
  readonly api: SandboxApi;
  readonly #flags: readonly string[];
  readonly #opened = new AsyncDisposableStack();
  #actors = 0;

  private constructor(api: SandboxApi, flags: readonly string[]) {
    this.api = this.#opened.use(api);
    this.#flags = flags;
  }

  static async start(flags: readonly string[]): Promise<Scene> {
    const scene = new Scene(await SandboxApi.start(), flags);
    scene.api.own.create(classesRef, { metadata: { name: 'sc' }, provisioner: driverName, reclaimPolicy: 'Delete' });
    return scene;
  }

  /** @param isApart - has another host name than this machine. */
  async startActor({ isApart = false } = {}): Promise<Actor> {
    const driver = this.#opened.use(await RecordingDriver.start({ csi, name: driverName }));
    driver.always('CreateVolume', ({ request }) => ({
      volume: { volume_id: `id-of-${String(request['name'])}`, capacity_bytes: 1 << 30 },
    }));
    const proxy = this.#opened.use(await RecordingProxy.start(this.api.url));
    const process = await startSidecar({
      csiAddress: `unix://${driver.socketPath}`,
      kubeconfig: '',
      namespace: 'ns1',
      flags: [`--master=${proxy.url}`, '--timeout=10s', '-v=5', ...this.#flags],
      hostName: isApart ? `other-${++this.#actors}` : undefined,
    });
    this.#opened.defer(() => process.stop('SIGKILL'));
    return { process, driver, proxy };
  }

  addClaim(name: string): string {
    const annotations = { [storageProvisionerKey]: driverName };
    const { metadata } = this.api.addClaim({ name, annotations }, { volumeMode: 'Filesystem' });
    return `pvc-${metadata.uid ?? ''}`;
  }

  /** What Kubernetes' own controller does when the claim of a volume is deleted. */
  release(volume: string): void {
    const { spec } = this.#volume(volume) as { spec?: { claimRef?: { namespace: string; name: string } } };
    const { namespace = '', name = '' } = spec?.claimRef ?? {};
    this.api.own.delete(claimsRef, { namespace, name });
    this.#setPhase(volume, 'Released');
  }

  bind(volume: string): void {
    this.#setPhase(volume, 'Bound');
  }

  async hasVolume(volume: string): Promise<void> {
    await eventually(() => assert.ok(this.#volume(volume) !== undefined, `${volume} is not there`));
  }

  async isRemoved(volume: string): Promise<void> {
    await eventually(() => assert.equal(this.#volume(volume), undefined));
  }

  get holder(): string {
    const lease = this.api.own.get(leasesRef, { namespace: 'ns1', name: 'd-example-com' });
    return (lease?.['spec'] as { holderIdentity?: string } | undefined)?.holderIdentity ?? '';
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#opened.disposeAsync();
  }

  #volume(name: string) {
    return this.api.own.get(volumesRef, { name });
  }

  #setPhase(name: string, phase: string): void {
    this.api.own.updateStatus(volumesRef, { ...structuredClone(this.#volume(name))!, status: { phase } });
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

function pause({ process: { pid } }: Actor): void {
  process.kill(pid, 'SIGSTOP');
}

function goOn({ process: { pid } }: Actor): void {
  process.kill(pid, 'SIGCONT');
}

/** In which the sidecar is stopped, and what makes it send more at once as soon as it goes on. */
interface Moment {
  title: string;
  /** Up to the moment. @returns what completes what it waits for, once it is stopped. */
  reach: (scene: Scene, first: Actor) => Promise<() => void>;
  /** By which the other one is seen to have taken over. */
  done: (scene: Scene, volumes: { claimed: string; bound: string }) => Promise<void>;
}

const moments: Moment[] = [
  {
    title: 'while it writes the record of a volume',
    reach: async (_scene, { proxy }) => {
      const { held, release } = proxy.hold(isRecordWrite);
      await Promise.race([held]);
      return release;
    },
    done: (scene, { claimed }) => scene.hasVolume(claimed),
  },
  {
    title: 'while the driver creates a volume',
    reach: async (_scene, { driver }) => {
      const answered = Promise.withResolvers<object>();
      driver.next('CreateVolume', async ({ request }) => {
        await answered.promise;
        return { volume: { volume_id: `id-of-${String(request['name'])}`, capacity_bytes: 1 << 30 } };
      });
      const before = driver.callsOf('CreateVolume').length;
      await driver.called('CreateVolume', before + 1);
      return () => answered.resolve({});
    },
    done: (scene, { claimed }) => scene.hasVolume(claimed),
  },
  {
    title: 'when a volume is released',
    reach: () => Promise.resolve(() => undefined),
    done: (scene, { bound }) => scene.isRemoved(bound),
  },
];

const skip = canFakeHostName() ? false : 'processes with a host name of their own are not permitted here';

describe('a leader that is stopped for longer than its lease', { skip, concurrency: true }, () => {
  for (const { title, reach, done } of moments) {
    test(`sends nothing when it goes on, stopped ${title}`, async () => {
      await using scene = await Scene.start(electionFlags(shortLease));
      const first = await scene.startActor();
      const bound = scene.addClaim('bound');
      await scene.hasVolume(bound);
      scene.bind(bound);
      const reached = reach(scene, first);
      const claimed = scene.addClaim('claimed');
      const complete = await reached;
      const { holder } = scene;
      pause(first);
      complete();
      await scene.startActor({ isApart: true });
      await eventually(() => assert.notEqual(scene.holder, holder));
      scene.release(bound);
      await done(scene, { claimed, bound });
      const before = sentBy(first);
      goOn(first);
      assert.equal(await first.process.ending(), 'exit code 1');
      assert.deepEqual(sentBy(first).slice(before.length), [], first.process.log());
    });
  }
});

describe('a leader that is stopped for a moment', () => {
  test('goes on with what it did', async () => {
    await using scene = await Scene.start(electionFlags(longLease));
    const first = await scene.startActor();
    const { held, release } = first.proxy.hold(isRecordWrite);
    const volume = scene.addClaim('claimed');
    await held;
    pause(first);
    release();
    await delay(2000);
    goOn(first);
    await scene.hasVolume(volume);
    assert.ok(first.process.running());
  });
});
