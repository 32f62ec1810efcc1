/** Where the intent journal of this process is, and reports of records that others have left: earlier settings, and nodes that are gone. */
import { createHash } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';
import { inSlices } from '../../base/event-loop.ts';
import { type Logger, silentLogger } from '../../base/logger.ts';
import { isProvisionerOf } from '../../csi/migration/in-tree-plugins.ts';
import { nodeResource } from '../../csi/topology/topology-nodes.ts';
import { CodingChoice } from '../../kube/cache/coding-choice.ts';
import { pagedList, pageSize } from '../../kube/cache/paged-list.ts';
import { ForbiddenError, NotFoundError } from '../../kube/client/api-error.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import type { Transport } from '../../kube/client/transport.ts';
import type { KubeObject } from '../../kube/kube-object.ts';
import { clusterJournal } from '../../provision/intent-journal/cluster-journal.ts';
import type { IntentJournal } from '../../provision/intent-journal/intent-journal.ts';
import { isRecordKey, listedJournalLeases } from '../../provision/intent-journal/shard-storage.ts';
import type { Feature } from '../../run/feature.ts';
import { journalLock, journalNode, leaseName, ownNamespace } from '../../run/lock-name.ts';
import { type JournalAddress, warnOfJournals } from '../../run/provisioner-journal.ts';
import type { Config } from '../config.ts';
import type { FeatureOptions } from '../run-phase-options.ts';

/** Where a journal is; its lock has the name of the lease, in node deployment with the node's. */
export interface JournalObjects extends JournalAddress {
  /** Name of the Lease of the leader election, also without it. */
  lease: string;
}

/** Undefined without journal. */
export function journalObjects(options: {
  config: Config;
  driver: { readonly name: string };
}): JournalObjects | undefined {
  const { config, driver } = options;
  const { intentJournal, nodeDeployment } = config;
  if (intentJournal === null) return undefined;
  const { namespace } = intentJournal;
  const lease = leaseName(driver.name, silentLogger); // the election warns of a name that had to be changed
  return {
    namespace: namespace === '' ? ownNamespace() : namespace,
    lease,
    lockName: journalLock(lease, nodeDeployment?.nodeName),
  };
}

/** Undefined with `--intent-journal=off`. */
export function sidecarJournal(options: FeatureOptions): IntentJournal | undefined {
  const { config, client, driver, metrics, clock, logger } = options;
  const objects = journalObjects(options);
  if (objects === undefined) return undefined;
  const { namespace, lockName } = objects;
  return clusterJournal({
    client,
    namespace,
    lockName,
    isKnownProvisioner: isProvisionerOf(driver.name), // names of drivers that differ in punctuation give the same lock
    // in node deployment each node writes a journal of its own, and a Pod's successor may overlap with it
    exclusive: config.leaderElection !== null && config.nodeDeployment === null,
    metrics: metrics.journal,
    clock,
    logger,
  });
}

/**
 * Warns at the start of records where the journal was before `--leader-election-namespace` or `--node-deployment` was changed. Undefined
 * without journal.
 */
export function otherJournalsFeature(options: FeatureOptions): Feature | undefined {
  const { config, client, driver, clock, logger } = options;
  const own = journalObjects(options);
  if (own === undefined) return undefined;
  const { podNamespace = ownNamespace(), nodeName = config.nodeDeployment?.nodeName } = config.intentJournal ?? {};
  const namespaces = [own.namespace, podNamespace];
  const lockNames = [own.lease, ...(nodeName === undefined ? [] : [journalLock(own.lease, nodeName)])];
  return warnOfJournals({
    client,
    own,
    others: namespaces.flatMap((namespace) => lockNames.map((lockName) => ({ namespace, lockName }))),
    isKnownProvisioner: isProvisionerOf(driver.name),
    clock,
    logger,
  });
}

/** The first check comes after a random part of this: the instances of all nodes start at once. */
const firstWithinMs = 10 * 60_000;
const betweenMs = 24 * 60 * 60_000;
/** After a failure. */
const againAfterMs = 60 * 60_000;

/** Node deployment: reports the records of nodes that do not exist any more. Undefined elsewhere, and without journal. */
export function goneNodesFeature(options: FeatureOptions): Feature | undefined {
  const { config, client, transport, metrics, random = Math.random, clock, logger } = options;
  const objects = journalObjects(options);
  if (config.nodeDeployment === null || objects === undefined) return undefined;
  const { namespace, lease } = objects;
  const goneNodes = new GoneNodes({
    client,
    transport,
    namespace,
    lease,
    clock,
    logger,
    nodeName: config.nodeDeployment.nodeName,
    onReported: () => metrics.journal?.reported('node-gone'),
  });
  return {
    async run({ stop }) {
      let pauseMs = random() * firstWithinMs;
      try {
        for (;;) {
          await clock.sleep(pauseMs, { signal: stop });
          pauseMs = betweenMs;
          await goneNodes.check(stop).catch((error: unknown) => {
            stop.throwIfAborted();
            if (!(error instanceof ForbiddenError)) pauseMs = againAfterMs;
            logger.debug({ err: error }, 'Records of nodes that are gone could not be looked for');
          });
        }
      } catch (error) {
        if (!stop.aborted) throw error;
      }
    },
  };
}

interface GoneNodesOptions {
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
