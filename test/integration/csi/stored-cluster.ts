/** An API server whose objects were there before it started, exactly as given: UIDs and resource versions included. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ApiServer, type ApiServerOptions } from '../../../sandbox/api/api-server.ts';
import type { SandboxObject } from '../../../sandbox/api/client.ts';

/** Names under which the server keeps the kinds that tests bring along. */
const storages: Record<string, string> = {
  CSIDriver: 'csidrivers.storage.k8s.io',
  CSINode: 'csinodes.storage.k8s.io',
  Lease: 'leases.coordination.k8s.io',
  Node: 'nodes',
  PersistentVolume: 'persistentvolumes',
  PersistentVolumeClaim: 'persistentvolumeclaims',
  ReferenceGrant: 'referencegrants.gateway.networking.k8s.io',
  Secret: 'secrets',
  StorageClass: 'storageclasses.storage.k8s.io',
  VolumeAttributesClass: 'volumeattributesclasses.storage.k8s.io',
  VolumeSnapshot: 'volumesnapshots.snapshot.storage.k8s.io',
  VolumeSnapshotContent: 'volumesnapshotcontents.snapshot.storage.k8s.io',
};

/** A running API server with the objects; dispose it. */
export class StoredCluster implements AsyncDisposable {
  readonly url: string;
  readonly server: ApiServer;
  readonly #folder: string;

  private constructor(parts: { url: string; server: ApiServer; folder: string }) {
    this.url = parts.url;
    this.server = parts.server;
    this.#folder = parts.folder;
  }

  /** Nothing is checked or defaulted: also what no server would accept today can be stored. */
  static async start(
    objects: readonly SandboxObject[],
    options: Pick<ApiServerOptions, 'versions' | 'disabledResources'> = {},
  ): Promise<StoredCluster> {
    const folder = await mkdtemp(join(tmpdir(), 'stored-cluster-'));
    const path = join(folder, 'objects.jsonl');
    const entries = objects.map((object, index) => JSON.stringify(entry(object, index + 1)) + '\n');
    await writeFile(path, entries.join(''));
    const server = new ApiServer({ ...options, persistence: { path }, namespaces: ['default', 'ns1', 'ns2'] });
    const { url } = await server.start();
    return new StoredCluster({ url, server, folder });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server.close();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

/** One line of the server's object log. */
function entry(object: SandboxObject, serial: number): object {
  const { kind = '', metadata } = object;
  const storage = storages[kind];
  if (storage === undefined) throw new Error(`no storage is known for kind ${kind}`);
  const { namespace = '', name } = metadata;
  const complete = {
    ...object,
    metadata: { uid: `uid-${serial}`, resourceVersion: String(serial), creationTimestamp, ...metadata },
  };
  return { rv: serial, op: 'put', storage, key: `${namespace}\0${name}`, object: complete };
}

const creationTimestamp = '2026-01-01T00:00:00Z';
