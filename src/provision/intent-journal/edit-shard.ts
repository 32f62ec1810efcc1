import { ConflictError } from '../../kube/client/api-error.ts';
import type { ShardObject, ShardStorage } from './shard-storage.ts';

/** Max conflicts in a row: even a busy sidecar leaves time between two writes. */
const maxAttempts = 10;

/**
 * Changes a shard while the sidecar may be working on it.
 *
 * @param edit - changes what is there, and says whether to write it. May be called again, with what is there after a conflict.
 * @throws {ApiError} and {TransportError} when it cannot be read or written.
 */
export async function editShard(
  storage: ShardStorage,
  shard: number,
  edit: (object: ShardObject) => boolean,
): Promise<'gone' | 'unchanged' | 'written'> {
  for (let attempt = 1; ; attempt++) {
    const object = await storage.read(shard);
    if (object === undefined) return 'gone';
    if (!edit(object)) return 'unchanged';
    try {
      await storage.update(object, Object.fromEntries(object.entries), object.discard);
      return 'written';
    } catch (error) {
      if (!(error instanceof ConflictError) || attempt === maxAttempts) throw error;
    }
  }
}
