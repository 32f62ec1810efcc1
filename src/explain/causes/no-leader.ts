/** The provisioner has no leader: nobody holds its Lease, or it seems not to run. */
import { shortValue } from '../../base/short-value.ts';
import { electionWaitingReason } from '../../provision/event-reasons.ts';
import { type ClaimFacts, provisionerOf } from '../claim-facts-reader.ts';
import { found } from '../cluster-reader.ts';
import type { Finding } from '../explanation.ts';
import { isInTree } from '../provisioner-facts.ts';
import { type Recorded, recordedOf } from '../provisioning-events.ts';
import { leaseCure, signOfLifeMs } from '../serving.ts';
import { durationText, lastChangeMs } from '../time-text.ts';
import { defineCause } from './cause.ts';

export const noLeader = defineCause({ name: 'no-leader' });

/** Longer than a standby waits for a silent Lease of the usual durations, in milliseconds. */
const maxWaitMs = 2 * 60_000;

/** A standby waits until an earlier process with its identity is known to have ended: until then the Lease looks held. */
export function checkElectionWaits(facts: ClaimFacts): Finding | undefined {
  const { claim, storageClass, leaseEvents, nowMs } = facts;
  const newest = (reason: string, type: string): Recorded | undefined =>
    recordedOf((found(leaseEvents?.events) ?? []).filter((event) => event.reason === reason && event.type === type));
  const waits = newest(electionWaitingReason, 'Normal');
  if (waits === undefined || nowMs - waits.atMs > maxWaitMs) return undefined;
  const ends = [newest(electionWaitingReason, 'Warning'), newest('LeaderElection', 'Normal')]; // the other one works, or has ended
  if (ends.some((end) => end !== undefined && end.atMs >= waits.atMs)) return undefined;
  return {
    state: 'waiting',
    cause: 'no-leader',
    message: `The provisioner ${provisionerOf(claim, found(storageClass))} may have no leader for ${durationText(nowMs - waits.sinceMs)}: ${waits.text}.`,
    cure: 'Wait: the standby takes the Lease over once nobody has renewed it for its duration',
  };
}

/** For a claim about which no provisioner has recorded an event. An expired Lease is reported by `checkProvisioner`. */
export function checkSeemsAway({ claim, provisioner, storageClass, nowMs }: ClaimFacts): Finding | undefined {
  const name = provisionerOf(claim, found(storageClass));
  const ageMs = nowMs - lastChangeMs(claim);
  const leads = (found(provisioner?.leases) ?? []).length > 0;
  if (ageMs <= signOfLifeMs || leads || isInTree(name) || provisioner?.leases.kind !== 'found') return undefined;
  return {
    state: 'stuck',
    cause: 'no-leader',
    presumes: true,
    message: `The provisioner ${shortValue(name)} seems to have no leader, or not to be running: it has no Lease, and has recorded no event about the claim, which was handed to it ${durationText(ageMs)} ago.`,
    cure: `Check that the Pods of the provisioner run (with --node-deployment: the one on the claim's node), and see what they log. ${leaseCure()}`,
  };
}
