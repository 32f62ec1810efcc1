/** The steps at which the suite kills a provisioner, and how each is recognised among its requests. */
import type { ApiWrite, Stop } from './api-gate.ts';
import { recordKey } from './open-records.ts';

/** Facts of a story that requests are recognised by. */
export interface Scene {
  /** Of the claim. */
  uid: string;
}

/** A step of the work. */
export interface Step {
  /** Completes "killed ...". */
  title: string;
  stop(scene: Scene): Stop;
  /** Only for provisioners whose attempts are recorded. */
  isOfRecord: boolean;
}

const volumesPath = '/api/v1/persistentvolumes';

/** Phase of the claim's record in a write of the journal; undefined where there is none, `closed` where the journal is without it. */
function recordedPhase({ path, body }: ApiWrite, uid: string): string | undefined {
  if (!/\/leases(\/|$)/.test(path)) return undefined;
  const annotations = (body as { metadata?: { annotations?: Record<string, string> } } | undefined)?.metadata
    ?.annotations;
  if (annotations === undefined || !Object.keys(annotations).some((key) => key.startsWith(recordKey))) return undefined;
  const text = annotations[recordKey + uid];
  return text === undefined ? 'closed' : (JSON.parse(text) as { record: { phase: string } }).record.phase;
}

const isPhase =
  (...phases: readonly string[]) =>
  (write: ApiWrite, { uid }: Scene): boolean =>
    phases.includes(recordedPhase(write, uid) ?? '');
const isSave = ({ method, path }: ApiWrite): boolean => method === 'POST' && path === volumesPath;
const isDelete = ({ method, path }: ApiWrite): boolean => method === 'DELETE' && path.startsWith(`${volumesPath}/`);

const step = (
  title: string,
  holds: Stop['holds'],
  matches: (write: ApiWrite, scene: Scene) => boolean,
  { isOfRecord = false } = {},
): Step => ({ title, isOfRecord, stop: (scene) => ({ holds, matches: (write) => matches(write, scene) }) });

const ofRecord = { isOfRecord: true };

/** The write that takes the claim's record out of the journal, once it has been there. */
function closingOf({ uid }: Scene): (write: ApiWrite) => boolean {
  let isOpen = false;
  return (write) => {
    const phase = recordedPhase(write, uid);
    if (phase !== undefined && phase !== 'closed') isOpen = true;
    return isOpen && phase === 'closed';
  };
}

/** From the claim to its volume, in order. */
export const creationSteps = {
  planned: step('when it has planned, before the plan is recorded', 'request', isPhase('create'), ofRecord),
  recorded: step('when the plan is recorded, before it gets the response', 'response', isPhase('create'), ofRecord),
  fulfilled: step('when it has fulfilled, before the volume is saved', 'request', isSave),
  saved: step('when the volume is saved, before it gets the response', 'response', isSave),
  closing: {
    title: 'before the record of a saved volume is closed',
    isOfRecord: true,
    stop: (scene): Stop => ({ holds: 'request', matches: closingOf(scene) }),
  },
} as const satisfies Record<string, Step>;

/** From the released volume to its end, in order. */
export const deletionSteps = {
  deleted: step('when the storage is deleted, before the volume is', 'request', isDelete),
  removed: step('when the volume is deleted, before it gets the response', 'response', isDelete),
} as const;

/** From a deleted claim whose storage was made to the end of its record, in order. */
export const revocationSteps = {
  deciding: step('before it records that the storage is to be deleted', 'request', isPhase('delete'), ofRecord),
  decided: step('when it is recorded that the storage is to be deleted', 'response', isPhase('delete'), ofRecord),
  revoked: step('when it has revoked, before that is recorded', 'request', isPhase('closed'), ofRecord),
} as const;
