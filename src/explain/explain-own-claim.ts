/** What a provisioner itself knows of a claim, explained as `why` does: nothing is requested. */
import type { WaitingClaim } from '../provision/controller-status.ts';
import type { ClaimFacts } from './claim-facts-reader.ts';
import { claimExplanation } from './explain-claim.ts';
import type { Explanation } from './explanation.ts';
import type { Recorded } from './provisioning-events.ts';

/** @param nowMs - the provisioner's own time, in milliseconds since the Unix epoch. */
export function explainOwnClaim(waiting: WaitingClaim, nowMs: number): Explanation {
  return claimExplanation(ownFacts(waiting, nowMs));
}

function ownFacts({ claim, progress, storageClass, volume }: WaitingClaim, nowMs: number): ClaimFacts {
  const { className, lastError, failures, syncingForMs, nextTryInMs: nextAttemptInMs } = progress;
  const { message: text = '', atMs = 0, sinceMs = 0 } = lastError ?? {};
  const last: Recorded = { text, atMs, sinceMs, count: Math.max(failures, 1) };
  const begunMs = nowMs - (syncingForMs ?? 0);
  return {
    nowMs,
    claim,
    ...(className !== '' && {
      storageClass:
        storageClass === undefined ? { kind: 'missing', unserved: false } : { kind: 'found', value: storageClass },
    }),
    ...(volume !== undefined && { volume: { kind: 'found', value: volume } }),
    history: {
      failed: lastError?.kind === 'failed' ? last : undefined,
      waiting: lastError?.kind === 'waiting' ? last : undefined,
      started: syncingForMs === undefined ? undefined : { text: '', atMs: begunMs, sinceMs: begunMs, count: 1 },
    },
    nextAttemptInMs,
  };
}
