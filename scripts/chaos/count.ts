/** What is wrong in the end, counted from the outside: claims, volumes and records here, the driver's volumes there. */

/** A claim that was created, and what was asked of it. */
export interface WantedClaim {
  namespace: string;
  name: string;
  /** Undefined until the API server has responded. */
  uid: string | undefined;
  /** Unix time at which its deletion was asked for; undefined: it is wanted to the end. */
  unwantedMs: number | undefined;
}

/** A claim as it is in the API. */
export interface FoundClaim {
  uid: string;
  phase: string;
  volumeName: string;
}

/** A PersistentVolume that was there at some time. */
export interface SeenVolume {
  name: string;
  handle: string;
  claimUid: string;
  policy: string;
  phase: string;
  /** Unix time at which it was first seen. */
  sinceMs: number;
  /** Whether it was still there in the end. */
  exists: boolean;
}

/** A volume that the driver has. */
export interface StoredVolume {
  id: string;
  /** Of the CreateVolume request. */
  name: string;
}

/** A record of the intent journal. */
export interface OpenRecord {
  claimUid: string;
  volumeName: string;
  handle: string | undefined;
  phase: string;
  /** Why it is stuck; undefined: it is not. */
  reason: string | undefined;
  problem: string | undefined;
}

/** A DeleteVolume call that reached the driver. */
export interface Deletion {
  handle: string;
  /** Unix time of its end. */
  endMs: number;
}

/** Storage that an administrator keeps on purpose. */
export interface KeptStorage {
  handle: string;
  /** Unix time from which on it must not be deleted. */
  sinceMs: number;
}

export interface Outcome {
  claims: readonly WantedClaim[];
  found: readonly FoundClaim[];
  volumes: readonly SeenVolume[];
  stored: readonly StoredVolume[];
  records: readonly OpenRecord[];
  deletions: readonly Deletion[];
  kept: readonly KeptStorage[];
}

/** One line for each case. */
export interface Findings {
  /** Volumes of the driver that no PersistentVolume and no record of the journal refers to, and that nobody keeps. */
  leaked: string[];
  /** PersistentVolumes whose storage is gone. */
  lost: string[];
  /** Storage that was deleted, or was to be, although somebody may use it or keeps it on purpose. */
  destroyed: string[];
  /** Two volumes for one claim, or one volume for two claims. */
  doubled: string[];
  /** What should have come to an end and has not: claims to be bound, volumes to be deleted, records to be closed. */
  pending: string[];
  /** Records that are stuck as their storage may be kept on purpose. */
  unproved: string[];
  /** Records that are stuck for another reason. */
  stuck: string[];
}

/** Whether nothing is wrong; what is only reported is allowed. */
export function isClean({ leaked, lost, destroyed, doubled, pending }: Findings): boolean {
  return [leaked, lost, destroyed, doubled, pending].every((list) => list.length === 0);
}

/** How many records were reported for the same reason; names are left out. */
export function reasons(reported: readonly string[]): Map<string, number> {
  const numbers = new Map<string, number>();
  for (const line of reported) {
    const reason = line
      .slice(line.indexOf(': ') + 2)
      .replaceAll(/"[^"]*"/g, '"..."')
      .replaceAll(/\b[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}\b/g, '...')
      .replaceAll(/\bchaos-\d+/g, '...');
    numbers.set(reason, (numbers.get(reason) ?? 0) + 1);
  }
  return numbers;
}

export function count(outcome: Outcome): Findings {
  return {
    leaked: leaked(outcome),
    lost: missing(outcome),
    destroyed: [...wronglyDeleted(outcome), ...keptAndGone(outcome)],
    doubled: doubled(outcome),
    pending: [...unbound(outcome), ...undeleted(outcome), ...unclosed(outcome)],
    unproved: reported(outcome, isUnproved),
    stuck: reported(outcome, (record) => record.phase === 'stuck' && !isUnproved(record)),
  };
}

function isUnproved({ phase, reason }: OpenRecord): boolean {
  return phase === 'stuck' && reason === 'unproved';
}

function reported({ records }: Outcome, isWanted: (record: OpenRecord) => boolean): string[] {
  return records.filter(isWanted).map(({ volumeName, problem }) => `${volumeName}: ${problem ?? 'no reason given'}`);
}

const existing = ({ volumes }: Outcome): SeenVolume[] => volumes.filter(({ exists }) => exists);

function leaked(outcome: Outcome): string[] {
  const held = new Set(existing(outcome).map(({ handle }) => handle));
  const recorded = new Set(outcome.records.flatMap(({ volumeName, handle }) => [volumeName, handle]));
  const kept = new Set(outcome.kept.map(({ handle }) => handle));
  return outcome.stored
    .filter(({ id, name }) => !held.has(id) && !kept.has(id) && !recorded.has(id) && !recorded.has(name))
    .map(({ id, name }) => `${name} is ${id} at the driver, and nothing refers to it`);
}

function missing(outcome: Outcome): string[] {
  const stored = new Set(outcome.stored.map(({ id }) => id));
  return existing(outcome)
    .filter((volume) => !stored.has(volume.handle) && !isOver(volume))
    .map(({ name, phase, handle }) => `${name} is ${phase}, and the driver has no ${handle}`);
}

function wronglyDeleted({ claims, volumes, deletions, kept }: Outcome): string[] {
  const isKept = new Set(kept.map(({ handle }) => handle));
  const unwantedMs = new Map(claims.map((claim) => [claim.uid, claim.unwantedMs ?? Infinity]));
  const byHandle = Map.groupBy(volumes, ({ handle }) => handle);
  return deletions.flatMap(({ handle, endMs }) =>
    (isKept.has(handle) ? [] : (byHandle.get(handle) ?? []))
      .filter(({ sinceMs }) => sinceMs < endMs)
      .filter(({ policy, claimUid }) => policy === 'Retain' || (unwantedMs.get(claimUid) ?? 0) > endMs)
      .map(({ name }) => `the deletion of ${handle} was sent although ${name} held it`),
  );
}

function keptAndGone({ kept, stored, deletions }: Outcome): string[] {
  const ids = new Set(stored.map(({ id }) => id));
  const lastMs = new Map(deletions.map(({ handle, endMs }) => [handle, endMs]));
  return kept
    .filter(({ handle, sinceMs }) => !ids.has(handle) || (lastMs.get(handle) ?? 0) > sinceMs)
    .map(({ handle }) => `${handle} was kept on purpose, and its deletion was sent`);
}

function doubled(outcome: Outcome): string[] {
  // one without a claim was imported on purpose
  const volumes = existing(outcome).filter(({ claimUid }) => claimUid !== '');
  // a claim whose former volume is only reported gets another one under another name
  const unproved = new Set(outcome.records.filter(isUnproved).map(({ volumeName }) => volumeName));
  const holders = new Map(volumes.map(({ handle, claimUid }) => [handle, claimUid]));
  const ownerOf = ({ id, name }: StoredVolume): string =>
    holders.get(id) ??
    outcome.claims.find(({ uid }) => uid !== undefined && name.endsWith(uid))?.uid ??
    `no claim: ${id}`;
  return [
    ...[
      ...Map.groupBy(
        outcome.stored.filter(({ name }) => !unproved.has(name)),
        ownerOf,
      ),
    ]
      .filter(([, stored]) => stored.length > 1)
      .map(([uid, stored]) => `claim ${uid} has ${stored.map(({ name, id }) => `${name} (${id})`).join(' and ')}`),
    ...[...Map.groupBy(volumes, ({ handle }) => handle)]
      .filter(([, sharing]) => sharing.length > 1)
      .map(([handle, sharing]) => `${handle} belongs to ${sharing.map(({ name }) => name).join(' and ')}`),
  ];
}

/**
 * UIDs of the claims with a stuck record and a short volume name, which is taken to be that of storage with other parameters: they stay
 * Pending until an operator decides.
 */
function withTakenName({ records }: Outcome): ReadonlySet<string> {
  const taken = records.filter(
    (record) => record.phase === 'stuck' && !isUnproved(record) && !record.volumeName.includes(record.claimUid),
  );
  return new Set(taken.map(({ claimUid }) => claimUid));
}

function unbound(outcome: Outcome): string[] {
  const taken = withTakenName(outcome);
  const records = new Map(outcome.records.map((record) => [record.claimUid, record]));
  const found = new Map(outcome.found.map((claim) => [claim.uid, claim]));
  const volumes = new Map(existing(outcome).map((volume) => [volume.name, volume]));
  return outcome.claims
    .filter(({ unwantedMs, uid = '' }) => unwantedMs === undefined && !taken.has(uid))
    .flatMap(({ namespace, name, uid = '' }) => {
      const claim = found.get(uid);
      const what = `claim ${namespace}/${name} (${uid})`;
      if (claim === undefined) return [`${what} is not there`];
      if (claim.phase !== 'Bound') return [`${what} is ${claim.phase}, ${recordText(records.get(uid))}`];
      return volumes.get(claim.volumeName)?.claimUid === uid
        ? []
        : [`${what} is bound to a volume that is not its own`];
    });
}

function recordText(record: OpenRecord | undefined): string {
  if (record === undefined) return 'without a record';
  const { phase, handle, reason, problem } = record;
  return `its record is in the phase ${phase}, handle ${handle ?? 'unknown'}${reason === undefined ? '' : `, ${reason}: ${problem ?? ''}`}`;
}

/** Whether the volume waits for nothing but its deletion. */
function isOver({ phase, policy }: SeenVolume): boolean {
  return policy === 'Delete' && (phase === 'Released' || phase === 'Failed');
}

function undeleted(outcome: Outcome): string[] {
  const alive = new Set(outcome.found.map(({ uid }) => uid));
  const volumes = existing(outcome);
  const imported = new Set(volumes.filter(({ claimUid }) => claimUid === '').map(({ handle }) => handle));
  return volumes
    .filter(({ policy, claimUid, handle }) => policy === 'Delete' && !alive.has(claimUid) && !imported.has(handle))
    .map(({ name, phase }) => `${name} is still there, ${phase}, and its claim is gone`);
}

function unclosed({ records }: Outcome): string[] {
  return records
    .filter(({ phase }) => phase !== 'stuck')
    .map(({ volumeName, phase }) => `the record of ${volumeName} is still open, in the phase ${phase}`);
}
