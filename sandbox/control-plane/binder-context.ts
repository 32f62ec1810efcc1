import type { Logger } from '../../src/base/logger.ts';
import type { SandboxClient, SandboxName } from '../api/client.ts';
import type { EventRecorder } from './event-recorder.ts';
import type { PodIndex } from './pod-index.ts';
import type { VolumeIndex } from './volume-index.ts';

/** What the steps of the binder share. */
export interface BinderContext {
  client: SandboxClient;
  logger: Logger;
  events: EventRecorder;
  volumes: VolumeIndex;
  pods: PodIndex;
  enqueueClaim: (claim: SandboxName) => void;
  enqueueVolume: (name: string) => void;
}
