import type { KubeClient } from '../../src/kube/client/kube-client.ts';
import type { KubeObject } from '../../src/kube/kube-object.ts';
import { leases } from '../../src/kube/election/lease-record.ts';
import type { IntentRecord } from '../../src/provision/intent-journal/intent-journal.ts';
import type { OpenRecord } from './count.ts';

const prefix = 'csi-provisioner.journal/';
const shardName = /-journal-\d+$/;
/** Entries that are no records. */
const otherEntries = /^(shard|discard|drain|shared-.*)$/;

/** The intent journal as it stands in the API; undefined: there is none. */
export async function readJournal(client: KubeClient, namespace: string): Promise<OpenRecord[] | undefined> {
  const objects = await client.list<KubeObject>(leases, { namespace });
  const shards = objects.filter(({ metadata }) => shardName.test(metadata.name));
  return shards.length === 0 ? undefined : shards.flatMap((shard) => recordsOf(shard));
}

function recordsOf({ metadata }: KubeObject): OpenRecord[] {
  return Object.entries(metadata.annotations ?? {})
    .filter(([key]) => key.startsWith(prefix))
    .map(([key, text]) => [key.slice(prefix.length), text] as const)
    .filter(([key]) => !otherEntries.test(key))
    .map(([key, text]) => {
      const { record } = JSON.parse(text) as { record: IntentRecord };
      const { volume, handle, phase, reason, problem } = record;
      return { claimUid: key, volumeName: volume.name, handle, phase, reason, problem };
    });
}
