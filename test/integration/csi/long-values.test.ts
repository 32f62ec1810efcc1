/** Anyone who may create a claim may write 1.5 MB into it: errors, and so events and logs, quote little of it. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { PersistentVolumeClaim } from '../../../src/provision/objects.ts';
import { makeClaim, makeClass, Rig } from '../../support/csi-rig.ts';

const long = 'x'.repeat(100_000);
const cut = `${'x'.repeat(256)}… (100,000 characters)`;
const controller = ['CREATE_DELETE_VOLUME', 'CLONE_VOLUME', 'CREATE_DELETE_SNAPSHOT'];
const wrapped = (kind: string): string => `error getting handle for DataSource Type ${kind} by Name ${cut}: `;
const secret = {
  'csi.storage.k8s.io/provisioner-secret-name': "${pvc.annotations['a']}_",
  'csi.storage.k8s.io/provisioner-secret-namespace': 'ns1',
};

const cases: { title: string; claim: PersistentVolumeClaim; message: string }[] = [
  {
    title: 'the kind of a data source',
    claim: makeClaim({ dataSource: { apiGroup: 'example.com', kind: long, name: 'a' } }),
    message: `data source (${cut}) is not handled by the provisioner, assuming an external populator will provision it`,
  },
  {
    title: 'the claim to clone',
    claim: makeClaim({ dataSource: { kind: 'PersistentVolumeClaim', name: long } }),
    message: `${wrapped('PersistentVolumeClaim')}error getting PVC ${cut} (namespace "ns1") from api server: persistentvolumeclaim "${cut}" not found`,
  },
  {
    title: 'the snapshot to restore',
    claim: makeClaim({ dataSource: { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: long } }),
    message: `${wrapped('VolumeSnapshot')}error getting snapshot ${cut} from api server: `,
  },
  {
    title: 'the group of a snapshot',
    claim: makeClaim({ dataSource: { apiGroup: long, kind: 'VolumeSnapshot', name: 'a' } }),
    message: `the PVC source does not belong to the right APIGroup. Expected snapshot.storage.k8s.io, Got ${cut}`,
  },
  {
    title: 'an annotation that names the Secret',
    claim: makeClaim({}, { annotations: { a: long, 'volume.kubernetes.io/storage-provisioner': 'd.example.com' } }),
    message: `"\${pvc.annotations['a']}_" resolved to "${'x'.repeat(256)}… (100,001 characters)" which is not a valid secret name`,
  },
];

describe('a value of 100,000 characters is truncated to 256 in an error', () => {
  for (const { title, claim, message } of cases) {
    test(title, async () => {
      await using rig = await Rig.start({ controller });
      const { error } = await rig.provision(claim, makeClass(secret));
      assert.ok(error?.message.includes(message), error?.message.slice(0, 2000));
      assert.ok(error !== undefined && error.message.length < 2000);
    });
  }
});
