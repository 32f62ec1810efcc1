import type { KubeClient } from '../index.ts';
import { leases } from './free-locks.ts';

/** Of the annotations of a Lease that are the intent journal; the UID of a claim follows, or the name of something else. */
export const recordKey = 'csi-provisioner.journal/';
const isOfNoClaim = /^(shard|discard|drain|shared-.*)$/;

/** A record of the intent journal. */
export interface OpenRecord {
  /** Such as `default/letters`. */
  claim: string;
  phase: string;
}

/** The records of the intent journal: each is of storage that is being made, or may have to be deleted. */
export async function openRecords(client: KubeClient): Promise<OpenRecord[]> {
  const all = (await client.list(leases)).flatMap(({ metadata }) => Object.entries(metadata.annotations ?? {}));
  const records = all.filter(([key]) => key.startsWith(recordKey) && !isOfNoClaim.test(key.slice(recordKey.length)));
  return records.map(([, text]) => {
    const { record } = JSON.parse(text) as { record: { claim: { namespace: string; name: string }; phase: string } };
    return { claim: `${record.claim.namespace}/${record.claim.name}`, phase: record.phase };
  });
}

/** What is wrong with a record that should be closed. */
export function openText({ claim, phase }: OpenRecord): string {
  return `open: the record of the claim ${claim} is not closed, but in the phase ${phase}`;
}
