import { createHash } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';
import { inSlices } from '../../base/event-loop.ts';
import type { Logger } from '../../base/logger.ts';
import { nodeResource } from '../../csi/topology/topology-nodes.ts';
import { NotFoundError } from '../../kube/client/api-error.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import type { KubeObject } from '../../kube/kube-object.ts';
import { CodingChoice } from '../../kube/cache/coding-choice.ts';
import { pagedList, pageSize } from '../../kube/cache/paged-list.ts';
import type { Transport } from '../../kube/client/transport.ts';
import { isRecordKey, listedJournalLeases } from '../../provision/intent-journal/shard-storage.ts';
import { journalNode } from '../../run/lock-name.ts';

export interface GoneNodesOptions {
  client: KubeClient;
  transport: Transport;
  namespace: string;
  /** Name of the driver's lock, without a node. */
  lease: string;
  /** The own node. */
  nodeName: string;
  onReported: () => void;
  clock: Clock;
  logger: Logger;
}

/** What the journal of a node holds. */
interface NodeRecords {
  records: number;
  /** Names of the objects that hold any. */
  objects: string[];
}

/** How many of the nodes that have a journal watch one that may be gone, so that a large cluster asks little. */
const watchersPerNode = 8;

/** Finds the records of nodes that do not exist any more: nobody can act on them, so that they are logged. */
export class GoneNodes {
  readonly #options: GoneNodesOptions;
  /** Nodes that were logged, with the number of records then. */
  #reported = new Map<string, number>();

  constructor(options: GoneNodesOptions) {
    this.#options = options;
  }

  /**
   * Checks once. A node is logged again when the number of its records has changed.
   *
   * @throws {ApiError} and {TransportError} where objects or nodes could not be read.
   */
  async check(signal: AbortSignal): Promise<void> {
    const { nodeName, logger, onReported } = this.#options;
    const journals = await this.#list(signal);
    const reported = new Map<string, number>();
    const nodes = [...journals.keys()];
    for (const [node, { records, objects }] of journals) {
      if (records === 0 || !(await watches(nodeName, node, nodes))) continue;
      if (await this.#exists(node, signal)) continue;
      reported.set(node, records);
      if (this.#reported.get(node) === records) continue;
      logger.warn({ node, records, objects }, 'A node that does not exist any more has left records of volumes');
      onReported();
    }
    this.#reported = reported;
  }

  async #list(signal: AbortSignal): Promise<Map<string, NodeRecords>> {
    const { transport, namespace, lease, clock, logger } = this.#options;
    const journals = new Map<string, NodeRecords>();
    await pagedList({
      coding: new CodingChoice({ transport, clock, logger }),
      resource: listedJournalLeases,
      namespace,
      signal,
      resourceVersion: '',
      limit: pageSize,
      optional: true,
      onStart: () => journals.clear(),
      onItem: (object) => {
        const { name } = object.metadata;
        const node = journalNode(lease, name);
        if (node === undefined) return;
        const records = countRecords(object);
        const journal = journals.get(node) ?? { records: 0, objects: [] };
        journal.records += records;
        if (records > 0) journal.objects.push(name);
        journals.set(node, journal);
      },
    });
    return journals;
  }

  async #exists(node: string, signal: AbortSignal): Promise<boolean> {
    try {
      await this.#options.client.get(nodeResource, { name: node }, { signal, optional: true });
      return true;
    } catch (error) {
      if (error instanceof NotFoundError) return false;
      throw error;
    }
  }
}

/** Whether `own` watches `node`: one of the few others with a journal that a hash decides on, or all if there are few. */
async function watches(own: string, node: string, withJournal: readonly string[]): Promise<boolean> {
  if (own === node) return false;
  if (withJournal.length <= watchersPerNode) return true;
  const rank = (name: string): string => createHash('sha256').update(`${node} ${name}`).digest('hex');
  const ownRank = rank(own);
  let [before, hasJournal] = [0, false];
  // 1,000 nodes whose ranks are compared with each other are a million hashes
  await inSlices(withJournal, (name) => {
    if (name === own) hasJournal = true;
    else if (name !== node && before < watchersPerNode && rank(name) < ownRank) before += 1;
  });
  return hasJournal && before < watchersPerNode;
}

/** How many records a Lease of a journal holds. */
function countRecords({ metadata }: KubeObject): number {
  return Object.keys(metadata.annotations ?? {}).filter(isRecordKey).length;
}
