import { appendFileSync, mkdirSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { inParallel } from '../../bench/bench-cluster.ts';
import {
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  type StorageClass,
  storageClasses,
} from '../../src/provision/objects.ts';
import { type DriverProcess, startDriver } from '../../test/support/driver-process.ts';
import { startSidecar } from '../../test/support/sidecar-process.ts';
import type { StartedProcess } from '../../test/support/started-process.ts';
import type { Deletion, OpenRecord } from '../chaos/count.ts';
import { readJournal } from '../chaos/journal-records.ts';
import { moveAway, retain } from '../chaos/kept-volumes.ts';
import { insist, openWorld, type World } from '../chaos/world.ts';
import { showing } from '../terminal-progress.ts';
import type { KeptOptions } from './options.ts';
import { type KeptCounts, type KeptVolume, tally } from './tally.ts';

export interface KeptReport extends KeptCounts {
  /** Records of saved volumes that were open at the kills. */
  records: number;
  kills: number;
  /** How long the sidecar was away, the longest time. */
  awayMs: number;
  /** From the start of a successor until it had decided about the last record, the longest time. */
  decidedMs: number;
}

const driverName = 'kept.csi.example.com';
const namespace = 'default';
const className = 'kept';
/** Each round kills when this share of its claims has a volume. */
const savedShare = 0.6;
const readyLine = 'Started provisioner controller';
/** What is not decided after that, besides several times --timeout, never will be; a dead writer's records wait for 40 s. */
const patienceMs = 180_000;

const election = [
  '--leader-election',
  '--leader-election-lease-duration=10s',
  '--leader-election-renew-deadline=7s',
  '--leader-election-retry-period=1s',
];

/** Tells the story as often as needed. @throws when something else fails. */
export async function runKept(options: KeptOptions, say: (text: string) => void): Promise<KeptReport> {
  await using cleanup = new AsyncDisposableStack();
  const world = cleanup.use(await openWorld(options.cluster));
  const folder = await mkdtemp(path.join(tmpdir(), 'kept-'));
  cleanup.defer(() => rm(folder, { recursive: true, force: true }));
  const driver = await startDriver({ driverName, folder });
  cleanup.defer(() => driver.stop('SIGKILL')); // it may be halted
  const story = new Story({ options, world, driver, kubeconfig: await world.cluster.sidecarKubeconfig() });
  cleanup.defer(() => story.end());
  if (options.logFolder !== undefined) mkdirSync(options.logFolder, { recursive: true });
  await insist(() =>
    world.client.create<StorageClass>(storageClasses, {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name: className },
      provisioner: driverName,
      reclaimPolicy: 'Delete',
    }),
  );
  while (story.report.records < options.records) {
    await showing(
      () => `round ${story.report.kills + 1}: ${story.state}, ${story.report.records} of ${options.records} records`,
      () => story.round(),
    );
    const { records, kills, destroyed, unproved, stuck, open } = story.report;
    say(
      `after ${kills} kills: ${records} records, ${destroyed} destroyed, ${unproved} unproved, ${stuck} stuck, ${open} open`,
    );
  }
  return story.report;
}

interface StoryOptions {
  options: KeptOptions;
  world: World;
  driver: DriverProcess;
  kubeconfig: string;
}

class Story {
  readonly report: KeptReport = {
    records: 0,
    kills: 0,
    awayMs: 0,
    decidedMs: 0,
    destroyed: 0,
    unproved: 0,
    stuck: 0,
    open: 0,
  };
  state = '';
  readonly #options: StoryOptions;
  readonly #kept: KeptVolume[] = [];
  #sidecar: StartedProcess | undefined;
  #killed: StartedProcess | undefined;
  /** Names of two Pods; that of the current one is first. */
  #pods = ['kept-a', 'kept-b'];
  #claims = 0;

  constructor(options: StoryOptions) {
    this.#options = options;
  }

  /** Claims become volumes, the sidecar is killed, volumes are moved away, and the next sidecar decides about their records. */
  async round(): Promise<void> {
    const { world } = this.#options;
    const { mode } = this.#options.options;
    this.#sidecar ??= await this.#start();
    this.state = 'nothing happens';
    await delay(this.#options.options.quietMs);
    await this.#saveVolumes();
    this.#killed = this.#sidecar;
    await this.#sidecar.stop('SIGKILL');
    const killedMs = performance.now();
    this.report.kills++;
    const names = await this.#openRecords();
    this.report.records += names.length;

    this.state = `${names.length} volumes are moved away`;
    const between = await this.#startBetween();
    await inParallel(names.length, 20, async (index) => {
      const volume = await retain(world.client, names[index] ?? '');
      if (volume !== undefined) await moveAway(world.client, volume);
    });
    await between?.stop('SIGTERM');
    this.#keepLog(between, 'between');

    this.state = 'the successor decides';
    this.#keepLog(this.#sidecar, 'sidecar');
    if (mode === 'election') this.#pods.reverse();
    this.report.awayMs = Math.max(this.report.awayMs, performance.now() - killedMs);
    const startedMs = performance.now();
    this.#sidecar = await this.#start();
    await this.#decided();
    this.report.decidedMs = Math.max(this.report.decidedMs, performance.now() - startedMs);
  }

  async end(): Promise<void> {
    await this.#sidecar?.stop('SIGKILL');
    this.#keepLog(this.#sidecar, 'sidecar');
  }

  /** Creates the claims of a round, and returns while their volumes are being saved. */
  async #saveVolumes(): Promise<void> {
    const { world, driver, options } = this.#options;
    const { claims } = options;
    const uids = new Set<string>();
    const saved = (): number => [...world.volumes.values()].filter(({ claimUid }) => uids.has(claimUid)).length;
    this.state = 'claims are created';
    // all volumes are created at once: records that are open together are closed together, some time after that
    process.kill(driver.pid, 'SIGSTOP');
    await inParallel(claims, 50, async () => {
      const name = `claim-${this.#claims++}`;
      const claim = await insist(() => world.client.create(persistentVolumeClaims, claimOf(name)));
      uids.add(claim?.metadata.uid ?? '');
    });
    this.state = 'records are opened';
    const isRecorded = async (): Promise<boolean> =>
      (await this.#records()).filter(({ claimUid }) => uids.has(claimUid)).length === claims;
    await this.#until('the records of a round', isRecorded);
    process.kill(driver.pid, 'SIGCONT');
    await this.#until('the volumes of a round', () => saved() >= claims * savedShare);
  }

  /** Names of saved volumes whose records are open, once they are bound; the sidecar is dead. */
  async #openRecords(): Promise<string[]> {
    const { world } = this.#options;
    const uids = new Set((await this.#records()).map(({ claimUid }) => claimUid));
    const volumes = [...world.volumes.values()].filter(({ claimUid }) => uids.has(claimUid));
    await this.#until('bound claims', () => volumes.every(({ claimUid }) => isBound(world, claimUid)));
    this.#kept.push(...volumes.map(({ claimUid, handle }) => ({ claimUid, handle })));
    return volumes.map(({ name }) => name);
  }

  async #decided(): Promise<void> {
    const { timeoutMs } = this.#options.options;
    const endMs = performance.now() + patienceMs + 10 * timeoutMs;
    for (;;) {
      const counts = await this.#count();
      Object.assign(this.report, counts);
      this.state = `the successor decides about ${counts.open}`;
      if (counts.open === 0 || performance.now() > endMs) return;
      if (this.#sidecar?.running() !== true) throw new Error(`the sidecar has ended:\n${this.#sidecar?.log() ?? ''}`);
      await delay(500);
    }
  }

  async #count(): Promise<KeptCounts> {
    const { driver } = this.#options;
    const records = await this.#records();
    const calls = await driver.calls('DeleteVolume');
    const deletions: Deletion[] = calls.map(({ time, ms, request }) => ({
      handle: request.volume_id ?? '',
      endMs: Date.parse(time) + ms,
    }));
    return tally(this.#kept, { records, deletions, stored: new Set(await driver.volumeIds()) });
  }

  async #records(): Promise<OpenRecord[]> {
    const { client, cluster } = this.#options.world;
    return (await insist(() => readJournal(client, cluster.sidecarNamespace))) ?? [];
  }

  /** The sidecar that runs after the kill and before the successor. */
  async #startBetween(): Promise<StartedProcess | undefined> {
    const { mode, other } = this.#options.options;
    if (mode === 'journal-off') return await this.#start(['--intent-journal=off']);
    return mode === 'other' ? await this.#start([], other) : undefined;
  }

  /** @returns once it works. */
  async #start(flags: readonly string[] = [], program = this.#options.options.sidecar): Promise<StartedProcess> {
    const { driver, kubeconfig, world, options } = this.#options;
    const isElected = options.mode === 'election';
    const sidecar = await startSidecar({
      program,
      csiAddress: driver.address,
      kubeconfig,
      namespace: world.cluster.sidecarNamespace,
      hostName: isElected ? this.#pods[0] : undefined,
      flags: [
        `--timeout=${options.timeoutMs}ms`,
        `--worker-threads=${options.claims}`,
        ...(isElected ? election : []),
        ...flags,
      ],
    });
    await this.#until(`"${readyLine}" of ${program}`, () => sidecar.log().includes(readyLine) || !sidecar.running());
    if (!sidecar.running()) throw new Error(`the sidecar does not start:\n${sidecar.log()}`);
    return sidecar;
  }

  async #until(what: string, done: () => boolean | Promise<boolean>): Promise<void> {
    const endMs = performance.now() + patienceMs;
    while (!(await done())) {
      if (this.#sidecar?.running() === false && this.#killed !== this.#sidecar) {
        throw new Error(`${what}: the sidecar has ended:\n${this.#sidecar.log().slice(-2000)}`);
      }
      if (performance.now() > endMs) throw new Error(`${what}: not within ${patienceMs / 1000} s`);
      await delay(10);
    }
  }

  #keepLog(sidecar: StartedProcess | undefined, name: string): void {
    const { logFolder } = this.#options.options;
    if (logFolder === undefined || sidecar === undefined) return;
    appendFileSync(path.join(logFolder, `${name}.log`), `=== until kill ${this.report.kills}\n${sidecar.log()}`);
  }
}

function isBound({ claims }: World, uid: string): boolean {
  return claims.get(uid)?.phase === 'Bound';
}

function claimOf(name: string): PersistentVolumeClaim {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { namespace, name },
    spec: { storageClassName: className, accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } },
  };
}
