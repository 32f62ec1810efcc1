import { isUnproved } from '../provision/intent-journal/intent-journal.ts';
import { isNameUnique } from '../provision/revoke/deletion-guard.ts';
import type { Finding } from './finding.ts';
import type { IndexedRecord } from './record-index.ts';
import type { Stranger } from './stranger.ts';

/** Flag of a deletion whose harmlessness nothing but the operator's knowledge proves. */
export const nobodyKeepsIt = 'nobody-keeps-it';

/** The volume must not be deleted; the message says why, and what to do instead. */
export class NotDeletableError extends Error {
  override readonly name = 'NotDeletableError';
}

/**
 * The record because of which a volume may be deleted.
 *
 * @param found - of the last look, with what both looks found.
 * @param options.mayBeUnproved - the operator knows that nobody keeps the volume, also if a PersistentVolume has had it.
 * @throws {NotDeletableError} when no record names it, or in a way that allows no deletion.
 */
export function deletableRecord(
  id: string,
  found: { records: readonly IndexedRecord[]; findings: readonly Finding[]; strangers: ReadonlyMap<string, Stranger> },
  { mayBeUnproved }: { mayBeUnproved: boolean },
): IndexedRecord {
  const naming = found.records.filter(({ record, listedIds }) => record.handle === id || listedIds.includes(id));
  const [indexed, ...others] = naming;
  if (indexed === undefined) {
    const owners = found.strangers.get(id)?.owners ?? [];
    if (owners.length > 0) {
      throw new NotDeletableError(
        'its id only mentions a claim or a volume, so it may be a copy, or belong to another record or PersistentVolume. ' +
          'Find out what it is, and delete it with the tools of the storage system',
      );
    }
    throw new NotDeletableError(
      'no record of the journal names it: it may be in use, or belong to another cluster. Delete it with the tools of the storage system',
    );
  }
  const { record, reportOnly, listedIds, candidateIds } = indexed;
  const why = (): string | undefined => {
    if (others.length > 0) return 'several records name it';
    if (reportOnly !== '') return `its record is stuck: ${reportOnly}. Another cluster may use the volume`;
    if (isUnproved(record) && !mayBeUnproved) {
      return `a PersistentVolume may have had it, and somebody may keep it on purpose. If you know that nobody does, delete it by itself, with --${nobodyKeepsIt}`;
    }
    if (record.phase === 'revoke') return 'the sidecar deletes it once no earlier request can be under way';
    if (record.phase !== 'stuck' && record.phase !== 'delete') return 'the sidecar is creating it';
    const attached = found.strangers.get(id)?.publishedNodes ?? 0;
    if (attached > 0) return `the driver reports it as attached to ${attached} node(s)`;
    const isSettled = found.findings.some((each) => each.volumeId === id && each.record === record.claim.uid);
    if (!isSettled) return 'its record has changed between the two looks: run the audit again';
    if (record.handle === id) return undefined;
    const matches = listedIds.length + candidateIds.length;
    if (matches > 1)
      return `the ids of ${matches} volumes contain its name ${record.volume.name}, or the UID of its claim`;
    return hasUid(record.volume.name, record.claim.uid)
      ? undefined
      : `its record has no id, and its name ${record.volume.name} does not contain the whole UID of the claim, so other volumes may match it`;
  };
  const reason = why();
  if (reason !== undefined) throw new NotDeletableError(reason);
  return indexed;
}

/** The whole UID, with or without dashes: no other volume has it in its name. */
function hasUid(name: string, uid: string): boolean {
  return uid.length >= 32 && isNameUnique(name, uid);
}
