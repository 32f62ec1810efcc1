/** The driver could not delete the volume. */
import { found } from '../cluster-reader.ts';
import type { Finding } from '../explanation.ts';
import { deletionHistory, failuresText } from '../provisioning-events.ts';
import type { VolumeFacts } from '../volume-facts-reader.ts';
import { type Cause, defineCause } from './cause.ts';
import { checkEarlierCall, checkPostponed } from './deleting.ts';
import { requestMeaning } from './request-meaning.ts';
import { checkSharedStorage } from './storage-shared.ts';

export const deleteError = defineCause({ name: 'delete-error' });

/** Phase Failed: kube-controller-manager has given the volume up, which it does only for in-tree plugins. */
export function checkFailedForGood({ volume }: VolumeFacts): Finding | undefined {
  if (volume.status?.phase !== 'Failed') return undefined;
  return {
    state: 'stuck',
    cause: 'delete-error',
    message: `Deleting the volume failed, and is not retried: ${volume.status.message ?? 'without a message'}`,
    cure: 'Set its reclaim policy to Retain, so that its provisioner removes its finalizer, then delete the storage and the PersistentVolume by hand',
  };
}

/** The newest event about it: what the deletion waits for, why it was postponed, or why it failed. */
export function checkDeletion(facts: VolumeFacts): Finding | undefined {
  const { events, nowMs } = facts;
  const { failed, waiting, postponed } = deletionHistory(found(events) ?? []);
  const atLeastMs = Math.max(failed?.atMs ?? 0, postponed?.atMs ?? 0);
  if (waiting !== undefined && waiting.atMs >= atLeastMs) {
    const wait = checkSharedStorage(waiting) ?? checkEarlierCall(waiting, nowMs);
    if (wait !== undefined) return wait;
  }
  if (postponed !== undefined && postponed.atMs >= atLeastMs) {
    const wait = checkPostponed(postponed, facts);
    if (wait !== undefined) return wait;
  }
  if (failed !== undefined) {
    return {
      state: 'stuck',
      ...deletionMeaning(failed.text, failed.cause),
      message: `Its deletion ${failuresText(failed, nowMs)}; it will be retried. Last error: ${failed.text}`,
    };
  }
  return events?.kind === 'unreadable' ? { state: 'unknown', detail: events.why } : undefined;
}

/** What a failed attempt to delete the storage means. @param recorded - its cause, as the provisioner has noted it. */
export function deletionMeaning(text: string, recorded: string | undefined): { cause: Cause; cure: string } {
  const { cause, cure } = requestMeaning(text, { recorded }) ?? { cause: 'delete-error', cure: deleteErrorCure };
  return { cause, cure };
}

const deleteErrorCure = "See the log of the driver's controller, and search docs/troubleshooting.md for this text";
