import { ConflictError } from '../../kube/api-error.ts';
import type { KubeClient } from '../../kube/kube-client.ts';
import { ShardStorage } from './shard-storage.ts';

/** A sidecar writes its shard many times a second at most while claims come; between two of its writes there is room. */
const maxAttempts = 10;

/**
 * Asks the sidecar to discard a record, with the annotation that an operator would set by hand. The entries stay as they are:
 * the sidecar removes the record, within a minute. Safe to repeat.
 *
 * @returns false when the shard is gone, and the record with it.
 * @throws {ApiError} and {TransportError} when it cannot be written.
 */
export async function discardRecord(
  journal: { client: KubeClient; namespace: string; lockName: string },
  { shard, uid }: { shard: number; uid: string },
): Promise<boolean> {
  const storage = new ShardStorage(journal);
  for (let attempt = 1; ; attempt++) {
    const object = await storage.read(shard);
    if (object === undefined) return false;
    const uids = object.discard.split(',').filter((each) => each.trim() !== '');
    if (uids.some((each) => each.trim() === uid)) return true;
    try {
      await storage.update(object, Object.fromEntries(object.entries), [...uids, uid].join(','));
      return true;
    } catch (error) {
      if (!(error instanceof ConflictError) || attempt === maxAttempts) throw error;
    }
  }
}
