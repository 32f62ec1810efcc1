import { setTimeout as delay } from 'node:timers/promises';
import type { DriverProcess } from '../../test/support/driver-process.ts';
import { inParallel, logFile, until } from '../../test/support/stage.ts';
import { showing } from '../terminal-progress.ts';
import { count, type Deletion, type Findings, type OpenRecord } from './count.ts';
import { deletionsOf } from './driver.ts';
import { readJournal } from './journal-records.ts';
import type { KeptOptions } from './kept-options.ts';
import { moveAway, retain } from './kept-volumes.ts';
import { type Life, plainLife, Sidecars } from './sidecars.ts';
import { insist, openWorld, type World } from './world.ts';

/** A volume that was set to Retain, and whose claim and PersistentVolume were deleted. */
export interface KeptVolume {
  claimUid: string;
  handle: string;
}

export interface KeptReport {
  /** Records of saved volumes that were open at the kills. */
  records: number;
  kills: number;
  /** How long the sidecar was away, the longest time. */
  awayMs: number;
  /** From the start of a successor until it had decided about the last record, the longest time. */
  decidedMs: number;
  /** What became of the storage that was kept: destroyed, and its records unproved, stuck, or pending. */
  findings: Findings;
}

const className = 'kept';
/** Each round kills when this share of its claims has a volume. */
const savedShare = 0.6;
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
  await using world = await openWorld(options.cluster, logFile(options.logFolder, 'sidecars.log'));
  const driver = await world.startDriver('kept.csi.example.com');
  await insist(() => world.createClass(className, driver.driverName));
  const story = new KeptStory(options, world, driver);
  const { report } = story;
  while (report.records < options.records) {
    await showing(
      () => `round ${report.kills + 1}: ${story.state}, ${report.records} of ${options.records} records`,
      () => story.round(),
    );
    const { destroyed, unproved, stuck, pending } = report.findings;
    say(
      `after ${report.kills} kills: ${report.records} records, ${destroyed.length} destroyed, ${unproved.length} unproved, ${stuck.length} stuck, ${pending.length} open`,
    );
  }
  return report;
}

/** Compares what was kept with what the driver was asked for and has, and with the records that are left. */
export function keptFindings(
  kept: readonly KeptVolume[],
  {
    records,
    deletions,
    stored,
  }: { records: readonly OpenRecord[]; deletions: readonly Deletion[]; stored: readonly string[] },
): Findings {
  const uids = new Set(kept.map(({ claimUid }) => claimUid));
  return count({
    claims: [],
    found: [],
    volumes: [],
    stored: stored.map((id) => ({ id, name: id })),
    records: records.filter(({ claimUid }) => uids.has(claimUid)),
    deletions,
    kept: kept.map(({ handle }) => ({ handle, sinceMs: 0 })),
  });
}

class KeptStory {
  readonly report: KeptReport;
  state = '';
  readonly #options: KeptOptions;
  readonly #world: World;
  readonly #driver: DriverProcess;
  readonly #sidecars: Sidecars;
  readonly #kept: KeptVolume[] = [];
  #claims = 0;

  constructor(options: KeptOptions, world: World, driver: DriverProcess) {
    this.#options = options;
    this.#world = world;
    this.#driver = driver;
    const isElected = options.mode === 'election';
    this.#sidecars = new Sidecars(world, {
      csiAddress: driver.address,
      flags: [`--timeout=${options.timeoutMs}ms`, `--worker-threads=${options.claims}`, ...(isElected ? election : [])],
      pods: isElected ? 'in turn' : 'one',
    });
    const findings = keptFindings([], { records: [], deletions: [], stored: [] });
    this.report = { records: 0, kills: 0, awayMs: 0, decidedMs: 0, findings };
  }

  /** Claims become volumes, the sidecar is killed, volumes are moved away, and the next sidecar decides about their records. */
  async round(): Promise<void> {
    const [sidecars, { client }, { mode, other, quietMs }] = [this.#sidecars, this.#world, this.#options];
    if (!sidecars.running()) await this.#start();
    this.state = 'nothing happens';
    await delay(quietMs);
    await this.#saveVolumes();
    await sidecars.end('SIGKILL');
    const killedMs = performance.now();
    this.report.kills++;
    const names = await this.#openRecords();
    this.report.records += names.length;

    this.state = `${names.length} volumes are moved away`;
    if (mode === 'journal-off') await this.#start({ journal: 'off' });
    if (mode === 'other') await this.#start({ program: other });
    await inParallel(names.length, 20, async (index) => {
      const volume = await retain(client, names[index] ?? '');
      if (volume !== undefined) await moveAway(client, volume);
    });
    await sidecars.end('SIGTERM');

    this.state = 'the successor decides';
    if (mode === 'election') sidecars.swap();
    this.report.awayMs = Math.max(this.report.awayMs, performance.now() - killedMs);
    const startedMs = performance.now();
    await this.#start();
    await this.#decided();
    this.report.decidedMs = Math.max(this.report.decidedMs, performance.now() - startedMs);
  }

  /** Creates the claims of a round, and returns while their volumes are being saved. */
  async #saveVolumes(): Promise<void> {
    const { claims } = this.#options;
    const { volumes } = this.#world;
    const { pid } = this.#driver;
    const uids = new Set<string>();
    this.state = 'claims are created';
    // all volumes are created at once: records that are open together are closed together, some time after that
    process.kill(pid, 'SIGSTOP');
    await inParallel(claims, 50, async () => {
      const name = `claim-${this.#claims++}`;
      const claim = await insist(() => this.#world.createClaim({ name }, className, { size: '1Mi' }));
      uids.add(claim?.metadata.uid ?? '');
    });
    this.state = 'records are opened';
    const recorded = async (): Promise<OpenRecord[]> =>
      (await this.#records()).filter(({ claimUid }) => uids.has(claimUid));
    await this.#until('the records of a round', async () => (await recorded()).length === claims);
    process.kill(pid, 'SIGCONT');
    const saved = (): number => [...volumes.values()].filter(({ claimUid }) => uids.has(claimUid)).length;
    await this.#until('the volumes of a round', () => saved() >= claims * savedShare);
  }

  /** Names of saved volumes whose records are open, once they are bound; the sidecar is dead. */
  async #openRecords(): Promise<string[]> {
    const { claims, volumes } = this.#world;
    const uids = new Set((await this.#records()).map(({ claimUid }) => claimUid));
    const saved = [...volumes.values()].filter(({ claimUid }) => uids.has(claimUid));
    const areBound = (): boolean => saved.every(({ claimUid }) => claims.get(claimUid)?.phase === 'Bound');
    await until('bound claims', areBound, patienceMs);
    this.#kept.push(...saved);
    return saved.map(({ name }) => name);
  }

  async #decided(): Promise<void> {
    const endMs = performance.now() + patienceMs + 10 * this.#options.timeoutMs;
    for (;;) {
      this.report.findings = keptFindings(this.#kept, {
        records: await this.#records(),
        deletions: await deletionsOf(this.#driver),
        stored: await this.#driver.volumeIds(),
      });
      const open = this.report.findings.pending.length;
      this.state = `the successor decides about ${open}`;
      if (open === 0 || performance.now() > endMs) return;
      this.#mustRun('the decisions');
      await delay(500);
    }
  }

  async #records(): Promise<OpenRecord[]> {
    const { client, cluster } = this.#world;
    return (await insist(() => readJournal(client, cluster.sidecarNamespace))) ?? [];
  }

  /** @returns once it works. */
  async #start(life: Partial<Life> = {}): Promise<void> {
    await this.#sidecars.start({ ...plainLife, journal: undefined, ...life });
    if (!(await this.#sidecars.working(patienceMs)))
      throw new Error(`the sidecar does not start:\n${this.#sidecars.log()}`);
  }

  async #until(what: string, done: () => boolean | Promise<boolean>): Promise<void> {
    await until(
      what,
      () => {
        this.#mustRun(what);
        return done();
      },
      patienceMs,
    );
  }

  #mustRun(meanwhile: string): void {
    if (!this.#sidecars.running())
      throw new Error(`${meanwhile}: the sidecar has ended:\n${this.#sidecars.log().slice(-2000)}`);
  }
}
