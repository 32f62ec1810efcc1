import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { PersistentVolume, PersistentVolumeSpec, VolumeSources } from '../../../../src/provision/objects.ts';
import { checkStored } from '../../../../src/provision/volume/stored-volume.ts';

/** Of each kind of source one, with what says how it is used in another way, and others that are other storage. */
const sources: { [Kind in keyof VolumeSources]: [object, object, ...object[]] } = {
  csi: [
    { driver: 'd', volumeHandle: 'v', fsType: 'ext4' },
    { driver: 'd', volumeHandle: 'v' },
    { driver: 'd', volumeHandle: 'w' },
    { driver: 'e', volumeHandle: 'v' },
  ],
  nfs: [
    { server: 's', path: '/p' },
    { server: 's', path: '/p', readOnly: true },
    { server: 's', path: '/q' },
    { server: 't', path: '/p' },
  ],
  hostPath: [{ path: '/p' }, { path: '/p', type: '' }, { path: '/q' }],
  local: [{ path: '/p' }, { path: '/p', fsType: 'xfs' }, { path: '/q' }],
  iscsi: [
    { targetPortal: 'p', iqn: 'i', lun: 0 },
    { targetPortal: 'p', iqn: 'i', lun: 0, iscsiInterface: 'default' },
    { targetPortal: 'p', iqn: 'i', lun: 1 },
  ],
  fc: [
    { targetWWNs: ['a', 'b'], lun: 0 },
    { targetWWNs: ['a', 'b'], lun: 0, fsType: 'ext4' },
    { targetWWNs: ['a', 'b'], lun: 1 },
    { targetWWNs: ['a'], lun: 0 },
    { wwids: ['a'] },
  ],
  flexVolume: [
    { driver: 'v/d', options: { id: '1', pool: 'a' } },
    { driver: 'v/d', options: { pool: 'a', id: '1' }, readOnly: true },
    { driver: 'v/d', options: { id: '2', pool: 'a' } },
    { driver: 'v/d' },
    { driver: 'v/e', options: { id: '1', pool: 'a' } },
  ],
  awsElasticBlockStore: [{ volumeID: 'v' }, { volumeID: 'v', fsType: 'ext4' }, { volumeID: 'v', partition: 1 }],
  azureDisk: [{ diskURI: 'u' }, { diskURI: 'u', diskName: 'n' }, { diskURI: 'w' }],
  azureFile: [
    { secretName: 's', shareName: 'a' },
    { secretName: 's', shareName: 'a', readOnly: true },
    { secretName: 's', shareName: 'b' },
  ],
  cinder: [{ volumeID: 'v' }, { volumeID: 'v', readOnly: true }, { volumeID: 'w' }],
  gcePersistentDisk: [{ pdName: 'd' }, { pdName: 'd', readOnly: true }, { pdName: 'e' }],
  portworxVolume: [{ volumeID: 'v' }, { volumeID: 'v', readOnly: true }, { volumeID: 'w' }],
  vsphereVolume: [{ volumePath: 'p' }, { volumePath: 'p', fsType: 'ext4' }, { volumePath: 'q' }],
};

function volume(source: Partial<PersistentVolumeSpec>): PersistentVolume {
  const claimRef = { namespace: 'ns', name: 'c', uid: 'u' };
  return { metadata: { name: 'pv' }, spec: { claimRef, ...source } };
}

describe('a volume that is stored under the name of a new one', () => {
  for (const [kind, [made, usedOtherwise, ...others]] of Object.entries(sources)) {
    test(`of kind ${kind} is that one, however it is used`, () => {
      for (const stored of [made, usedOtherwise]) checkStored(volume({ [kind]: stored }), volume({ [kind]: made }));
    });

    test(`of kind ${kind} is refused with other storage`, () => {
      for (const stored of [...others.map((other) => ({ [kind]: other })), {}]) {
        assert.throws(() => checkStored(volume(stored), volume({ [kind]: made })), { name: 'VolumeTakenError' });
      }
    });
  }
});
