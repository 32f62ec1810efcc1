import {
  ApiException,
  ApiextensionsV1Api,
  AppsV1Api,
  CoordinationV1Api,
  CoreV1Api,
  CustomObjectsApi,
  KubeConfig,
  KubernetesObjectApi,
  StorageV1Api,
  VersionApi,
  type CoreV1Event,
  type V1PersistentVolume,
  type V1PersistentVolumeClaim,
} from '@kubernetes/client-node';

/** The tests' own hands in the cluster: the public client library, not the code under test. */
export interface Admin {
  apps: AppsV1Api;
  coordination: CoordinationV1Api;
  core: CoreV1Api;
  custom: CustomObjectsApi;
  extensions: ApiextensionsV1Api;
  objects: KubernetesObjectApi;
  storage: StorageV1Api;
  version: VersionApi;
}

/** Reads a kubeconfig, also one for plain HTTP, which the library only accepts together with a TLS setting. */
export function loadKubeconfig(path: string): KubeConfig {
  const config = new KubeConfig();
  config.loadFromFile(path);
  config.clusters = config.clusters.map((cluster) =>
    cluster.server.startsWith('http:') ? { ...cluster, skipTLSVerify: true } : cluster,
  );
  return config;
}

export function connectAdmin(kubeconfig: string): Admin {
  const config = loadKubeconfig(kubeconfig);
  return {
    apps: config.makeApiClient(AppsV1Api),
    coordination: config.makeApiClient(CoordinationV1Api),
    core: config.makeApiClient(CoreV1Api),
    custom: config.makeApiClient(CustomObjectsApi),
    extensions: config.makeApiClient(ApiextensionsV1Api),
    objects: KubernetesObjectApi.makeApiClient(config),
    storage: config.makeApiClient(StorageV1Api),
    version: config.makeApiClient(VersionApi),
  };
}

/** The answer of a read, or `undefined` where there is no such object. */
export async function ifFound<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof ApiException && error.code === 404) return undefined;
    throw error;
  }
}

/** A claim with the volume it is bound to. */
export interface BoundClaim {
  claim: V1PersistentVolumeClaim;
  volume: V1PersistentVolume;
}

/** @throws while the claim is not bound. */
export async function boundClaim({ core }: Admin, namespace: string, name: string): Promise<BoundClaim> {
  const claim = await core.readNamespacedPersistentVolumeClaim({ name, namespace });
  const phase = claim.status?.phase;
  if (phase !== 'Bound') throw new Error(`claim ${name} is ${phase ?? 'without phase'}, not Bound`);
  return { claim, volume: await core.readPersistentVolume({ name: claim.spec?.volumeName ?? '' }) };
}

/** @throws while the PersistentVolume is there. */
export async function assertVolumeGone({ core }: Admin, name: string): Promise<void> {
  const volume = await ifFound(core.readPersistentVolume({ name }));
  if (volume !== undefined) throw new Error(`volume ${name} is still ${volume.status?.phase ?? 'there'}`);
}

/** Whether the API server says that it serves a resource, for tests that need one which not every Kubernetes has. */
export async function serves(
  { custom }: Admin,
  { group, version, plural }: { group: string; version: string; plural: string },
): Promise<boolean> {
  const list = await ifFound(custom.getAPIResources({ group, version }));
  return list?.resources.some(({ name }) => name === plural) ?? false;
}

export function servesAttributesClasses(admin: Admin): Promise<boolean> {
  return serves(admin, { group: 'storage.k8s.io', version: 'v1', plural: 'volumeattributesclasses' });
}

/** Events about one object, which for cluster-wide ones are in `default`, in the order in which they first happened. */
export async function eventsOf({ core }: Admin, namespace: string, uid: string): Promise<CoreV1Event[]> {
  const { items } = await core.listNamespacedEvent({ namespace, fieldSelector: `involvedObject.uid=${uid}` });
  const first = (event: CoreV1Event): number =>
    (event.firstTimestamp ?? event.metadata.creationTimestamp)?.getTime() ?? 0;
  return items.sort((a, b) => first(a) - first(b));
}
