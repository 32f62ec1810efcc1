/** Storage and volumes compared. */

/** What of a cluster counts. */
export interface Holdings {
  /** Names of the storage that exists. */
  storage: readonly string[];
  /** Those that are in use: of each PersistentVolume the name of its storage. */
  volumes: readonly { name: string; storage: string; claim: string }[];
  /** What was made for the claim that matters, with the number of the process that made it: 1 is the first. */
  seen?: ReadonlyMap<string, number>;
}

/** What is wrong, one line for each; empty when nothing is. */
export function imbalance({ storage, volumes, seen = new Map() }: Holdings): string[] {
  const used = new Map(volumes.map((volume) => [volume.storage, volume]));
  const there = new Set(storage);
  const unused = storage.filter((name) => !used.has(name));
  const lost = volumes.filter((volume) => !there.has(volume.storage));
  return [
    ...unused.map((name) => leak(name, seen.get(name))),
    ...doubles(unused, seen),
    ...lost.map(
      ({ name, storage: of, claim }) =>
        `loss: the PersistentVolume ${name} of claim ${claim} has the storage ${quoted(of)}, which does not exist`,
    ),
    ...shared(volumes),
  ];
}

function leak(name: string, maker: number | undefined): string {
  const by = maker === undefined ? '' : `, which process ${maker} has made,`;
  return `leak: the storage ${quoted(name)}${by} is in no PersistentVolume`;
}

/** A process that has made storage of another name has not found what was there. */
function doubles(unused: readonly string[], seen: ReadonlyMap<string, number>): string[] {
  if (unused.length === 0 || seen.size < 2) return [];
  const all = [...seen].map(([name, maker]) => `${quoted(name)} by process ${maker}`).join(', ');
  return [`double: storage was made more than once: ${all}`];
}

/** PersistentVolumes of different claims with the same storage destroy each other's data. */
function shared(volumes: Holdings['volumes']): string[] {
  return volumes.flatMap(({ storage, name, claim }, index) => {
    const other = volumes.slice(0, index).find((volume) => volume.storage === storage && volume.claim !== claim);
    if (other === undefined) return [];
    return [`double: the PersistentVolumes ${other.name} and ${name} have the same storage ${quoted(storage)}`];
  });
}

const quoted = (text: string): string => JSON.stringify(text);
