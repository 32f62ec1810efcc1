/** What a provisioner itself knows of a claim, explained as `why` does: nothing is requested. */
import type { KubeObject } from '../kube/kube-object.ts';
import type { WaitingClaim } from '../provision/controller-status.ts';
import type { ClaimFacts } from './claim-facts-reader.ts';
import type { CsiNode } from './cluster-objects.ts';
import { claimExplanation } from './explain-claim.ts';
import type { Explanation } from './explanation.ts';
import type { Recorded } from './provisioning-events.ts';
import { sourceOf } from './source-facts-reader.ts';

/** What the process knows besides the claim. */
export interface OwnKnowledge {
  /** The provisioner's own time, in milliseconds since the Unix epoch. */
  nowMs: number;
  /** What it lacks to work; undefined: it works. */
  unreadiness?: string | undefined;
  /** Undefined: it does not keep all nodes. */
  nodes?: { nodes: Iterable<KubeObject>; csiNodes: Iterable<CsiNode> } | undefined;
}

export function explainOwnClaim(waiting: WaitingClaim, known: OwnKnowledge): Explanation {
  return claimExplanation(ownFacts(waiting, known));
}

function ownFacts({ claim, progress, storageClass, volume }: WaitingClaim, known: OwnKnowledge): ClaimFacts {
  const { nowMs, unreadiness, nodes } = known;
  const { className, lastError, failures, syncingForMs, nextTryInMs: nextAttemptInMs } = progress;
  const { message: text = '', atMs = 0, sinceMs = 0, cause, once } = lastError ?? {};
  const isScheduled = nextAttemptInMs !== undefined || progress.step === 'queued';
  const last: Recorded = { text, atMs, sinceMs, cause, count: Math.max(failures, 1) };
  const isUntried = lastError === undefined && syncingForMs === undefined;
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
    nextAttemptOnce: isScheduled ? undefined : once,
    source: sourceOf(claim),
    ...(isUntried && { unreadiness }),
    ...(nodes !== undefined &&
      (storageClass?.allowedTopologies ?? []).length > 0 && {
        nodes: { kind: 'found', value: [...nodes.nodes] },
        csiNodes: { kind: 'found', value: [...nodes.csiNodes] },
      }),
  };
}
