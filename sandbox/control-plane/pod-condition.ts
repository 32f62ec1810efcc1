import type { Clock } from '../../src/base/clock.ts';
import type { SandboxClient } from '../api/client.ts';
import { timestamp } from '../api/timestamps.ts';
import type { EventRecorder } from './event-recorder.ts';
import { updateObjectStatus } from './object-access.ts';
import { resources, type Pod } from './objects.ts';

/** What `reportUnscheduled` needs. */
export interface ReportUnscheduledOptions {
  client: SandboxClient;
  clock: Clock;
  events: EventRecorder;
}

/**
 * Reports why a pod was not scheduled: the event `FailedScheduling` and the condition `PodScheduled`. A repeat
 * with the same message writes the event only.
 * @throws {StatusError} if the status cannot be written.
 */
export function reportUnscheduled(
  { client, clock, events }: ReportUnscheduledOptions,
  pod: Pod,
  reason: 'Unschedulable' | 'SchedulerError',
  message: string,
): void {
  events.warning(pod, 'FailedScheduling', message);
  const conditions = pod.status?.conditions ?? [];
  const current = conditions.find(({ type }) => type === 'PodScheduled');
  if (current?.status === 'False' && current.reason === reason && current.message === message) return;
  const lastTransitionTime =
    current?.status === 'False' && current.lastTransitionTime ? current.lastTransitionTime : timestamp(clock.wallMs());
  updateObjectStatus(client, resources.pods, pod, (copy) => {
    const others = conditions.filter(({ type }) => type !== 'PodScheduled');
    const condition = {
      type: 'PodScheduled',
      status: 'False',
      reason,
      message,
      lastProbeTime: null,
      lastTransitionTime,
    };
    copy.status = { ...copy.status, conditions: [...others, condition] };
  });
}
