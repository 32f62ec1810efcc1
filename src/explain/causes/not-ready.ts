/** The leader of the provisioner cannot work yet, such as without the permission to list nodes. */
import { notReadyReason } from '../../provision/event-reasons.ts';
import { type ClaimFacts, provisionerOf } from '../claim-facts-reader.ts';
import { found } from '../cluster-reader.ts';
import type { Finding } from '../explanation.ts';
import { recordedOf } from '../provisioning-events.ts';
import { durationText } from '../time-text.ts';
import { defineCause } from './cause.ts';

export const notReady = defineCause({ name: 'not-ready' });

/** Without a full stop. */
export const notReadyCure =
  'Do what the message says; where a permission is missing, the log of the leader has the rule to add';

/** The event is repeated this often while it lasts, and some; in milliseconds. */
const repeatedWithinMs = 11 * 60_000;

/** What the leader has recorded on its Lease; read only where nothing is recorded about the claim. */
export function checkReady(facts: ClaimFacts): Finding | undefined {
  const { claim, storageClass, leaseEvents, nowMs, unreadiness } = facts;
  const name = provisionerOf(claim, found(storageClass));
  const held = { state: 'stuck', cause: 'not-ready', cure: notReadyCure } as const;
  if (unreadiness !== undefined) {
    return { ...held, message: `The provisioner ${name} leads but is not ready: ${unreadiness}` };
  }
  const own = (found(leaseEvents?.events) ?? []).filter(({ reason }) => reason === notReadyReason);
  const recorded = recordedOf(own);
  if (recorded === undefined || nowMs - recorded.atMs > repeatedWithinMs) return undefined;
  const leader = leaseEvents?.holder ?? '';
  return {
    ...held,
    message: `The provisioner ${name} leads (${leader}) but is not ready, for ${durationText(nowMs - recorded.sinceMs)}: ${recorded.text}`,
  };
}
