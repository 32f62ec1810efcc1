import type { KeptStorage, SeenVolume, WantedClaim } from './count.ts';
import type { ClaimLoad } from './claim-load.ts';
import { deleteClaimOf, importStorage, moveAway, retain } from './kept-volumes.ts';
import type { Random } from './random.ts';
import { insist, type World } from './world.ts';
import { type PersistentVolume, persistentVolumes } from '../../src/provision/objects.ts';

/**
 * What becomes of a volume.
 *
 * - `retain`: set to Retain.
 * - `move`: and then claim and PersistentVolume are deleted.
 * - `rename`: and then the storage is imported under another name.
 * - `share`: imported under another name, and only then its claim is deleted; the policy stays. Other sidecars delete such storage.
 * - `delete`: its claim is deleted.
 */
const ways = ['retain', 'move', 'rename', 'share', 'delete'] as const;
type Way = (typeof ways)[number];

/** The youngest volumes are picked from: their records may be open still. */
const youngest = 10;

/** An administrator who keeps the storage of volumes on purpose, at any moment. */
export class Administrator {
  /** What must not be deleted any more. */
  readonly kept: KeptStorage[] = [];
  /** Names of imports that came too late: the storage was about to be deleted already. */
  readonly withdrawn = new Set<string>();
  readonly #world: World;
  readonly #load: ClaimLoad;
  readonly #random: Random;
  readonly #ways: readonly Way[];
  /** UIDs of the claims that were taken. */
  readonly #taken = new Set<string>();
  #imports = 0;

  constructor({
    world,
    load,
    random,
    hasOther,
  }: {
    world: World;
    load: ClaimLoad;
    random: Random;
    /** Another sidecar runs now and then. */
    hasOther: boolean;
  }) {
    this.#world = world;
    this.#load = load;
    this.#random = random;
    this.#ways = ways.filter((way) => way !== 'share' || !hasOther);
  }

  /** Does something with up to so many of the youngest bound volumes. */
  async act(max: number): Promise<void> {
    const work: Promise<void>[] = [];
    for (let i = 0; i < max; i++) {
      const [way, place] = [this.#random.pick(this.#ways), this.#random.next()];
      const bound = this.#bound();
      const found = bound[Math.floor(place * bound.length)];
      if (found === undefined) continue;
      this.#taken.add(found.volume.claimUid);
      work.push(this.#handle(found, way));
    }
    await Promise.all(work);
  }

  #bound(): { claim: WantedClaim; volume: SeenVolume }[] {
    const { claims, volumes } = this.#world;
    const wanted = new Map(
      this.#load.created
        .filter(({ uid, unwantedMs }) => unwantedMs === undefined && !this.#taken.has(uid ?? ''))
        .map((claim) => [claim.uid, claim]),
    );
    return [...volumes.values()]
      .toSorted((a, b) => b.sinceMs - a.sinceMs)
      .flatMap((volume) => {
        const claim = wanted.get(volume.claimUid);
        const found = claims.get(volume.claimUid);
        const isBound = found?.phase === 'Bound' && found.volumeName === volume.name;
        return claim !== undefined && isBound && volume.policy === 'Delete' ? [{ claim, volume }] : [];
      })
      .slice(0, youngest);
  }

  async #handle(
    { claim, volume: { name, handle } }: { claim: WantedClaim; volume: SeenVolume },
    way: Way,
  ): Promise<void> {
    const { client } = this.#world;
    if (way === 'share' || way === 'delete') {
      const volume = await insist(() => client.get<PersistentVolume>(persistentVolumes, { name }), ['NotFound']);
      if (volume === undefined || volume.spec.claimRef?.uid !== claim.uid) return;
      const imported = `imported-${this.#imports++}`;
      if (way === 'share') await importStorage(client, volume, imported);
      if (claim.unwantedMs !== undefined) {
        // its claim was deleted meanwhile: the storage may be gone
        this.withdrawn.add(imported);
        await insist(() => client.delete(persistentVolumes, { name: imported }), ['NotFound']);
        return;
      }
      if (way === 'share') this.kept.push({ handle, sinceMs: Date.now() });
      claim.unwantedMs = Date.now();
      await deleteClaimOf(client, volume);
      return;
    }
    const volume = await retain(client, name);
    if (claim.unwantedMs !== undefined || volume === undefined || volume.spec.claimRef?.uid !== claim.uid) return;
    this.kept.push({ handle, sinceMs: Date.now() });
    if (way === 'retain') return;
    claim.unwantedMs = Date.now();
    await moveAway(client, volume);
    if (way === 'rename') await importStorage(client, volume, `imported-${this.#imports++}`);
  }
}
