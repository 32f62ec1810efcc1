import assert from 'node:assert/strict';
import { systemClock, type Clock } from '../../../src/base/clock.ts';
import { silentLogger } from '../../../src/base/logger.ts';
import { ApiServer } from '../../../sandbox/api/api-server.ts';
import type { SandboxClient, SandboxObject, Subscription } from '../../../sandbox/api/client.ts';
import { startControlPlane, type ControlPlaneOptions } from '../../../sandbox/control-plane/control-plane.ts';
import { createNodes } from '../../../sandbox/control-plane/create-nodes.ts';
import { getObject, listObjects, subscribeTo } from '../../../sandbox/control-plane/object-access.ts';
import {
  resources,
  type Claim,
  type Pod,
  type TypedResource,
  type Volume,
} from '../../../sandbox/control-plane/objects.ts';
import { patienceMs } from '../../support/patience.ts';

/** An event as it is stored. */
export interface StoredEvent extends SandboxObject {
  involvedObject: { name: string; kind: string };
  type: string;
  reason: string;
  message: string;
  count?: number;
}

export const eventsResource: TypedResource<StoredEvent> = { group: '', version: 'v1', plural: 'events' };

export const configMaps: TypedResource<SandboxObject> = { group: '', version: 'v1', plural: 'configmaps' };

export type ClusterOptions = Partial<Omit<ControlPlaneOptions, 'client'>> & {
  /** Shifts the wall clock, in milliseconds. */
  wallShift?: { ms: number };
  disabledResources?: readonly string[];
};

/**
 * An API server with the controllers and the base of the black-box cases: classes `fast` (Immediate) and `late`
 * (WaitForFirstConsumer) of `x.example.com`, node n1 in zone a and n2 in zone b.
 */
export class Cluster implements AsyncDisposable {
  readonly server: ApiServer;
  readonly client: SandboxClient;
  readonly #controlPlaneOptions: ControlPlaneOptions;
  #controlPlane: AsyncDisposable | undefined;
  readonly #subscriptions: Subscription[];
  readonly #checks = new Set<() => void>();

  constructor({ wallShift = { ms: 0 }, disabledResources = [], ...options }: ClusterOptions = {}) {
    const clock: Clock = { ...systemClock, wallMs: () => Date.now() + wallShift.ms };
    this.server = new ApiServer({ clock, disabledResources });
    this.client = this.server.client('test');
    this.#subscriptions = [...Object.values(resources), eventsResource, configMaps].map((resource) =>
      subscribeTo(this.client, resource, () => this.#check()),
    );
    createNodes({
      client: this.client,
      clock,
      nodes: [
        { name: 'n1', zone: 'a' },
        { name: 'n2', zone: 'b' },
      ],
    });
    this.addClass('fast');
    this.addClass('late', { volumeBindingMode: 'WaitForFirstConsumer' });
    this.#controlPlaneOptions = {
      clock,
      logger: silentLogger,
      resyncMs: 200,
      kubeletDelayMs: 1,
      scheduling: { backoffBaseMs: 20, backoffMaxMs: 100 },
      ...options,
      client: (user) => this.server.client(user),
    };
    this.startControlPlane();
  }

  /** Starts the controllers again after `stopControlPlane`. */
  startControlPlane(): void {
    this.#controlPlane = startControlPlane(this.#controlPlaneOptions);
  }

  async stopControlPlane(): Promise<void> {
    await this.#controlPlane?.[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stopControlPlane();
    for (const subscription of this.#subscriptions) subscription.close();
    await this.server[Symbol.asyncDispose]();
  }

  addClass(name: string, fields: object = {}): void {
    this.client.create(resources.classes, {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name },
      provisioner: 'x.example.com',
      ...fields,
    });
  }

  /** Creates a claim of 1Gi, ReadWriteOnce; a class of `undefined` leaves the field out. */
  addClaim(
    name: string,
    storageClassName?: string,
    { size = '1Gi', ...spec }: { size?: string; [field: string]: unknown } = {},
  ): Claim {
    return this.client.create(resources.claims, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name, namespace: 'default' },
      spec: {
        accessModes: ['ReadWriteOnce'],
        resources: { requests: { storage: size } },
        ...(storageClassName === undefined ? {} : { storageClassName }),
        ...spec,
      },
    }) as Claim;
  }

  /** Creates an NFS volume without a class, ReadWriteOnce, policy Retain. */
  addVolume(name: string, size: string, spec: object = {}): Volume {
    return this.client.create(resources.volumes, {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name },
      spec: {
        accessModes: ['ReadWriteOnce'],
        capacity: { storage: size },
        nfs: { server: 'nfs.example.com', path: `/${name}` },
        ...spec,
      },
    }) as Volume;
  }

  /** Creates a pod that uses the claims. */
  addPod(name: string, claims: string[], spec: object = {}): Pod {
    return this.client.create(resources.pods, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: 'default' },
      spec: {
        containers: [{ name: 'main', image: 'busybox' }],
        volumes: claims.map((claimName) => ({ name: `v-${claimName}`, persistentVolumeClaim: { claimName } })),
        ...spec,
      },
    }) as Pod;
  }

  claim(name: string): Claim | undefined {
    return getObject(this.client, resources.claims, { namespace: 'default', name });
  }

  volume(name: string): Volume | undefined {
    return getObject(this.client, resources.volumes, { name });
  }

  volumes(): Volume[] {
    return listObjects(this.client, resources.volumes);
  }

  pod(name: string): Pod | undefined {
    return getObject(this.client, resources.pods, { namespace: 'default', name });
  }

  deleteClaim(name: string): void {
    this.client.delete(resources.claims, { namespace: 'default', name });
  }

  deletePod(name: string): void {
    this.client.delete(resources.pods, { namespace: 'default', name });
  }

  /** The event about the object with the reason, if there is one; several with the same reason fail the test. */
  event(name: string, reason: string): StoredEvent | undefined {
    const found = this.events(name).filter((event) => event.reason === reason);
    assert.ok(found.length <= 1, `several events ${reason} about ${name}: ${found.map((e) => e.message).join('; ')}`);
    return found[0];
  }

  events(name: string): StoredEvent[] {
    return listObjects(this.client, eventsResource).filter((event) => event.involvedObject.name === name);
  }

  /** Resolves with what `read` finds, looking again after every change. @throws after eight seconds. */
  until<T>(what: string, read: () => T | undefined | false | null): Promise<T> {
    return new Promise((resolve, reject) => {
      const finish = (): void => {
        this.#checks.delete(check);
        clearTimeout(timer);
      };
      const check = (): void => {
        try {
          const value = read();
          if (value === undefined || value === false || value === null) return;
          finish();
          resolve(value);
        } catch (error) {
          finish();
          reject(error instanceof Error ? error : new Error(String(error)));
        }
      };
      const timer = setTimeout(() => {
        finish();
        reject(new Error(`waited in vain for: ${what}`));
      }, patienceMs);
      this.#checks.add(check);
      check();
    });
  }

  claimInPhase(name: string, phase: string): Promise<Claim> {
    return this.until(`claim ${name} ${phase}`, () => {
      const claim = this.claim(name);
      return claim?.status?.phase === phase && claim;
    });
  }

  volumeInPhase(name: string, phase: string): Promise<Volume> {
    return this.until(`volume ${name} ${phase}`, () => {
      const volume = this.volume(name);
      return volume?.status?.phase === phase && volume;
    });
  }

  podOnNode(name: string): Promise<string> {
    return this.until(`pod ${name} on a node`, () => this.pod(name)?.spec.nodeName);
  }

  eventAbout(name: string, reason: string): Promise<StoredEvent> {
    return this.until(`event ${reason} about ${name}`, () => this.event(name, reason));
  }

  #check(): void {
    for (const check of [...this.#checks]) check();
  }
}
