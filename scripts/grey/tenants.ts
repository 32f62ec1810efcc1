import { setTimeout as delay } from 'node:timers/promises';
import { inParallel } from '../../bench/bench-cluster.ts';
import type { KubeClient } from '../../src/kube/client/kube-client.ts';
import type { KubeObject, Resource } from '../../src/kube/kube-object.ts';
import {
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  type StorageClass,
  storageClasses,
} from '../../src/provision/objects.ts';
import type { StartedProcess } from '../../test/support/started-process.ts';
import type { SidecarOptions, Stage } from './stage.ts';

/** Max concurrent requests of the administrator. */
const width = 20;
/** How long the first claim of a sidecar may wait, in seconds. */
const startPatienceS = 120;
const namespaces: Resource = { group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace', namespaced: false };

export interface ClaimName {
  namespace: string;
  name: string;
}

/** The class of the claims that are served. */
export const goodClass = 'good';

export async function createNamespace({ client }: Stage, name: string): Promise<void> {
  await client.create<KubeObject>(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
}

/** @param parameters - for the driver, see tenant-driver.ts. */
export async function createClass(
  { client }: Stage,
  { name, provisioner, parameters = {} }: { name: string; provisioner: string; parameters?: Record<string, string> },
): Promise<void> {
  await client.create<StorageClass>(storageClasses, {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name },
    provisioner,
    parameters,
    reclaimPolicy: 'Delete',
  });
}

export async function createClaim(
  client: KubeClient,
  { namespace, name }: ClaimName,
  storageClassName: string,
  more: { annotations?: Record<string, string>; dataSource?: PersistentVolumeClaim['spec']['dataSource'] } = {},
): Promise<void> {
  const { annotations, dataSource } = more;
  await client.create<PersistentVolumeClaim>(persistentVolumeClaims, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { namespace, name, ...(annotations && { annotations }) },
    spec: {
      storageClassName,
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '1Gi' } },
      ...(dataSource && { dataSource }),
    },
  });
}

/** Creates `NAME-0` and so on, many at a time. */
export async function createClaims(
  { client }: Stage,
  { namespace, name, claims, className, annotations }: ClaimLoad,
): Promise<void> {
  await inParallel(claims, width, (index) =>
    createClaim(client, { namespace, name: `${name}-${index}` }, className, annotations && { annotations }),
  );
}

export interface ClaimLoad extends ClaimName {
  /** The number of claims. */
  claims: number;
  className: string;
  annotations?: Record<string, string>;
}

/** Seconds until the claim is bound; `Infinity` if it is not bound within `patienceS`. */
export async function secondsToBound(
  { client }: Stage,
  claim: ClaimName,
  { fromMs = performance.now(), patienceS }: { fromMs?: number; patienceS: number },
): Promise<number> {
  for (;;) {
    const { status } = await client.get<PersistentVolumeClaim>(persistentVolumeClaims, claim);
    const passedS = (performance.now() - fromMs) / 1000;
    if (status?.phase === 'Bound') return passedS;
    if (passedS > patienceS) return Infinity;
    await delay(25);
  }
}

/** Creates a claim and waits. @returns the seconds until it is bound, or `Infinity`. */
export async function secondsOf(
  stage: Stage,
  claim: ClaimName,
  { className = goodClass, patienceS }: { className?: string; patienceS: number },
): Promise<number> {
  const fromMs = performance.now();
  await createClaim(stage.client, claim, className);
  return await secondsToBound(stage, claim, { fromMs, patienceS });
}

/**
 * Creates a class that is served, starts a sidecar, and waits until it has provisioned a first claim of the class.
 *
 * @throws when the claim is not bound in time.
 */
export async function startServing(
  stage: Stage,
  { className = goodClass, ...options }: SidecarOptions & { className?: string } = {},
): Promise<StartedProcess> {
  await createClass(stage, { name: className, provisioner: (options.driver ?? stage.drivers[0])?.name ?? '' });
  const sidecar = await stage.start(options);
  const claim = { namespace: 'default', name: `first-${className}` };
  if ((await secondsOf(stage, claim, { className, patienceS: startPatienceS })) === Infinity)
    throw new Error(`no claim was served within ${startPatienceS} s\n${sidecar.log().slice(-2000)}`);
  return sidecar;
}
