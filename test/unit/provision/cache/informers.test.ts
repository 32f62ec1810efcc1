import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { csiStorage, driverMigration } from '../../../../src/csi/migration/driver-migration.ts';
import { inTreePlugins } from '../../../../src/csi/migration/in-tree-plugins.ts';
import { readList } from '../../../../src/kube/cache/list-stream.ts';
import { SharedValues } from '../../../../src/kube/cache/store.ts';
import type { KubeObject } from '../../../../src/kube/kube-object.ts';
import type { ObjectDecoder } from '../../../../src/kube/protobuf/envelope.ts';
import { readProtobufList } from '../../../../src/kube/cache/protobuf-stream.ts';
import { claimTransform } from '../../../../src/provision/cache/cached-claim.ts';
import { isWholeVolume, storageHashes, volumeTransform } from '../../../../src/provision/cache/cached-volume.ts';
import { claimDecoder, type StorageSources, volumeDecoder } from '../../../../src/provision/cache/informers.ts';
import type { KeptFields } from '../../../../src/provision/cache/kept-fields.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../../../../src/provision/objects.ts';
import { codedDriver } from '../../../support/coded-objects.ts';

/** What an API server answered to a list, in both codings (scripts/record-codings.ts). */
function recordedList(plural: string): { json: Buffer; protobuf: Buffer } {
  const file = path.join(import.meta.dirname, '../../../integration/kube/recorded', `${plural}.json.gz`);
  const { list } = JSON.parse(gunzipSync(readFileSync(file)).toString('utf8')) as {
    list: { json: string; protobuf: string };
  };
  return { json: Buffer.from(list.json, 'base64'), protobuf: Buffer.from(list.protobuf, 'base64') };
}

async function* once(bytes: Buffer): AsyncGenerator<Uint8Array> {
  yield await Promise.resolve(bytes);
}

/** The cached forms of a recorded list in both codings. */
async function cachedForms(
  kind: string,
  list: { json: Buffer; protobuf: Buffer },
  { transform, decode }: { transform: (object: KubeObject) => KubeObject; decode: ObjectDecoder },
): Promise<{ inJson: KubeObject[]; inProtobuf: KubeObject[] }> {
  const [inJson, inProtobuf]: [KubeObject[], KubeObject[]] = [[], []];
  await readList(once(list.json), { onItem: (item) => inJson.push(transform(item)) });
  const onItem = (item: KubeObject): unknown => inProtobuf.push(transform(item));
  await readProtobufList(once(list.protobuf), { kind: `${kind}List`, decode, onItem });
  return { inJson, inProtobuf };
}

const volumes = recordedList('persistentvolumes');
const claims = recordedList('persistentvolumeclaims');
const isKnownProvisioner = (name: string): boolean => name === codedDriver;

describe('the cached form from protobuf is that from JSON', () => {
  for (const { name, fields } of [
    { name: 'no further fields', fields: undefined },
    { name: 'some annotations', fields: { annotations: ['example.com/note', 'absent'] } },
    { name: 'all annotations', fields: { annotations: 'all' } },
    { name: 'some labels', fields: { labels: ['app.kubernetes.io/name'] } },
    { name: 'all labels', fields: { labels: 'all' } },
    { name: 'a source that the form keeps a part of', fields: { spec: ['csi'] } },
    {
      name: 'fields of every form',
      fields: { spec: ['claimRef', 'nodeAffinity', 'capacity', 'mountOptions', 'volumeMode'] },
    },
  ] satisfies { name: string; fields: KeptFields<PersistentVolume> | undefined }[]) {
    test(`of volumes with ${name}`, async () => {
      const { inJson, inProtobuf } = await cachedForms('PersistentVolume', volumes, {
        transform: volumeTransform({ shared: new SharedValues(), isKnownProvisioner, fields }),
        decode: volumeDecoder((volume) => isWholeVolume(volume, isKnownProvisioner), fields),
      });
      assert.ok(inJson.length > 30);
      assert.deepEqual(inProtobuf, inJson);
    });
  }

  for (const { driver, storageSources } of [
    { driver: codedDriver, storageSources: ['csi'] },
    ...inTreePlugins.map(({ driverName, sourceField }) => ({
      driver: driverName,
      storageSources: ['csi', sourceField] as const,
    })),
    { driver: codedDriver, storageSources: 'all' },
  ] satisfies { driver: string; storageSources: StorageSources }[]) {
    test(`of volumes indexed by the storage of ${driver}, of which ${String(storageSources)} is read`, async () => {
      const isDriver = (name: string): boolean => name === driver;
      const { storageKeys } = csiStorage({ isDriver, migration: driverMigration(driver) });
      const { inJson, inProtobuf } = await cachedForms('PersistentVolume', volumes, {
        transform: volumeTransform({ shared: new SharedValues(), isKnownProvisioner, storageKeys }),
        decode: volumeDecoder((volume) => isWholeVolume(volume, isKnownProvisioner), undefined, storageSources),
      });
      assert.ok(inJson.some((volume) => storageHashes(volume as PersistentVolume).length > 0));
      assert.deepEqual(inProtobuf, inJson); // hashes included
      const hashes = (forms: KubeObject[]): unknown => forms.map((form) => storageHashes(form as PersistentVolume));
      assert.deepEqual(hashes(inProtobuf), hashes(inJson));
    });
  }

  for (const { name, fields } of [
    { name: 'no further fields', fields: undefined },
    { name: 'some annotations and all labels', fields: { annotations: ['absent'], labels: 'all' } },
    { name: 'all annotations', fields: { annotations: 'all' } },
    { name: 'fields of every form', fields: { spec: ['accessModes', 'resources', 'selector'] } },
  ] satisfies { name: string; fields: KeptFields<PersistentVolumeClaim> | undefined }[]) {
    test(`of claims with ${name}`, async () => {
      const { inJson, inProtobuf } = await cachedForms('PersistentVolumeClaim', claims, {
        transform: claimTransform(new SharedValues(), fields),
        decode: claimDecoder(fields),
      });
      assert.equal(inJson.length, 8);
      assert.deepEqual(inProtobuf, inJson);
    });
  }
});
