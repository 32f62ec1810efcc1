/**
 * The controllers a cluster brings along, in one process with the API server: what provisioning depends on and
 * nothing more. Each works through the same validation and store as HTTP clients, under the user name of its model.
 */
import type { Clock } from '../../src/base/clock.ts';
import type { Logger } from '../../src/base/logger.ts';
import type { SandboxClient } from '../api/client.ts';
import { ClaimProtection, VolumeProtection } from './protection.ts';
import { ExpandController } from './expand-controller.ts';
import { GarbageCollector } from './garbage-collector.ts';
import { guardHandlers } from './guarded-client.ts';
import { KubeletStub } from './kubelet-stub.ts';
import { Mirror } from './mirror.ts';
import { NamespaceController } from './namespace-controller.ts';
import { resources } from './objects.ts';
import { PodIndex } from './pod-index.ts';
import { PvBinder } from './pv-binder.ts';
import { Scheduler, type SchedulingSettings } from './scheduler.ts';
import { VolumeIndex } from './volume-index.ts';

/** The parts that can be switched off one by one. */
export type ControlPlanePart =
  'pvBinder' | 'protection' | 'scheduler' | 'kubeletStub' | 'namespaceController' | 'gc' | 'expansion';

/** What `startControlPlane` needs. */
export interface ControlPlaneOptions {
  /** The API under a user name. */
  client: (user: string) => SandboxClient;
  logger: Logger;
  clock: Clock;
  /** Milliseconds between two rounds of the binder over everything. Default 15,000. */
  resyncMs?: number;
  /** Parts to leave out, by `false`. Default: all run. */
  parts?: Partial<Record<ControlPlanePart, boolean>>;
  /** Node choice, back-off and time limits of the scheduler. */
  scheduling?: SchedulingSettings;
  /** Milliseconds until an assigned pod runs, and until a deleted one is gone. Default 20. */
  kubeletDelayMs?: number;
}

interface Part extends Disposable {
  start(): void;
}

/**
 * Starts the controllers; they take over whatever the API holds already. Disposing stops them at once: no timer,
 * subscription or pending turn remains, and a repeat is safe.
 */
export function startControlPlane(options: ControlPlaneOptions): AsyncDisposable {
  const { clock, resyncMs = 15_000, parts = {}, scheduling, kubeletDelayMs = 20 } = options;
  const logger = options.logger.child({ component: 'control-plane' });
  const client = (user: string): SandboxClient => guardHandlers(options.client(user), logger);
  const controllerClient = (name: string): SandboxClient => client(`system:serviceaccount:kube-system:${name}`);
  const isOn = (part: ControlPlanePart): boolean => parts[part] !== false;

  // The indexes listen first, so that every controller finds them up to date.
  const binderClient = controllerClient('persistent-volume-binder');
  const volumes = new Mirror(binderClient, resources.volumes);
  const volumeIndex = new VolumeIndex(volumes);
  const pods = new Mirror(binderClient, resources.pods);
  const podIndex = new PodIndex(pods);
  const shared = { clock, logger, volumes, volumeIndex, pods, podIndex };

  const running: Part[] = [];
  if (isOn('pvBinder')) running.push(new PvBinder({ ...shared, client: binderClient, resyncMs }));
  if (isOn('protection')) {
    running.push(
      new ClaimProtection({ ...shared, client: controllerClient('pvc-protection-controller') }),
      new VolumeProtection({ ...shared, client: controllerClient('pv-protection-controller') }),
    );
  }
  if (isOn('scheduler')) {
    const settings = scheduling === undefined ? {} : { settings: scheduling };
    running.push(new Scheduler({ ...shared, client: client('system:kube-scheduler'), ...settings }));
  }
  if (isOn('kubeletStub')) {
    running.push(new KubeletStub({ ...shared, client: client('system:kubelet-stub'), delayMs: kubeletDelayMs }));
  }
  if (isOn('namespaceController')) {
    running.push(new NamespaceController({ ...shared, client: controllerClient('namespace-controller') }));
  }
  if (isOn('gc')) {
    running.push(new GarbageCollector({ ...shared, client: controllerClient('generic-garbage-collector') }));
  }
  if (isOn('expansion')) running.push(new ExpandController({ client: controllerClient('expand-controller') }));

  for (const part of running) part.start();
  volumes.start();
  pods.start();
  return {
    [Symbol.asyncDispose]: () => {
      for (const part of [...running, volumes, pods]) part[Symbol.dispose]();
      return Promise.resolve();
    },
  };
}
