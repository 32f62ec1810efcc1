/** Compares what was observed with two sidecars; differences that are meant are in docs/differences.md. */

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

export interface Intended {
  /** Number of the row `X…`; undefined: a paragraph below the table. */
  row?: number;
  what: string;
  matches: (difference: Difference) => boolean;
}

const intended: readonly Intended[] = [
  {
    row: 12,
    what: 'the Leases of the intent journal',
    matches: ({ aspect, path, peer }) => aspect === 'leases' && /-journal-\d+$/.test(path) && peer === undefined,
  },
  {
    row: 12,
    what: 'a volume whose claim is gone is deleted after a crash',
    matches: ({ step, aspect, ours, peer }) =>
      (aspect === 'storage' && ours === 'deleted' && peer === 'left behind') ||
      (step === 'calls: <volume of gone>' && (aspect === 'counts' || peer === undefined)),
  },
  {
    row: 2,
    what: 'SIGTERM ends the process with code 0, and the lease is released',
    matches: ({ step, ours }) => step === 'stopped' && (ours === 'exit code 0' || ours === 'released'),
  },
  {
    row: 4,
    what: 'one DeleteVolume',
    matches: ({ aspect, path, ours, peer }) => aspect === 'counts' && path === 'DeleteVolume' && isFewer(ours, peer),
  },
  {
    row: 5,
    what: 'no second CreateVolume after success',
    matches: ({ aspect, path, ours, peer }) => aspect === 'counts' && path === 'CreateVolume' && isFewer(ours, peer),
  },
];

/** The first entry that explains a difference. */
export function intendedAs(difference: Difference): Intended | undefined {
  return intended.find(({ matches }) => matches(difference));
}

function isFewer(ours: unknown, peer: unknown): boolean {
  return typeof ours === 'number' && typeof peer === 'number' && ours >= 1 && ours < peer;
}

/** Numbers of all rows that are named. */
export function intendedRows(): number[] {
  return intended.flatMap(({ row }) => row ?? []);
}

/** A line for each step and aspect, with its differences below; those that are not meant have a mark. */
export function tableText(ours: Results, peer: Results, found: readonly Difference[]): string {
  const steps = [...new Set([...ours.keys(), ...peer.keys()])];
  const lines = steps.map((step) => {
    const aspects = [...new Set([ours, peer].flatMap((results) => Object.keys(results.get(step) ?? {})))];
    const own = found.filter((each) => each.step === step);
    const words = aspects.map((aspect) => `${aspect} ${verdict(own.filter((each) => each.aspect === aspect))}`);
    return [`${step.padEnd(32)}${words.join(', ')}`, ...own.map((each) => `    ${differenceText(each)}`)].join('\n');
  });
  return lines.join('\n');
}

function verdict(found: readonly Difference[]): string {
  if (found.length === 0) return 'same';
  return found.every((each) => intendedAs(each) !== undefined) ? 'differs as meant' : 'DIFFERS';
}

function differenceText(difference: Difference): string {
  const { aspect, path, ours, peer } = difference;
  const meant = intendedAs(difference);
  const mark = meant === undefined ? '! ' : '  ';
  const why = meant === undefined ? '' : ` (${meant.row === undefined ? '' : `X${meant.row}: `}${meant.what})`;
  return `${mark}${[aspect, path].filter(Boolean).join(' ')}: ours ${text(ours)}, peer ${text(peer)}${why}`;
}

function text(value: unknown): string {
  return value === undefined ? 'none' : JSON.stringify(value);
}

/** The differences that nothing explains. */
export function unexplained(found: readonly Difference[]): Difference[] {
  return found.filter((each) => intendedAs(each) === undefined);
}
