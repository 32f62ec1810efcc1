import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Cause } from '../../../src/explain/causes/cause.ts';
import type { Verdict } from '../../../src/explain/explanation.ts';
import { driverName } from '../../support/api-scene.ts';
import { ExplainRig } from './rig.ts';

const minute = 60_000;
const claimRef = { namespace: 'ns1', name: 'c', uid: 'u' };
const identity = 'storage.kubernetes.io/csiProvisionerIdentity';

/** A volume that was released so long ago. */
const released = (rig: ExplainRig, msAgo: number): void => {
  const volume = rig.addVolume('v', { claimRef }, 'Released');
  const lastPhaseTransitionTime = new Date(Date.now() - msAgo).toISOString().replace(/\.\d+Z$/, 'Z');
  rig.changeStatus('volumes', { ...volume, status: { phase: 'Released', lastPhaseTransitionTime } });
};

/** A volume with its claim. */
const bound = (rig: ExplainRig): void => {
  const { uid } = rig.addClaim({ volumeName: 'v' }, { phase: 'Bound' }).metadata;
  const finalizers = ['kubernetes.io/pv-protection'];
  rig.addVolume('v', { claimRef: { ...claimRef, uid } }, 'Bound', { finalizers });
};

const attached = (rig: ExplainRig): void => {
  rig.add('attachments', {
    metadata: { name: 'csi-1' },
    spec: { attacher: driverName, nodeName: 'n1', source: { persistentVolumeName: 'v' } },
  });
};

const provisionedBy = 'pv.kubernetes.io/provisioned-by';
const finalizer = 'external-provisioner.volume.kubernetes.io/finalizer';
const moved = { claimRef, csi: { driver: 'new.example.com', volumeHandle: 'h' } };
const leftText =
  `persistentvolume v is left as it is: its annotation ${provisionedBy} names ${driverName}, but its storage is of CSI driver ` +
  'new.example.com. Correct the annotation, or set the reclaim policy to Retain';

const earlierCallText = (end: string): string =>
  `persistentvolume v is deleted after ${end}: until then an earlier call may still be creating its storage`;

/** What the cluster has, and what `why pv/v` says of it. */
const rows: readonly {
  name: string;
  arrange: (rig: ExplainRig) => void;
  /** How much later somebody asks. */
  laterMs?: number;
  verdict: Verdict;
  cause: Cause;
  says: RegExp;
}[] = [
  {
    name: 'no volume',
    arrange: () => undefined,
    verdict: 'unknown',
    cause: 'not-found',
    says: /no PersistentVolume v/,
  },
  {
    name: 'a bound volume',
    arrange: (rig) => bound(rig),
    verdict: 'bound',
    cause: 'in-use',
    says: /Claim ns1\/c is bound to it/,
  },
  {
    name: 'a bound volume that is being deleted',
    arrange(rig) {
      bound(rig);
      rig.delete('volumes', 'v');
    },
    verdict: 'stuck',
    cause: 'in-use',
    says: /is being deleted, and claim ns1\/c is still bound/,
  },
  {
    name: 'a released volume with policy Retain',
    arrange: (rig) => rig.addVolume('v', { claimRef, persistentVolumeReclaimPolicy: 'Retain' }, 'Released'),
    verdict: 'bound',
    cause: 'retained',
    says: /its reclaim policy is Retain/,
  },
  {
    name: 'a volume that nobody claimed',
    arrange: (rig) => rig.addVolume('v'),
    verdict: 'bound',
    cause: 'retained',
    says: /no claim was bound to it/,
  },
  {
    name: 'a released volume that a node still has',
    arrange(rig) {
      rig.addProvisioner();
      rig.addVolume('v', { claimRef }, 'Released');
      attached(rig);
    },
    verdict: 'waiting',
    cause: 'attached',
    says: /attached to node n1 \(VolumeAttachment csi-1\)/,
  },
  {
    name: 'a driver that cannot delete it',
    arrange(rig) {
      rig.addProvisioner();
      const volume = rig.addVolume('v', { claimRef }, 'Released');
      rig.addEvent(volume, 'VolumeFailedDelete', 'rpc error: code = Internal desc = on fire', { count: 3 });
    },
    verdict: 'stuck',
    cause: 'delete-error',
    says: /Its deletion failed 3 times .* code = Internal desc = on fire/,
  },
  {
    name: 'storage that another volume has, too',
    arrange(rig) {
      rig.addProvisioner();
      const volume = rig.addVolume('v', { claimRef }, 'Released');
      const text = 'persistentvolume v has the same storage as persistentvolume imported, which is not to be deleted';
      rig.addEvent(volume, 'VolumeDeletionWaiting', text, { msAgo: 2 * minute });
      rig.addEvent(volume, 'VolumeFailedDelete', 'busy', { msAgo: 3 * minute });
    },
    verdict: 'stuck',
    cause: 'shared-storage',
    says: /PersistentVolume imported has the same storage/,
  },
  {
    name: 'storage that another volume had, too, before the driver could not delete it',
    arrange(rig) {
      rig.addProvisioner();
      const volume = rig.addVolume('v', { claimRef }, 'Released');
      const text = 'persistentvolume v has the same storage as persistentvolume old, which is deleted first';
      rig.addEvent(volume, 'VolumeDeletionWaiting', text, { msAgo: 3 * minute });
      rig.addEvent(volume, 'VolumeFailedDelete', 'busy', { msAgo: 2 * minute });
    },
    verdict: 'stuck',
    cause: 'delete-error',
    says: /busy/,
  },
  {
    name: 'storage of which another volume goes first',
    arrange(rig) {
      rig.addProvisioner();
      const volume = rig.addVolume('v', { claimRef }, 'Released');
      const text = 'persistentvolume v has the same storage as persistentvolume old, which is deleted first';
      rig.addEvent(volume, 'VolumeDeletionWaiting', text);
    },
    verdict: 'waiting',
    cause: 'shared-storage',
    says: /PersistentVolume old has the same storage/,
  },
  {
    name: 'storage of another CSI driver than the annotation names',
    arrange(rig) {
      rig.addProvisioner();
      rig.addVolume('v', moved, 'Released', { annotations: { [provisionedBy]: driverName } });
    },
    verdict: 'stuck',
    cause: 'other-source',
    says: /^The volume is left as it is: its annotation \S+ names d\.example\.com, but its storage is of CSI driver new\.example\.com\.$/,
  },
  {
    name: 'storage of no CSI driver, where the annotation names one',
    arrange(rig) {
      rig.addProvisioner();
      const nfs = { claimRef, csi: undefined, nfs: { server: 's', path: '/p' } };
      rig.addVolume('v', nfs, 'Released', { annotations: { [provisionedBy]: driverName } });
    },
    verdict: 'stuck',
    cause: 'other-source',
    says: /but its source is nfs\.$/,
  },
  {
    name: 'storage that a provisioner says is not its own, without a CSIDriver',
    arrange(rig) {
      const volume = rig.addVolume('v', moved, 'Released', { annotations: { [provisionedBy]: driverName } });
      rig.addEvent(volume, 'VolumeDeletionWaiting', leftText);
    },
    verdict: 'stuck',
    cause: 'other-source',
    says: /but its storage is of CSI driver new\.example\.com/,
  },
  {
    name: 'storage that is not of an in-tree plugin, as its provisioner says',
    arrange(rig) {
      const plugin = 'kubernetes.io/aws-ebs';
      const annotations = { [provisionedBy]: plugin, 'pv.kubernetes.io/migrated-to': driverName };
      const volume = rig.addVolume('v', moved, 'Released', { annotations });
      rig.addEvent(volume, 'VolumeDeletionWaiting', leftText.replace(`names ${driverName}`, `names ${plugin}`));
    },
    verdict: 'stuck',
    cause: 'other-source',
    says: /names kubernetes\.io\/aws-ebs, but/,
  },
  {
    name: 'storage of another CSI driver, with our finalizer and being deleted, to be kept',
    arrange(rig) {
      rig.addProvisioner();
      const metadata = { annotations: { [provisionedBy]: driverName }, finalizers: [finalizer] };
      rig.addVolume('v', { ...moved, persistentVolumeReclaimPolicy: 'Retain' }, 'Released', metadata);
      rig.delete('volumes', 'v');
    },
    verdict: 'stuck',
    cause: 'other-source',
    says: /but its storage is of CSI driver new\.example\.com/,
  },
  {
    name: 'a volume whose annotation was corrected after the event',
    arrange(rig) {
      rig.addProvisioner();
      const volume = rig.addVolume('v', { claimRef }, 'Released', { annotations: { [provisionedBy]: driverName } });
      rig.addEvent(volume, 'VolumeDeletionWaiting', leftText);
    },
    verdict: 'waiting',
    cause: 'deleting',
    says: /has to delete the storage, and no attempt has failed/,
  },
  {
    name: 'a volume of a provisioner that may make volumes of any CSI driver',
    arrange(rig) {
      const volume = rig.addVolume('v', moved, 'Released', { annotations: { [provisionedBy]: driverName } });
      rig.addEvent(volume, 'VolumeFailedDelete', 'busy');
    },
    verdict: 'stuck',
    cause: 'delete-error',
    says: /busy/,
  },
  {
    name: 'a volume of an in-tree plugin that is annotated for its driver',
    arrange(rig) {
      rig.addProvisioner();
      const ebs = { claimRef, csi: undefined, awsElasticBlockStore: { volumeID: 'vol-1' } };
      rig.addVolume('v', ebs, 'Released', { annotations: { [provisionedBy]: driverName } });
    },
    verdict: 'waiting',
    cause: 'deleting',
    says: /no attempt has failed/,
  },
  {
    name: 'a call of a previous process that may not have ended yet',
    arrange(rig) {
      rig.addProvisioner();
      const volume = rig.addVolume('v', { claimRef }, 'Released');
      rig.addEvent(volume, 'VolumeDeletionWaiting', earlierCallText('2126-01-01T00:00:00.000Z'));
    },
    verdict: 'waiting',
    cause: 'deleting',
    says: /A call may still be creating the storage: it is deleted after 2126-01-01T00:00:00\.000Z/,
  },
  {
    name: 'a call of a previous process that must have ended',
    arrange(rig) {
      rig.addProvisioner();
      const volume = rig.addVolume('v', { claimRef }, 'Released');
      rig.addEvent(volume, 'VolumeDeletionWaiting', earlierCallText('2026-01-01T00:00:00.000Z'));
    },
    verdict: 'waiting',
    cause: 'deleting',
    says: /no attempt has failed/,
  },
  {
    name: 'a call without a known end',
    arrange(rig) {
      rig.addProvisioner();
      const volume = rig.addVolume('v', { claimRef }, 'Released');
      const text = 'persistentvolume v is deleted once a call has ended that may still be creating its storage';
      rig.addEvent(volume, 'VolumeDeletionWaiting', text);
    },
    verdict: 'waiting',
    cause: 'deleting',
    says: /A call may still be creating the storage: it is deleted once that call has ended/,
  },
  {
    name: 'a volume that is no longer attached, as an old event says',
    arrange(rig) {
      rig.addProvisioner();
      const volume = rig.addVolume('v', { claimRef }, 'Released');
      rig.addEvent(volume, 'VolumeDelete', 'persistentvolume v is still attached to node n1, waiting for detach');
    },
    verdict: 'waiting',
    cause: 'deleting',
    says: /no attempt has failed/,
  },
  {
    name: 'a volume of which the provisioner says that it is in use, which is newer than a failure',
    arrange(rig) {
      rig.addProvisioner();
      const volume = rig.addVolume('v', { claimRef }, 'Released');
      rig.addEvent(volume, 'VolumeFailedDelete', 'on fire', { msAgo: 3 * minute });
      rig.addEvent(volume, 'VolumeDelete', 'a snapshot hangs on it', { msAgo: 2 * minute });
    },
    verdict: 'waiting',
    cause: 'deleting',
    says: /postponed 2 min ago; it will be retried\. Reason: a snapshot hangs on it/,
  },
  {
    name: 'a volume that was in use before its deletion failed',
    arrange(rig) {
      rig.addProvisioner();
      const volume = rig.addVolume('v', { claimRef }, 'Released');
      rig.addEvent(volume, 'VolumeDelete', 'a snapshot hangs on it', { msAgo: 3 * minute });
      rig.addEvent(volume, 'VolumeFailedDelete', 'on fire', { msAgo: 2 * minute });
    },
    verdict: 'stuck',
    cause: 'delete-error',
    says: /Last error: on fire/,
  },
  {
    name: 'a volume of a CSI driver that is Failed',
    arrange(rig) {
      rig.addProvisioner();
      rig.addVolume('v', { claimRef }, 'Failed');
    },
    verdict: 'stuck',
    cause: 'delete-error',
    says: /^The volume is Failed, and its provisioner deletes only those that are Released/,
  },
  {
    name: 'a driver that nobody has installed',
    arrange: (rig) => rig.addVolume('v', { claimRef }, 'Released'),
    verdict: 'stuck',
    cause: 'no-deleter',
    says: /no sign of a provisioner for d\.example\.com/,
  },
  {
    name: 'a provisioner that is away',
    arrange(rig) {
      rig.addProvisioner({ renewedMsAgo: 5 * minute });
      rig.addVolume('v', { claimRef }, 'Released');
    },
    verdict: 'stuck',
    cause: 'no-deleter',
    says: /has no leader: /,
  },
  {
    name: 'a volume of a node that is gone',
    arrange(rig) {
      rig.add('drivers', { metadata: { name: driverName }, spec: {} });
      const volumeAttributes = { [identity]: `1700000000000-1234-${driverName}-n-9` };
      rig.addVolume('v', { claimRef, csi: { driver: driverName, volumeHandle: 'h', volumeAttributes } }, 'Released');
    },
    verdict: 'stuck',
    cause: 'no-deleter',
    says: /created on node n-9\. .* no longer exists/,
  },
  {
    name: 'a volume of nobody',
    arrange: (rig) => rig.addVolume('v', { claimRef, csi: undefined, nfs: { server: 's', path: '/p' } }, 'Released'),
    verdict: 'stuck',
    cause: 'no-deleter',
    says: /names no provisioner/,
  },
  {
    name: 'a volume that is about to be deleted',
    arrange(rig) {
      rig.addProvisioner();
      rig.addVolume('v', { claimRef }, 'Released');
    },
    verdict: 'waiting',
    cause: 'deleting',
    says: /has to delete the storage, and no attempt has failed/,
  },
  {
    name: 'a volume in the queue of a leader that has much to delete',
    arrange(rig) {
      rig.addProvisioner();
      released(rig, 50 * minute);
    },
    verdict: 'waiting',
    cause: 'deleting',
    says: /no attempt has failed/,
  },
  {
    name: 'a volume that the leader passes over',
    arrange(rig) {
      rig.addProvisioner();
      released(rig, 200 * minute);
    },
    verdict: 'stuck',
    cause: 'no-deleter',
    says: /released 3 h ago, and d\.example\.com has recorded no attempt/,
  },
  {
    name: 'a volume of an installed driver without a Lease, of which nothing is heard',
    arrange(rig) {
      rig.add('drivers', { metadata: { name: driverName }, spec: {} });
      released(rig, 100 * minute);
    },
    verdict: 'stuck',
    cause: 'no-deleter',
    says: /released 100 min ago, and d\.example\.com has recorded no attempt/,
  },
  {
    name: 'a retained volume of whose name a later claim exists',
    arrange(rig) {
      rig.addVolume('v', { claimRef, persistentVolumeReclaimPolicy: 'Retain' }, 'Released');
      rig.addClaim();
    },
    verdict: 'bound',
    cause: 'retained',
    says: /Claim ns1\/c is a later one of the same name\.$/,
  },
  {
    name: 'a retained volume that is deleted and held by somebody',
    arrange(rig) {
      const finalizers = ['external-attacher/d-example-com'];
      rig.addVolume('v', { claimRef, persistentVolumeReclaimPolicy: 'Retain' }, 'Released', { finalizers });
      rig.delete('volumes', 'v');
    },
    laterMs: 5 * minute,
    verdict: 'stuck',
    cause: 'deleting',
    says: /only held by external-attacher\/d-example-com of the driver's external-attacher/,
  },
];

describe('why of a volume', () => {
  for (const { name, arrange, laterMs = 0, verdict, cause, says } of rows) {
    test(`names ${cause} for ${name}`, async () => {
      await using rig = await ExplainRig.start();
      arrange(rig);
      const explanation = await rig.explain({ volume: 'v' }, { laterMs });
      assert.deepEqual(
        { verdict: explanation.verdict, cause: explanation.cause },
        { verdict, cause },
        JSON.stringify(explanation, undefined, 2),
      );
      assert.match(explanation.message, says);
      assert.match(explanation.cure, verdict === 'bound' ? /^$|^\w+ \w+/ : /^\w+ \w+/, 'what to do is said in words');
      assert.ok(rig.requests.length < 15, rig.requests.join(', '));
    });
  }

  test('finds its attachment among those of a large cluster, which are read in pages', async () => {
    await using rig = await ExplainRig.start();
    rig.addProvisioner();
    rig.addVolume('v', { claimRef }, 'Released');
    for (let number = 0; number < 4100; number++) {
      const source = { persistentVolumeName: `other-${number}` };
      rig.add('attachments', {
        metadata: { name: `a-${number}` },
        spec: { attacher: driverName, nodeName: 'n', source },
      });
    }
    const pages = (): number => rig.requests.filter((request) => request === 'list volumeattachments').length;
    assert.equal((await rig.explain({ volume: 'v' })).cause, 'deleting');
    assert.equal(pages(), 3);
    attached(rig);
    assert.equal((await rig.explain({ volume: 'v' })).cause, 'attached');
    assert.equal(pages(), 3);
  });

  for (const { verb, resource } of [
    { verb: 'list', resource: 'volumeattachments' },
    { verb: 'list', resource: 'events' },
    { verb: 'list', resource: 'leases' },
    { verb: 'get', resource: 'persistentvolumes' },
  ]) {
    test(`without the right to ${verb} ${resource} is unknown, and says so`, async () => {
      await using rig = await ExplainRig.start();
      rig.addProvisioner();
      rig.addVolume('v', { claimRef }, 'Released');
      assert.equal((await rig.explain({ volume: 'v' })).cause, 'deleting', 'with all rights');
      rig.forbid(verb, resource);
      const { cause, message } = await rig.explain({ volume: 'v' });
      assert.equal(cause, null);
      assert.match(message, new RegExp(`the permission to ${verb} ${resource}\\S* .*is missing`));
    });
  }
});
