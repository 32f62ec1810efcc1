import { ForbiddenError } from '../../kube/client/api-error.ts';
import type { Feature } from '../../run/feature.ts';
import type { FeatureOptions } from '../run-phase-options.ts';
import { journalObjects } from '../sidecar-journal.ts';
import { GoneNodes } from './gone-nodes.ts';

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
