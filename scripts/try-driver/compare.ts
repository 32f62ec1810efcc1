/** Compares what was observed with two sidecars. */

/** What one step of the story showed, by aspect such as `volume` or `events`; normalised. */
export type StepResult = Record<string, unknown>;

/** The results of one sidecar, by step. */
export type Results = ReadonlyMap<string, StepResult>;

export interface Difference {
  step: string;
  aspect: string;
  /** Within the aspect, such as `spec.csi.fsType`; empty: the whole. */
  path: string;
  /** `undefined`: not there. */
  ours: unknown;
  peer: unknown;
}

/** All differences, in the order of ours. */
export function differences(ours: Results, peer: Results): Difference[] {
  const steps = new Set([...ours.keys(), ...peer.keys()]);
  return [...steps].flatMap((step) => stepDifferences(step, ours.get(step) ?? {}, peer.get(step) ?? {}));
}

function stepDifferences(step: string, ours: StepResult, peer: StepResult): Difference[] {
  const aspects = new Set([...Object.keys(ours), ...Object.keys(peer)]);
  return [...aspects].flatMap((aspect) =>
    deepDifferences(ours[aspect], peer[aspect]).map((difference) => ({ step, aspect, ...difference })),
  );
}

type Deep = Pick<Difference, 'path' | 'ours' | 'peer'>;

function deepDifferences(ours: unknown, peer: unknown, path = ''): Deep[] {
  if (Array.isArray(ours) && Array.isArray(peer)) return listDifferences(ours, peer, path);
  if (isRecord(ours) && isRecord(peer)) {
    const keys = new Set([...Object.keys(ours), ...Object.keys(peer)]);
    return [...keys].flatMap((key) => deepDifferences(ours[key], peer[key], path === '' ? key : `${path}.${key}`));
  }
  return ours === peer ? [] : [{ path, ours, peer }];
}

/** The order counts: of requests, and of topologies in them. */
function listDifferences(ours: readonly unknown[], peer: readonly unknown[], path: string): Deep[] {
  const length = Math.max(ours.length, peer.length);
  return Array.from({ length }, (_, index) => index).flatMap((index) =>
    deepDifferences(ours[index], peer[index], `${path}[${index}]`),
  );
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
