/** The provisioner is working on the claim, or about to. */
import { shortValue } from '../../base/short-value.ts';
import { attempts, withClassAge } from '../attempts.ts';
import { type ClaimFacts, provisionerOf } from '../claim-facts-reader.ts';
import { found } from '../cluster-reader.ts';
import type { Finding } from '../explanation.ts';
import { signOfLifeMs } from '../serving.ts';
import { durationText, lastChangeMs } from '../time-text.ts';
import { defineCause } from './cause.ts';

export const inProgress = defineCause({
  name: 'in-progress',
  waits: [
    {
      pattern: /^Waiting for another process: /,
      state: 'waiting',
      cure: 'Nothing to do about the claim; the other process of the provisioner finishes first, or is replaced after 30 seconds',
    },
    {
      pattern: /^Waiting for another provisioner: /,
      state: 'stuck',
      cure: 'Two provisioners share one intent journal: have the sidecar of the other one close its record, and give each its own driver name or namespace',
    },
    {
      pattern: /^Waiting for the end of a drain: /,
      state: 'waiting',
      cure: 'An operator is draining the intent journal, such as before another provisioner takes over; csi-provisioner journal drain --resume ends that',
    },
  ],
});

/** A working provisioner has started on a claim by then, in milliseconds. */
const beginsWithinMs = 2 * 60_000;

/** An attempt is under way. */
export function checkUnderWay(facts: ClaimFacts): Finding | undefined {
  const history = attempts(facts);
  const { started } = history;
  if (started === undefined) return undefined;
  const { nowMs } = facts;
  return withClassAge(facts, history, {
    state: 'waiting',
    cause: 'in-progress',
    presumes: nowMs - started.atMs > signOfLifeMs,
    message: `The driver has been creating the volume for ${durationText(nowMs - started.sinceMs)}, and no attempt has failed.`,
    cure: 'Nothing. If it takes longer than the driver usually needs, see the log of its controller',
  });
}

/** No attempt was begun. */
export function checkNotBegun({ claim, storageClass, nowMs }: ClaimFacts): Finding {
  const name = provisionerOf(claim, found(storageClass));
  const ageMs = nowMs - lastChangeMs(claim);
  const isLate = ageMs > beginsWithinMs;
  return {
    state: 'waiting',
    cause: 'in-progress',
    presumes: true,
    message: `The claim was handed to provisioner ${shortValue(name)}, which has not started on it ${isLate ? `in ${durationText(ageMs)}` : 'yet'}.`,
    cure: isLate
      ? 'See the log of the provisioner: it may be busy, or lack the permission to record events'
      : 'Nothing yet',
  };
}
