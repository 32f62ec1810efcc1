import { setTimeout as delay } from 'node:timers/promises';
import { leases, type Lease, microTime } from '../../src/kube/election/lease-record.ts';
import type { Administrator } from './administrator.ts';
import type { ClaimLoad } from './claim-load.ts';
import type { WantedClaim } from './count.ts';
import { roundMs } from './disturb.ts';
import { readJournal } from './journal-records.ts';
import type { ChaosOptions, Disturbance } from './options.ts';
import type { Random } from './random.ts';
import { type Life, plainLife, type Sidecars } from './sidecars.ts';
import { insist, type World } from './world.ts';

/** Claims that nobody disturbs are bound within that, also on a busy machine, in milliseconds. */
const boundWithinMs = 600_000;

/**
 * Share of the lives that are longer than 1.5 times --timeout, for which nothing is deleted after a take-over: only such a process
 * undoes volumes. With too few of them, the records of all deleted claims would still be open whenever the API server forgets its
 * history.
 */
const longLives = 0.2;
/**
 * Share of the lives that last until the volumes of all deleted claims are undone, at most `restMs`: nowhere is a sidecar killed every
 * few seconds for an hour without ever coming to rest. Records that are still open when the API server forgets its history end as
 * unproved, so the smaller this share is, the more of them the report has.
 */
const restedLives = 0.25;
const restMs = 20_000;

/** The lives of the sidecar, one after the other. */
export class Rounds {
  readonly #options: ChaosOptions;
  readonly #world: World;
  readonly #sidecars: Sidecars;
  readonly #load: ClaimLoad;
  readonly #administrator: Administrator;
  readonly #random: Random;
  readonly #startedMs = performance.now();
  #kills = 0;
  /** Those while nothing else may happen. */
  #moreKills = 0;
  #life: Life;
  /** How often the API server was restarted while the sidecar was down. */
  #apiDowns = 0;
  /** While true names are made as before. */
  #pinned = false;

  constructor(options: {
    options: ChaosOptions;
    world: World;
    sidecars: Sidecars;
    load: ClaimLoad;
    administrator: Administrator;
    random: Random;
  }) {
    this.#options = options.options;
    this.#world = options.world;
    this.#sidecars = options.sidecars;
    this.#load = options.load;
    this.#administrator = options.administrator;
    this.#random = options.random;
    this.#life = { ...plainLife, journal: this.#options.journal };
  }

  /** SIGKILLs so far that count towards those that were asked for. */
  get kills(): number {
    return this.#kills;
  }

  /** @returns the number of kills. */
  async run(signal: AbortSignal): Promise<number> {
    const { kills, claims } = this.#options;
    await this.#sidecars.start(this.#life);
    let claimed = 0;
    const { journal, other } = this.#options;
    const betweens: Life[] = [
      ...(this.#has('back') ? [{ ...plainLife, journal: 'off' }] : []),
      ...(this.#has('other') ? [{ ...plainLife, journal, program: other }] : []),
    ];
    let backAt = betweens.length > 0 ? Math.max(2, Math.floor(Math.min(kills * 0.4, 60))) : Infinity;
    while (this.#kills < kills && !this.#late() && !signal.aborted) {
      const due = Math.ceil((claims * (this.#kills + 1)) / kills);
      const number = Math.max(0, due - claimed);
      claimed = Math.max(claimed, due);
      await this.#round((lifeMs) => this.#load.create(number, lifeMs + 200));
      if (this.#kills >= backAt) {
        backAt = this.#kills + 100;
        for (const between of betweens) await this.#goBack(between);
      }
    }
    return this.#kills + this.#moreKills;
  }

  #has(name: Disturbance): boolean {
    return this.#options.disturbances.has(name);
  }

  #late(): boolean {
    return performance.now() - this.#startedMs > this.#options.maxMs;
  }

  /** Waits, ends the sidecar in one way or another, and starts the next. Claims come while it works, mostly. */
  async #round(createClaims: (lifeMs: number) => void): Promise<void> {
    const random = this.#random;
    const early = random.chance(0.1);
    const lifeMs = early
      ? random.between(0, 400)
      : random.chance(longLives)
        ? random.between(2500, 5000)
        : random.between(50, 900);
    const way = random.next();
    const togetherMs = random.between(100, 1500);
    if (!early) await this.#sidecars.working();
    createClaims(lifeMs);
    await delay(lifeMs);
    if (random.chance(restedLives)) await this.#rest();
    this.#changeLife();
    if (way < 0.1 && this.#has('overlap')) {
      const signal = random.chance(0.5) ? 'SIGTERM' : 'SIGKILL';
      this.#countKill(await this.#sidecars.replace(this.#life, togetherMs, signal), signal);
      return;
    }
    if (way < 0.13 && this.#has('freeze')) {
      await this.#sidecars.freeze(this.#life, togetherMs * 2, this.#options.election);
      return;
    }
    if (way < 0.16 && this.#has('lease')) await this.#takeLease();
    if (way > 0.87 && way < 0.91 && this.#has('pause')) {
      const meanwhile = (): Promise<void> => (this.#has('admin') ? this.#administrator.act(2) : Promise.resolve());
      await this.#sidecars.pause(this.#life, 3000 + togetherMs, meanwhile);
      return;
    }
    const signal = way > 0.92 && this.#has('terminate') ? 'SIGTERM' : 'SIGKILL';
    this.#countKill(await this.#sidecars.end(signal), signal);
    await this.#whileDown();
    await this.#sidecars.start(this.#life);
  }

  async #whileDown(): Promise<void> {
    const random = this.#random;
    const [adminDraw, apiDraw] = [random.next(), random.next()];
    if (adminDraw < 0.3 && this.#has('admin')) await this.#administrator.act(3);
    const { kills, apiRestartMs } = this.#options;
    const isOverdue = this.#apiDowns === 0 && this.#kills >= kills / 2;
    if (!this.#has('api-down') || !(isOverdue || apiDraw < (2 * roundMs) / apiRestartMs)) return;
    this.#apiDowns++;
    await this.#world.restartApi();
  }

  /** Until no record is open of a claim that is gone, but those that an operator has to close. */
  async #rest(): Promise<void> {
    const { claims, client, cluster } = this.#world;
    const endMs = performance.now() + restMs;
    while (performance.now() < endMs) {
      const records = await insist(() => readJournal(client, cluster.sidecarNamespace));
      const open = records?.filter(({ phase, claimUid }) => phase !== 'stuck' && !claims.has(claimUid));
      if (open?.length === 0) return;
      await delay(500);
    }
  }

  #countKill(ran: boolean, signal: NodeJS.Signals): void {
    if (ran && signal === 'SIGKILL') this.#kills++;
  }

  #changeLife(): void {
    const random = this.#random;
    const [prefixDraw, lengthDraw] = [random.next(), random.next()];
    if (this.#pinned) return;
    this.#life = {
      ...this.#life,
      prefix: this.#has('prefix') && prefixDraw < 0.2 ? 'vol' : plainLife.prefix,
      uuidLength: this.#has('collide') && lengthDraw < 0.02 ? 2 : plainLife.uuidLength,
    };
  }

  /** Somebody else holds the lease for a moment: the leader must stop. */
  async #takeLease(): Promise<void> {
    const { client, cluster } = this.#world;
    const found = await insist(() => client.list<Lease>(leases, { namespace: cluster.sidecarNamespace }));
    const held = found?.find(({ spec }) => spec?.holderIdentity?.startsWith('chaos-'));
    if (held === undefined) return;
    const nowText = microTime(Date.now());
    const spec = { ...held.spec, holderIdentity: 'somebody-else', leaseDurationSeconds: 1, renewTime: nowText };
    await insist(() => client.update(leases, { ...held, spec }), ['Conflict']);
    await delay(1000);
  }

  /**
   * Some lives without the journal, as after a return to a program that has none. What such a program begins and does not
   * finish leaks by nature once the claim goes or its volume gets another name, so neither happens until all is bound again.
   * The administrator takes only claims that are bound.
   */
  async #goBack(between: Life): Promise<void> {
    const { journal } = this.#options;
    this.#load.paused = true;
    this.#pinned = true;
    this.#life = { ...plainLife, journal };
    await this.#untilBound();
    await this.#load.giveUp(this.#stuckClaims());
    this.#load.create(10, 900);
    await delay(600);
    await this.#sidecars.end('SIGKILL');
    this.#life = between;
    await this.#sidecars.start(this.#life);
    await this.#sidecars.working();
    this.#load.create(10, 900);
    if (this.#has('admin')) await this.#administrator.act(5);
    await delay(this.#random.between(1000, 3000));
    await this.#sidecars.end('SIGTERM');
    this.#life = { ...plainLife, journal };
    await this.#sidecars.start(this.#life);
    await this.#untilBound();
    this.#pinned = false;
    this.#load.paused = false;
  }

  /** Goes on with kills until every claim that is wanted is bound, or only an operator can help it. */
  async #untilBound(): Promise<void> {
    const endMs = performance.now() + boundWithinMs;
    for (let waiting = await this.#unbound(); waiting.length > 0; waiting = await this.#unbound()) {
      if (performance.now() > endMs) {
        throw new Error(
          `claims were not bound within 10 minutes, without a deletion or a change:\n${waiting.map((claim) => JSON.stringify(claim)).join('\n')}`,
        );
      }
      await this.#sidecars.working();
      await delay(this.#random.between(1500, 3000));
      if (this.#random.chance(0.3)) {
        if (await this.#sidecars.end('SIGKILL')) this.#moreKills++;
        await this.#sidecars.start(this.#life);
      }
    }
  }

  /** Claims whose record is stuck: a program without the journal would begin a volume of another name for them. */
  #stuckClaims(): WantedClaim[] {
    const { claims } = this.#world;
    return this.#load.created.filter(({ uid = '' }) => claims.has(uid) && claims.get(uid)?.phase !== 'Bound');
  }

  async #unbound(): Promise<WantedClaim[]> {
    const { claims, client, cluster } = this.#world;
    const records = await insist(() => readJournal(client, cluster.sidecarNamespace));
    const stuck = new Set(
      records
        ?.filter(({ phase, reason }) => phase === 'stuck' && reason !== 'unproved')
        .map(({ claimUid }) => claimUid),
    );
    return this.#load.created.filter(({ uid = '', unwantedMs }) => {
      const phase = claims.get(uid)?.phase;
      return phase !== 'Bound' && (unwantedMs === undefined || phase !== undefined) && !stuck.has(uid);
    });
  }
}
