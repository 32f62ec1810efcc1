/** Where a controller runs: what its parts share, and none of them owns. */
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/logger.ts';
import type { Permit } from '../base/permit.ts';
import type { KubeClient } from '../kube/client/kube-client.ts';
import type { Recorder } from '../kube/events/recorder.ts';
import type { MeaningOf } from './event-reasons.ts';

export interface Environment {
  /** Sends nothing without the permit. */
  client: KubeClient;
  /** Needed for each call that changes the backend. Undefined: none is. */
  permit: Permit | undefined;
  recorder: Recorder;
  /** For events and log lines about failures. Undefined: they do not name a cause. */
  meaningOf: MeaningOf | undefined;
  /** Aborts when what is under way is to be abandoned. */
  abort: AbortSignal;
  clock: Clock;
  logger: Logger;
}
