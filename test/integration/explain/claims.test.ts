import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Cause } from '../../../src/explain/causes/cause.ts';
import type { Explanation, Verdict } from '../../../src/explain/explanation.ts';
import { driverName } from '../../support/api-scene.ts';
import { ExplainRig } from './rig.ts';

const minute = 60_000;

/** What the cluster has, and what `why ns1/c` says of it. */
interface Row {
  name: string;
  arrange: (rig: ExplainRig) => void;
  /** How much later somebody asks. */
  laterMs?: number;
  verdict: Verdict;
  cause: Cause;
  says: RegExp;
  /** What to do, where that is checked. */
  cure?: RegExp;
}

const usual = (rig: ExplainRig): void => {
  rig.addClass();
  rig.addProvisioner();
};
const snapshotGroup = 'snapshot.storage.k8s.io';
const fromSnapshot = { dataSource: { apiGroup: snapshotGroup, kind: 'VolumeSnapshot', name: 's' } };
const fromClaim = { dataSource: { kind: 'PersistentVolumeClaim', name: 'src' } };
const late = { volumeBindingMode: 'WaitForFirstConsumer' };
const selectedNodeKey = 'volume.kubernetes.io/selected-node';
const selected = (node: string): { annotations: Record<string, string> } => ({
  annotations: {
    'volume.kubernetes.io/storage-provisioner': driverName,
    [selectedNodeKey]: node,
  },
});
const notHandedOver = { annotations: {} };

const rows: readonly Row[] = [
  {
    name: 'a bound claim',
    arrange: (rig) => rig.addClaim({ volumeName: 'v' }, { phase: 'Bound' }),
    verdict: 'bound',
    cause: 'bound',
    says: /bound to PersistentVolume v\./,
  },
  ...(
    [
      ['that has the labels of its volume', { zone: 'a', rack: '1' }, [{ zone: 'a', rack: '1' }], false],
      ['that lacks a label of its volume', { zone: 'a' }, [{ zone: 'a', rack: '1' }], true],
      ['with another label than its volume', { zone: 'a', rack: '2' }, [{ zone: 'a', rack: '1' }], true],
      ['that has the labels of one of several terms', { zone: 'b' }, [{ zone: 'a' }, { zone: 'b' }], false],
      ['whose volume can be used everywhere', { zone: 'a' }, [], false],
      ['that is gone', undefined, [{ zone: 'a' }], false],
    ] as const
  ).map(([name, labels, places, excluded]): Row => ({
    name: `a bound claim, and a selected node ${name}`,
    arrange: (rig) => {
      rig.addClaim({ volumeName: 'v' }, { phase: 'Bound', ...selected('n1') });
      const nodeSelectorTerms = places.map((place) => ({
        matchExpressions: Object.entries(place).map(([key, value]) => ({ key, operator: 'In', values: [value] })),
      }));
      rig.addVolume('v', { ...(places.length > 0 && { nodeAffinity: { required: { nodeSelectorTerms } } }) }, 'Bound');
      if (labels !== undefined) rig.add('nodes', { metadata: { name: 'n1', labels: { ...labels } } });
    },
    verdict: 'bound',
    cause: 'bound',
    says: excluded
      ? /bound to PersistentVolume v\. The node that was selected for it, n1, is not/
      : /PersistentVolume v\.$/,
    ...(excluded && { cure: /Start the Pod on a node that the volume allows/ }),
  })),
  { name: 'no claim', arrange: () => undefined, verdict: 'unknown', cause: 'not-found', says: /no claim ns1\/c/ },
  {
    name: 'a claim that names no class',
    arrange: (rig) => rig.addClaim({ storageClassName: undefined }, notHandedOver),
    verdict: 'stuck',
    cause: 'no-class',
    says: /names no StorageClass/,
  },
  {
    name: 'a class that does not exist',
    arrange: (rig) => rig.addClaim({}, notHandedOver),
    verdict: 'stuck',
    cause: 'class-not-found',
    says: /StorageClass sc does not exist/,
  },
  {
    name: 'an empty class',
    arrange: (rig) => rig.addClaim({ storageClassName: '' }, notHandedOver),
    verdict: 'stuck',
    cause: 'static-class',
    says: /storageClassName ""/,
  },
  {
    name: 'a class without a provisioner',
    arrange(rig) {
      rig.addClass({ provisioner: 'kubernetes.io/no-provisioner' });
      rig.addClaim({}, notHandedOver);
    },
    verdict: 'stuck',
    cause: 'static-class',
    says: /provisions no volumes/,
  },
  {
    name: 'a named volume that is missing',
    arrange: (rig) => rig.addClaim({ volumeName: 'v' }, notHandedOver),
    verdict: 'stuck',
    cause: 'waits-for-volume',
    says: /PersistentVolume v, which does not exist/,
  },
  {
    name: 'a named volume that another claim has',
    arrange(rig) {
      rig.addVolume('v', { claimRef: { namespace: 'ns2', name: 'x', uid: 'u' } }, 'Bound');
      rig.addClaim({ volumeName: 'v' }, notHandedOver);
    },
    verdict: 'stuck',
    cause: 'waits-for-volume',
    says: /is Bound for claim ns2\/x/,
  },
  {
    name: 'a named volume that an earlier claim of the name had',
    arrange(rig) {
      rig.addVolume('v', { claimRef: { namespace: 'ns1', name: 'c', uid: 'u' } }, 'Released');
      rig.addClaim({ volumeName: 'v' }, notHandedOver);
    },
    verdict: 'stuck',
    cause: 'waits-for-volume',
    says: /an earlier claim of the same name/,
  },
  {
    name: 'a named volume that is too small',
    arrange(rig) {
      rig.addVolume('v', { capacity: { storage: '1023Mi' } });
      rig.addClaim({ volumeName: 'v' }, notHandedOver);
    },
    verdict: 'stuck',
    cause: 'waits-for-volume',
    says: /it has 1023Mi, and the claim requests 1Gi/,
  },
  {
    name: 'a named volume of another class',
    arrange(rig) {
      rig.addVolume('v', { storageClassName: 'other' });
      rig.addClaim({ volumeName: 'v' }, notHandedOver);
    },
    verdict: 'stuck',
    cause: 'waits-for-volume',
    says: /its class is "other"/,
  },
  {
    name: 'a lost claim',
    arrange: (rig) => rig.addClaim({ volumeName: 'v' }, { phase: 'Lost' }),
    verdict: 'stuck',
    cause: 'lost',
    says: /PersistentVolume v .* is gone/,
  },
  {
    name: 'a claim that no Pod uses',
    arrange(rig) {
      rig.addClass(late);
      rig.addClaim({}, notHandedOver);
      rig.addPod('other', { spec: { volumes: [] } });
    },
    verdict: 'waiting',
    cause: 'waits-for-consumer',
    says: /waits for the first Pod/,
  },
  {
    name: 'a Pod that the scheduler has not looked at',
    arrange(rig) {
      rig.addClass(late);
      rig.addClaim({}, notHandedOver);
      rig.addPod('p');
    },
    verdict: 'waiting',
    cause: 'waits-for-consumer',
    says: /Pod p uses the claim, and the scheduler has not chosen/,
  },
  {
    name: 'a Pod that names its node itself',
    arrange(rig) {
      rig.addClass(late);
      rig.addClaim({}, notHandedOver);
      rig.addPod('p', { spec: { nodeName: 'n1' } });
    },
    verdict: 'stuck',
    cause: 'pod-unschedulable',
    says: /sets spec\.nodeName to n1/,
  },
  {
    name: 'a Pod behind a scheduling gate',
    arrange(rig) {
      rig.addClass(late);
      rig.addClaim({}, notHandedOver);
      rig.addPod('p', { spec: { schedulingGates: [{ name: 'example.com/quota' }] } });
    },
    verdict: 'waiting',
    cause: 'pod-unschedulable',
    says: /example\.com\/quota/,
  },
  {
    name: 'a Pod that fits no node',
    arrange(rig) {
      rig.addClass(late);
      rig.addClaim({}, notHandedOver);
      rig.addPod('p', { status: unschedulable("0/3 nodes are available: 3 node(s) didn't match the node selector.") });
    },
    verdict: 'stuck',
    cause: 'pod-unschedulable',
    says: /The scheduler: 0\/3 nodes are available/,
  },
  {
    name: 'nodes without room',
    arrange(rig) {
      rig.addClass(late);
      rig.addClaim({}, notHandedOver);
      rig.addPod('p', { status: unschedulable('0/1 nodes: 1 node(s) did not have enough free storage.') });
    },
    verdict: 'stuck',
    cause: 'no-capacity',
    says: /enough free storage/,
  },
  {
    name: 'a selected node that is gone',
    arrange(rig) {
      rig.addClass(late);
      rig.addProvisioner();
      rig.addClaim({}, selected('n9'));
    },
    verdict: 'stuck',
    cause: 'selected-node-gone',
    says: /Node n9.* does not exist/,
  },
  {
    name: 'nodes without topology',
    arrange: (rig) => {
      usual(rig);
      rig.addEvent(
        rig.addClaim(),
        'ProvisioningFailed',
        'error generating accessibility requirements: no available topology found',
      );
    },
    verdict: 'stuck',
    cause: 'no-topology',
    says: /no available topology found/,
  },
  {
    name: 'a claim that kube-controller-manager has not seen',
    arrange(rig) {
      usual(rig);
      rig.addClaim({}, notHandedOver);
    },
    verdict: 'waiting',
    cause: 'not-handed-over',
    says: /has not handed the claim/,
  },
  {
    name: 'a class that was recreated for another driver',
    arrange(rig) {
      usual(rig);
      rig.addClaim({}, { annotations: { 'volume.kubernetes.io/storage-provisioner': 'old.example.com' } });
    },
    verdict: 'stuck',
    cause: 'not-handed-over',
    says: /handed to old\.example\.com, and its class now names d\.example\.com/,
  },
  {
    name: 'a driver that nobody has installed',
    arrange(rig) {
      rig.addClass();
      rig.addClaim();
      rig.add('csiNodes', { metadata: { name: 'n1' }, spec: { drivers: [{ name: 'other', nodeID: 'n1' }] } });
    },
    verdict: 'stuck',
    cause: 'no-provisioner',
    says: /no sign of a provisioner for d\.example\.com/,
  },
  {
    name: 'a provisioner whose Lease has expired',
    arrange(rig) {
      rig.addClass();
      rig.addProvisioner({ renewedMsAgo: 5 * minute });
      rig.addClaim();
    },
    verdict: 'stuck',
    cause: 'no-leader',
    says: /has no leader: pod-1 has not renewed Lease driver\/d-example-com for 5 min/,
    cure: /get, create and update on leases\.coordination\.k8s\.io are needed in namespace driver/,
  },
  {
    name: 'a provisioner whose Lease was released, and that nobody has taken since',
    arrange(rig) {
      rig.addClass();
      rig.addProvisioner({ holder: '', renewedMsAgo: 5 * minute });
      rig.addClaim();
    },
    verdict: 'stuck',
    cause: 'no-leader',
    says: /nobody holds Lease driver\/d-example-com for 5 min/,
    cure: /log .*"Not permitted to use a resource".* event on its Pod/,
  },
  {
    name: 'a provisioner whose Lease was released a moment ago',
    arrange(rig) {
      rig.addClass();
      rig.addProvisioner({ holder: '', renewedMsAgo: 1000 });
      rig.addClaim();
    },
    verdict: 'waiting',
    cause: 'no-leader',
    says: /nobody holds Lease driver\/d-example-com for 1 s/,
  },
  {
    name: 'a provisioner that never got its Lease, and has recorded nothing',
    arrange(rig) {
      rig.addClass();
      rig.add('drivers', { metadata: { name: driverName }, spec: {} });
      rig.addClaim();
    },
    laterMs: 7 * minute,
    verdict: 'stuck',
    cause: 'no-leader',
    says: /seems to have no leader, .*it has no Lease, and has recorded no event/,
    cure: /get, create and update on leases\.coordination\.k8s\.io are needed/,
  },
  {
    name: 'another process that is deleting a volume of the claim',
    arrange(rig) {
      usual(rig);
      rig.addEvent(rig.addClaim(), 'ProvisioningWaiting', 'Waiting for another process: it is being deleted');
    },
    verdict: 'waiting',
    cause: 'in-progress',
    says: /it is being deleted/,
    cure: /the other process .* finishes first, or is replaced after 30 seconds/,
  },
  {
    name: 'a record of another provisioner in the same intent journal',
    arrange(rig) {
      usual(rig);
      const text = 'Waiting for another provisioner: the record of the claim u1 belongs to the provisioner "other"';
      rig.addEvent(rig.addClaim(), 'ProvisioningWaiting', text);
    },
    verdict: 'stuck',
    cause: 'in-progress',
    says: /belongs to the provisioner "other"/,
    cure: /have the sidecar of the other one close its record/,
  },
  {
    name: 'a Secret that is missing',
    arrange(rig) {
      rig.addClass({ parameters: secretParameters('${pvc.namespace}') });
      rig.addProvisioner();
      rig.addClaim();
    },
    verdict: 'stuck',
    cause: 'secret-missing',
    says: /Secret ns1\/key/,
  },
  {
    name: 'a source claim that is missing',
    arrange(rig) {
      usual(rig);
      rig.addClaim(fromClaim);
    },
    verdict: 'stuck',
    cause: 'source-missing',
    says: /PersistentVolumeClaim ns1\/src, .* does not exist/,
  },
  {
    name: 'a source claim that is not bound',
    arrange(rig) {
      usual(rig);
      rig.addClaim({}, { name: 'src' });
      rig.addClaim(fromClaim);
    },
    verdict: 'waiting',
    cause: 'in-progress',
    says: /^It waits for its data source, claim src: /,
  },
  {
    name: 'a snapshot that is not ready',
    arrange(rig) {
      usual(rig);
      rig.add('snapshots', {
        metadata: { name: 's', namespace: 'ns1' },
        spec: { source: { persistentVolumeClaimName: 'src' } },
        status: { readyToUse: false },
      });
      rig.addClaim(fromSnapshot);
    },
    verdict: 'waiting',
    cause: 'source-not-ready',
    says: /VolumeSnapshot ns1\/s, .* is not ready, and /,
  },
  {
    name: 'a snapshot that is larger than the claim',
    arrange(rig) {
      usual(rig);
      rig.add('snapshots', {
        metadata: { name: 's', namespace: 'ns1' },
        spec: { source: { persistentVolumeClaimName: 'src' } },
        status: { readyToUse: true, restoreSize: '2Gi' },
      });
      rig.addClaim(fromSnapshot);
    },
    verdict: 'stuck',
    cause: 'source-not-ready',
    says: /has 2Gi, which is more than the 1Gi/,
  },
  {
    name: 'a source of another namespace without a grant',
    arrange(rig) {
      usual(rig);
      rig.addClaim({ dataSourceRef: { apiGroup: snapshotGroup, kind: 'VolumeSnapshot', name: 's', namespace: 'ns2' } });
    },
    verdict: 'stuck',
    cause: 'grant-missing',
    says: /No ReferenceGrant in namespace ns2/,
  },
  {
    name: 'an attributes class of another driver',
    arrange(rig) {
      usual(rig);
      rig.add('attributesClasses', { metadata: { name: 'gold' }, driverName: 'other', parameters: { a: 'b' } });
      rig.addClaim({ volumeAttributesClassName: 'gold' });
    },
    verdict: 'stuck',
    cause: 'attributes-class',
    says: /gold is for driver other/,
  },
  {
    name: 'an attributes class that is missing',
    arrange(rig) {
      usual(rig);
      rig.addClaim({ volumeAttributesClassName: 'gold' });
    },
    verdict: 'stuck',
    cause: 'attributes-class',
    says: /VolumeAttributesClass gold does not exist/,
  },
  {
    name: 'a claim with a selector',
    arrange(rig) {
      usual(rig);
      rig.addClaim({ selector: { matchLabels: { a: 'b' } } });
    },
    verdict: 'stuck',
    cause: 'selector',
    says: /has a selector/,
  },
  {
    name: 'a driver that fails',
    arrange(rig) {
      usual(rig);
      const claim = rig.addClaim();
      rig.addEvent(claim, 'Provisioning', 'External provisioner is provisioning', { msAgo: 90_000 });
      rig.addEvent(claim, 'ProvisioningFailed', 'rpc error: code = Internal desc = on fire', {
        msAgo: 90_000,
        count: 7,
      });
    },
    verdict: 'stuck',
    cause: 'driver-error',
    says: /failed 7 times .*last 9\d s ago; the next attempt is due within .*code = Internal desc = on fire/,
  },
  {
    name: 'a driver that is away',
    arrange(rig) {
      usual(rig);
      rig.addEvent(
        rig.addClaim(),
        'ProvisioningFailed',
        'rpc error: code = Unavailable desc = the CSI driver is not connected',
      );
    },
    verdict: 'stuck',
    cause: 'driver-error',
    says: /the CSI driver is not connected/,
    cure: /driver's container runs/,
  },
  {
    name: 'a driver without room',
    arrange(rig) {
      usual(rig);
      rig.addEvent(rig.addClaim(), 'ProvisioningFailed', 'rpc error: code = ResourceExhausted desc = full');
    },
    verdict: 'stuck',
    cause: 'no-capacity',
    says: /Provisioning failed once, \d+ s ago; .*desc = full/,
  },
  {
    name: 'a driver at work',
    arrange(rig) {
      usual(rig);
      rig.addEvent(rig.addClaim(), 'Provisioning', 'External provisioner is provisioning', { msAgo: 9_000 });
    },
    verdict: 'waiting',
    cause: 'in-progress',
    says: /has been creating the volume for (9|10) s/,
  },
  {
    name: 'a selected node whose driver does not run, in node deployment',
    arrange(rig) {
      rig.addClass();
      rig.add('drivers', { metadata: { name: driverName }, spec: {} });
      rig.addEvent(rig.addClaim(), 'ProvisioningWaiting', 'Waiting for node "n1", which was selected');
    },
    verdict: 'stuck',
    cause: 'provisioner-away',
    says: /Waiting for node "n1"/,
  },
  {
    name: 'a provisioner that may create no more volumes',
    arrange(rig) {
      usual(rig);
      const text = 'Waiting for the deletion of a volume: all that -max-exports=2 allows exist';
      rig.addEvent(rig.addClaim(), 'ProvisioningWaiting', text);
    },
    verdict: 'stuck',
    cause: 'no-capacity',
    says: /all that -max-exports=2 allows exist/,
  },
  {
    name: 'a volume of the name that is not for the claim',
    arrange(rig) {
      usual(rig);
      rig.addVolume(`pvc-${rig.addClaim().metadata.uid}`);
    },
    verdict: 'stuck',
    cause: 'name-taken',
    says: /is not for this claim/,
  },
  {
    name: 'another attempt, after a volume that was deleted before it was bound',
    arrange(rig) {
      usual(rig);
      const claim = rig.addClaim();
      rig.addEvent(claim, 'ProvisioningSucceeded', 'Successfully provisioned volume pvc-1', { msAgo: 600_000 });
      rig.addEvent(claim, 'Provisioning', 'External provisioner is provisioning volume', { msAgo: 60_000 });
    },
    verdict: 'waiting',
    cause: 'in-progress',
    says: /has been creating the volume for/,
  },
  {
    name: 'a volume that the binder has not seen',
    arrange(rig) {
      usual(rig);
      const { uid } = rig.addClaim().metadata;
      rig.addVolume(`pvc-${uid}`, { claimRef: { namespace: 'ns1', name: 'c', uid } });
    },
    verdict: 'waiting',
    cause: 'volume-made',
    says: /has not bound them yet/,
  },
  {
    name: 'a named volume that names the claim and is smaller: it is bound nevertheless',
    arrange(rig) {
      rig.addVolume('v', { capacity: { storage: '1Mi' }, claimRef: { namespace: 'ns1', name: 'c' } });
      rig.addClaim({ volumeName: 'v' }, notHandedOver);
    },
    verdict: 'waiting',
    cause: 'volume-made',
    says: /has not bound them yet/,
  },
  {
    name: 'a named volume that is being deleted',
    arrange(rig) {
      rig.addVolume('v', {}, 'Available', { finalizers: ['kubernetes.io/pv-protection'] });
      rig.delete('volumes', 'v');
      rig.addClaim({ volumeName: 'v' }, notHandedOver);
    },
    verdict: 'stuck',
    cause: 'waits-for-volume',
    says: /it is being deleted/,
  },
  {
    name: 'a volume of the claim that is being deleted before they are bound',
    arrange(rig) {
      usual(rig);
      const { uid } = rig.addClaim().metadata;
      const finalizers = ['kubernetes.io/pv-protection'];
      rig.addVolume(`pvc-${uid}`, { claimRef: { namespace: 'ns1', name: 'c', uid } }, 'Available', { finalizers });
      rig.delete('volumes', `pvc-${uid}`);
    },
    verdict: 'waiting',
    cause: 'volume-made',
    says: /is being deleted, so they are not bound/,
  },
  {
    name: 'a Pod that is being deleted',
    arrange(rig) {
      rig.addClass(late);
      rig.addClaim({}, notHandedOver);
      rig.addPod('p', { finalizers: ['example.com/last-rites'], status: unschedulable('0/3 nodes are available.') });
      rig.delete('pods', 'p', 'ns1');
    },
    verdict: 'waiting',
    cause: 'waits-for-consumer',
    says: /waits for the first Pod/,
  },
  {
    name: 'a Pod for which others make room',
    arrange(rig) {
      rig.addClass(late);
      rig.addClaim({}, notHandedOver);
      rig.addPod('p', { status: { ...unschedulable('0/3 nodes are available.'), nominatedNodeName: 'n2' } });
    },
    verdict: 'waiting',
    cause: 'waits-for-consumer',
    says: /is preempting Pods of lower priority on node n2 to make room for it/,
  },
  {
    name: 'a Pod that fits no node and another that may',
    arrange(rig) {
      rig.addClass(late);
      rig.addClaim({}, notHandedOver);
      rig.addPod('p', { status: unschedulable('0/3 nodes are available.') });
      rig.addPod('q');
    },
    verdict: 'waiting',
    cause: 'waits-for-consumer',
    says: /Pod q uses the claim/,
  },
  {
    name: 'a Pod of a scheduler that does not run',
    arrange(rig) {
      rig.addClass(late);
      rig.addClaim({}, notHandedOver);
      rig.addPod('p', { spec: { schedulerName: 'of-my-own' } });
    },
    laterMs: 5 * minute,
    verdict: 'stuck',
    cause: 'pod-unschedulable',
    says: /no scheduler has reported anything about it for 5 min\. Its scheduler is of-my-own\./,
  },
  {
    name: 'a driver that failed on the node that was chosen first',
    arrange(rig) {
      rig.addClass(late);
      rig.addProvisioner();
      rig.addEvent(rig.addClaim(), 'ProvisioningFailed', 'rpc error: code = Internal desc = on fire');
      const words = 'running PreBind plugin "VolumeBinding": binding volumes: provisioning failed for PVC "c"';
      rig.addPod('p', { status: unschedulable(words) });
    },
    verdict: 'stuck',
    cause: 'driver-error',
    says: /the scheduler is to choose a node again\. Last error: .* desc = on fire$/,
  },
  {
    name: 'no node for a Pod after the driver had failed on one',
    arrange(rig) {
      rig.addClass(late);
      rig.addProvisioner();
      rig.addEvent(rig.addClaim(), 'ProvisioningFailed', 'rpc error: code = Internal desc = on fire');
      rig.addPod('p', { status: unschedulable('0/3 nodes are available: 3 Insufficient cpu.') });
    },
    verdict: 'stuck',
    cause: 'pod-unschedulable',
    says: /3 Insufficient cpu/,
  },
  {
    name: 'a selected node that is gone, on which the driver does not depend',
    arrange(rig) {
      rig.addClass(late);
      rig.addProvisioner();
      rig.addEvent(rig.addClaim({}, selected('n9')), 'Provisioning', 'External provisioner is provisioning');
    },
    verdict: 'waiting',
    cause: 'in-progress',
    says: /has been creating the volume/,
  },
  {
    name: 'a selected node that is gone, on which the provisioner began long ago',
    arrange(rig) {
      rig.addClass(late);
      rig.addProvisioner();
      const claim = rig.addClaim({}, selected('n9'));
      rig.addEvent(claim, 'Provisioning', 'External provisioner is provisioning', { msAgo: 20 * minute });
    },
    verdict: 'stuck',
    cause: 'selected-node-gone',
    says: /Node n9.* does not exist\./,
  },
  {
    name: 'a plugin that Kubernetes no longer has',
    arrange(rig) {
      rig.addClass({ provisioner: 'kubernetes.io/glusterfs' });
      const claim = rig.addClaim({}, notHandedOver);
      rig.addEvent(claim, 'ProvisioningFailed', 'no volume plugin matched name: kubernetes.io/glusterfs', {
        component: 'persistentvolume-controller',
      });
    },
    verdict: 'stuck',
    cause: 'no-provisioner',
    says: /no volume plugin matched name/,
  },
  {
    name: 'a plugin of kube-controller-manager that fails',
    arrange(rig) {
      const provisioner = 'kubernetes.io/host-path';
      rig.addClass({ provisioner });
      const claim = rig.addClaim({}, { annotations: { 'volume.kubernetes.io/storage-provisioner': provisioner } });
      rig.addEvent(claim, 'ProvisioningFailed', 'Failed to create provisioner: it is disabled', {
        component: 'persistentvolume-controller',
      });
    },
    verdict: 'stuck',
    cause: 'driver-error',
    says: /Last error: Failed to create provisioner: it is disabled/,
  },
  {
    name: 'a claim that kube-controller-manager has not seen for minutes',
    arrange(rig) {
      usual(rig);
      rig.addClaim({}, notHandedOver);
    },
    laterMs: 5 * minute,
    verdict: 'stuck',
    cause: 'not-handed-over',
    says: /has not handed the claim .* like this for 5 min/,
  },
  {
    name: 'a driver whose call timed out',
    arrange(rig) {
      usual(rig);
      rig.addEvent(rig.addClaim(), 'ProvisioningFailed', 'rpc error: code = DeadlineExceeded desc = too slow');
    },
    verdict: 'waiting',
    cause: 'driver-error',
    says: /desc = too slow/,
  },
  {
    name: 'a driver whose calls have timed out for long',
    arrange(rig) {
      usual(rig);
      rig.addEvent(rig.addClaim(), 'ProvisioningFailed', 'rpc error: code = DeadlineExceeded desc = too slow', {
        msAgo: 11 * minute,
      });
    },
    verdict: 'stuck',
    cause: 'driver-error',
    says: /desc = too slow/,
  },
  {
    name: 'a claim that is being deleted while a Pod uses it',
    arrange(rig) {
      rig.addClaim({ volumeName: 'v' }, { phase: 'Bound', finalizers: ['kubernetes.io/pvc-protection'] });
      rig.addPod('p', { spec: { nodeName: 'n1' }, status: { phase: 'Running' } });
      rig.addPod('done', { spec: { nodeName: 'n1' }, status: { phase: 'Succeeded' } });
      rig.addPod('homeless');
      rig.delete('claims', 'c', 'ns1');
    },
    verdict: 'stuck',
    cause: 'deleting',
    says: /held by kubernetes\.io\/pvc-protection, because it is used by Pod p, and Pod done, which has ended \(Succeeded\), holds it until deleted\.$/,
    cure: /: kubectl delete pod -n ns1 done p$/,
  },
  {
    name: 'a claim that is being deleted and held by somebody',
    arrange(rig) {
      rig.addClaim({}, { finalizers: ['example.com/backup'] });
      rig.delete('claims', 'c', 'ns1');
    },
    laterMs: minute,
    verdict: 'stuck',
    cause: 'deleting',
    says: /held by example\.com\/backup of a controller of example\.com\./,
  },
  {
    name: 'an allowed zone that is on no node, of a class that binds at once',
    arrange(rig) {
      rig.addClass(allowing('nroth'));
      rig.addProvisioner();
      zones(rig, { n1: 'north', n2: 'south' });
      rig.addEvent(rig.addClaim(), 'ProvisioningFailed', `${resourceExhausted} desc = no such zone`);
    },
    verdict: 'stuck',
    cause: 'no-topology',
    says: /topology\.d\.example\.com\/zone nroth is on no node; nodes have north, south\.$/,
    cure: /^Correct allowedTopologies/,
  },
  {
    name: 'an allowed zone that is on no node, of a class that waits for a Pod',
    arrange(rig) {
      rig.addClass({ ...late, ...allowing('nroth') });
      zones(rig, { n1: 'north' });
      rig.addClaim({}, notHandedOver);
      rig.addPod('p', { status: unschedulable("0/1 nodes: 1 node(s) didn't find available volumes to bind.") });
    },
    verdict: 'stuck',
    cause: 'no-topology',
    says: /zone nroth is on no node; nodes have north\./,
  },
  {
    name: 'an allowed key that no node has',
    arrange(rig) {
      rig.addClass({ allowedTopologies: [{ matchLabelExpressions: [{ key: 'zone', values: ['north'] }] }] });
      rig.addProvisioner();
      zones(rig, { n1: 'north' });
      rig.addClaim();
    },
    verdict: 'stuck',
    cause: 'no-topology',
    says: /no node has the label zone, and the driver reports topology\.d\.example\.com\/zone\./,
  },
  {
    name: 'a zone of another driver only',
    arrange(rig) {
      rig.addClass(allowing('north'));
      rig.addProvisioner();
      zones(rig, { n1: 'south' });
      zones(rig, { n2: 'north' }, 'other.example.com');
      rig.addClaim();
    },
    verdict: 'stuck',
    cause: 'no-topology',
    says: /zone north is on no node; nodes have south\./,
  },
  {
    name: 'an allowed zone that is there, and has no room',
    arrange(rig) {
      rig.addClass(allowing('north'));
      rig.addProvisioner();
      zones(rig, { n1: 'north' });
      rig.addEvent(
        rig.addClaim(),
        'ProvisioningFailed',
        `${resourceExhausted} desc = no pool in the accessible topology`,
      );
    },
    verdict: 'stuck',
    cause: 'no-capacity',
    says: /no pool in the accessible topology/,
    cure: /request it elsewhere: other nodes for the Pod/,
  },
  {
    name: 'a leader that may not list nodes',
    arrange(rig) {
      usual(rig);
      rig.addClaim();
      rig.addEvent(rig.lease(), 'ProvisionerNotReady', 'the cache of nodes is not filled yet: nodes is forbidden', {
        msAgo: minute,
      });
    },
    verdict: 'stuck',
    cause: 'not-ready',
    says: /leads \(pod-1\) but is not ready, for 60 s: the cache of nodes is not filled yet: nodes is forbidden/,
    cure: /the log of the leader has the rule to add/,
  },
  {
    name: 'a standby that waits for an earlier process with its name',
    arrange(rig) {
      usual(rig);
      rig.addClaim();
      rig.addEvent(rig.lease(), 'LeaderElection', 'pod-1 became leader', { msAgo: minute });
      rig.addEvent(rig.lease(), 'LeaderElectionWaiting', 'A standby waits for another process', { msAgo: 12_000 });
    },
    verdict: 'waiting',
    cause: 'no-leader',
    says: /may have no leader for 1\d s: A standby waits for another process\./,
    cure: /takes the Lease over once nobody has renewed it/,
  },
  {
    name: 'sources of other namespaces, which are off in the provisioner',
    arrange(rig) {
      usual(rig);
      const source = {
        dataSourceRef: { apiGroup: snapshotGroup, kind: 'VolumeSnapshot', name: 's', namespace: 'ns2' },
      };
      rig.addEvent(
        rig.addClaim(source),
        'ProvisioningFailed',
        'error getting handle for DataSource Type VolumeSnapshot by Name s: dataSourceRef namespace specified but the CrossNamespaceVolumeDataSource feature is disabled',
      );
    },
    verdict: 'stuck',
    cause: 'feature-disabled',
    says: /feature is disabled/,
    cure: /--feature-gates=CrossNamespaceVolumeDataSource=true; a ReferenceGrant alone changes nothing/,
  },
  {
    name: 'a misspelt variable in the name of a Secret',
    arrange(rig) {
      usual(rig);
      rig.addEvent(
        rig.addClaim(),
        'ProvisioningFailed',
        'failed to provision volume with StorageClass "sc": error resolving value "${pvc.nmae}": invalid tokens: ["pvc.nmae"]',
      );
    },
    verdict: 'stuck',
    cause: 'secret-missing',
    says: /pvc\.nmae/,
    cure: /^Correct the template .* It may contain \$\{pv\.name\}/,
  },
  {
    name: 'a clone with another volume mode',
    arrange(rig) {
      usual(rig);
      rig.addClaim({ volumeMode: 'Block' }, { name: 'src', phase: 'Bound' });
      rig.addClaim(fromClaim);
    },
    verdict: 'stuck',
    cause: 'source-not-ready',
    says: /has volumeMode Block, and the claim requests Filesystem/,
    cure: /^Recreate the claim with the volumeMode of its source/,
  },
  {
    name: 'a source for which a volume populator has done nothing',
    arrange(rig) {
      rig.addClass();
      rig.addProvisioner({ renewedMsAgo: -10 * minute });
      rig.addClaim({ dataSourceRef: { apiGroup: 'example.com', kind: 'Image', name: 'i' } });
    },
    laterMs: 10 * minute,
    verdict: 'stuck',
    cause: 'source-not-ready',
    says: /is a Image, which needs a volume populator .* Nothing has changed the claim for 10 min\./,
    cure: /^Check that a volume populator/,
  },
  ...(
    [
      [
        'class-parameters',
        'fstype specified in parameters with both "fstype" and "csi.storage.k8s.io/fstype" keys',
        /leave out fstype/,
      ],
      ['unsupported-size', 'rpc error: code = OutOfRange desc = at most 16Ti', /size that the driver supports/],
      [
        'unsupported-size',
        'created volume capacity 1 less than requested capacity 1073741824',
        /the provisioner refused it/,
      ],
    ] as const
  ).map(([cause, text, cure]) => ({
    name: `the text ${JSON.stringify(text.slice(0, 40))}`,
    arrange(rig: ExplainRig) {
      usual(rig);
      rig.addEvent(rig.addClaim(), 'ProvisioningFailed', `failed to provision volume with StorageClass "sc": ${text}`);
    },
    verdict: 'stuck' as const,
    cause,
    says: /Last error: /,
    cure,
  })),
];

const zoneKey = 'topology.d.example.com/zone';
const resourceExhausted = 'rpc error: code = ResourceExhausted';

function allowing(zone: string): object {
  return { allowedTopologies: [{ matchLabelExpressions: [{ key: zoneKey, values: [zone] }] }] };
}

/** Nodes of the driver, by name, with their zones. */
function zones(rig: ExplainRig, ofNodes: Readonly<Record<string, string>>, name = driverName): void {
  for (const [node, zone] of Object.entries(ofNodes)) {
    rig.add('nodes', { metadata: { name: node, labels: { [zoneKey]: zone } } });
    rig.add('csiNodes', {
      metadata: { name: node },
      spec: { drivers: [{ name, nodeID: node, topologyKeys: [zoneKey] }] },
    });
  }
}

function unschedulable(message: string): object {
  return {
    phase: 'Pending',
    conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }],
  };
}

function secretParameters(namespace: string): Record<string, string> {
  const prefix = 'csi.storage.k8s.io/provisioner-secret-';
  return { [`${prefix}name`]: 'key', [`${prefix}namespace`]: namespace };
}

describe('why of a claim', () => {
  for (const { name, arrange, laterMs = 0, verdict, cause, says, cure = /./ } of rows) {
    test(`names ${cause} for ${name}`, async () => {
      await using rig = await ExplainRig.start();
      arrange(rig);
      const explanation = await rig.explain({ claim: 'c' }, { laterMs });
      assert.deepEqual(
        { verdict: explanation.verdict, cause: explanation.cause },
        { verdict, cause },
        JSON.stringify(explanation, undefined, 2),
      );
      assert.match(explanation.message, says);
      assert.ok(rig.requests.length < 18, rig.requests.join(', '));
      if (verdict !== 'bound') assert.match(explanation.cure, cure, 'what to do is said');
    });
  }

  for (const { reason, message } of [
    { reason: 'Provisioning', message: 'External provisioner is provisioning' },
    { reason: 'ProvisioningFailed', message: 'rpc error: code = Internal desc = on fire' },
  ]) {
    test(`says after the event ${reason} that the class was recreated since the first attempt, if it was`, async () => {
      const recreated = /\. StorageClass sc was recreated after the first attempt: .* recreate the claim$/;
      await using rig = await ExplainRig.start();
      usual(rig);
      const claim = rig.addClaim();
      rig.addEvent(claim, reason, message, { msAgo: 5000 }); // the clock of the node may be behind
      assert.doesNotMatch((await rig.explain()).cure, recreated);
      rig.addEvent(claim, reason, message, { msAgo: 5 * minute });
      assert.match((await rig.explain()).cure, recreated);
    });
  }

  test('needs three requests for a bound claim whose Pods have all started', async () => {
    await using rig = await ExplainRig.start();
    rig.addClaim({ volumeName: 'v' }, { phase: 'Bound' });
    rig.addPod('p', { spec: { nodeName: 'n1' }, status: { phase: 'Running' } });
    await rig.explain();
    assert.deepEqual(rig.requests, ['get persistentvolumeclaims', 'list pods', 'get namespaces']);
  });

  test('keeps its own words where the other claim of its Pod says the same, and looks at each claim once', async () => {
    await using rig = await ExplainRig.start();
    rig.addClass(late);
    rig.addClaim({}, notHandedOver);
    rig.addClaim({}, { ...notHandedOver, name: 'd' });
    const volumes = ['c', 'd'].map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } }));
    const words = "0/1 nodes are available: 1 node(s) didn't find available persistent volumes to bind.";
    rig.addPod('p', { spec: { volumes }, status: unschedulable(words) });
    const { verdict, cause, message } = await rig.explain();
    assert.deepEqual({ verdict, cause }, { verdict: 'stuck', cause: 'pod-unschedulable' });
    assert.equal(message, `Pod p uses the claim and cannot be scheduled. The scheduler: ${words}`);
    // itself, and the other one as a claim of the Pod; then the other one, and itself as a claim of the Pod
    assert.equal(rig.requests.filter((request) => request === 'get persistentvolumeclaims').length, 4);
  });
});

describe('why of a claim without the right', () => {
  /** Everything that can be needed is there to be read, and nothing is wrong. */
  const everything = (rig: ExplainRig): void => {
    rig.addClass({ ...late, parameters: secretParameters('ns1') });
    rig.addProvisioner();
    rig.add('nodes', { metadata: { name: 'n1' } });
    rig.add('secrets', { metadata: { name: 'key', namespace: 'ns1' } });
    rig.add('attributesClasses', { metadata: { name: 'gold' }, driverName, parameters: { a: 'b' } });
    rig.addClaim({}, { name: 'src', phase: 'Bound' });
    rig.addClaim({ ...fromClaim, volumeAttributesClassName: 'gold' }, selected('n1'));
  };
  const unknownSteps = ({ steps }: Explanation): string[] =>
    steps.filter(({ state }) => state === 'unknown').map(({ detail }) => detail);

  for (const { verb, resource, step } of [
    { verb: 'get', resource: 'storageclasses', step: 'the permission to get storageclasses.storage.k8s.io is missing' },
    { verb: 'list', resource: 'events', step: 'the permission to list events in namespace ns1 is missing' },
    {
      verb: 'list',
      resource: 'leases',
      step: 'the permission to list leases.coordination.k8s.io in all namespaces is missing',
    },
    { verb: 'get', resource: 'persistentvolumes', step: 'the permission to get persistentvolumes is missing' },
    {
      verb: 'get',
      resource: 'secrets',
      step: 'whether Secret ns1/key exists is not visible: the permission to get secrets in namespace ns1 is missing',
    },
    { verb: 'get', resource: 'nodes', step: 'node n1 was chosen; the permission to get nodes is missing' },
    {
      verb: 'get',
      resource: 'volumeattributesclasses',
      step: 'the permission to get volumeattributesclasses.storage.k8s.io is missing',
    },
  ]) {
    test(`to ${verb} ${resource} is unknown and says so, and nothing is made up`, async () => {
      await using rig = await ExplainRig.start();
      everything(rig);
      assert.equal((await rig.explain()).cause, 'in-progress', 'with all rights');
      rig.forbid(verb, resource);
      const explanation = await rig.explain();
      assert.equal(explanation.verdict, 'unknown', JSON.stringify(explanation, undefined, 2));
      assert.equal(explanation.cause, null);
      assert.ok(unknownSteps(explanation).includes(step), unknownSteps(explanation).join('\n'));
      assert.ok(explanation.message.includes(step));
    });
  }

  test('to read the claim says no more than that', async () => {
    await using rig = await ExplainRig.start();
    everything(rig);
    rig.forbid('get', 'persistentvolumeclaims');
    const { verdict, cause, steps } = await rig.explain();
    assert.deepEqual({ verdict, cause }, { verdict: 'unknown', cause: null });
    assert.deepEqual(steps, [
      {
        step: 'claim',
        state: 'unknown',
        detail: 'the permission to get persistentvolumeclaims in namespace ns1 is missing',
      },
    ]);
  });

  test('to list pods does not know whether a Pod uses the claim', async () => {
    await using rig = await ExplainRig.start();
    rig.addClass(late);
    rig.addClaim({}, notHandedOver);
    rig.forbid('list', 'pods');
    const { verdict, cause, message } = await rig.explain();
    assert.deepEqual({ verdict, cause }, { verdict: 'unknown', cause: null });
    assert.match(message, /the permission to list pods in namespace ns1 is missing/);
  });

  test('to list pods still has the words of kube-controller-manager and the scheduler', async () => {
    await using rig = await ExplainRig.start();
    rig.addClass(late);
    const claim = rig.addClaim({}, notHandedOver);
    rig.addPod('p', { status: unschedulable('0/1 nodes are available: 1 Insufficient cpu.') });
    rig.forbid('list', 'pods');
    const binder = { component: 'persistentvolume-controller' };
    rig.addEvent(claim, 'WaitForFirstConsumer', 'waiting for first consumer to be created before binding', binder);
    assert.equal((await rig.explain()).cause, 'waits-for-consumer', 'it says that there is no Pod');
    rig.addEvent(claim, 'WaitForPodScheduled', 'waiting for pod p to be scheduled', { ...binder, msAgo: -5000 });
    assert.equal((await rig.explain()).cause, null, 'the scheduler has recorded nothing');
    rig.addEvent(rig.pod('p'), 'FailedScheduling', '0/1 nodes are available: 1 Insufficient cpu.', {
      component: 'default-scheduler',
    });
    const { verdict, cause, message } = await rig.explain();
    assert.deepEqual({ verdict, cause }, { verdict: 'stuck', cause: 'pod-unschedulable' });
    assert.match(
      message,
      /^Pod p uses the claim and is not scheduled\. The scheduler \d+ s ago: .*1 Insufficient cpu\.$/,
    );
    assert.equal((await rig.explain({ claim: 'c' }, { laterMs: 10 * minute })).cause, null, 'that is long ago');
  });

  test('to list pods leaves a bound claim bound, and does not know more', async () => {
    await using rig = await ExplainRig.start();
    rig.addClaim({ volumeName: 'v' }, { phase: 'Bound' });
    rig.forbid('list', 'pods');
    const { verdict, message, steps } = await rig.explain();
    assert.equal(verdict, 'bound');
    assert.equal(message, 'The claim is bound to PersistentVolume v.');
    assert.deepEqual(
      steps.map(({ step, state }) => `${step} ${state}`),
      ['claim ok', 'pod unknown', 'volume ok'],
    );
  });

  for (const { verb, resource } of [
    { verb: 'get', resource: 'csidrivers' },
    { verb: 'list', resource: 'csistoragecapacities' },
  ]) {
    test(`to ${verb} ${resource} has what the scheduler says of the room, and does not make up the rest`, async () => {
      await using rig = await ExplainRig.start();
      rig.addClass(late);
      rig.add('drivers', { metadata: { name: driverName }, spec: { storageCapacity: true } });
      rig.addClaim({}, notHandedOver);
      rig.addPod('p', { status: unschedulable('0/1 nodes: 1 node(s) did not have enough free storage.') });
      assert.equal((await rig.explain()).cause, 'capacity-not-published', 'with all rights');
      rig.forbid(verb, resource);
      const { cause, message } = await rig.explain();
      assert.equal(cause, 'no-capacity');
      assert.match(
        message,
        new RegExp(`enough free storage\\. .* cannot be seen: the permission to ${verb} ${resource}`),
      );
    });
  }

  test('to list events does not take a provisioner for missing that is known by its events alone', async () => {
    await using rig = await ExplainRig.start();
    rig.addClass();
    rig.addClaim();
    assert.equal((await rig.explain()).cause, 'no-provisioner', 'with all rights');
    rig.forbid('list', 'events');
    const { cause, message } = await rig.explain();
    assert.equal(cause, null);
    assert.match(message, /the permission to list events in namespace ns1 is missing/);
  });

  test('to list events does not say what becomes of a node that is gone', async () => {
    await using rig = await ExplainRig.start();
    usual(rig);
    rig.addClaim({}, selected('n9'));
    assert.equal((await rig.explain()).cause, 'selected-node-gone', 'with all rights');
    rig.forbid('list', 'events');
    const { cause, message } = await rig.explain();
    assert.equal(cause, null);
    assert.match(message, /Node n9, .* does not exist; the permission to list events/);
  });

  test('to read leases still has what the driver said', async () => {
    await using rig = await ExplainRig.start();
    usual(rig);
    rig.addEvent(rig.addClaim(), 'ProvisioningFailed', 'rpc error: code = Internal desc = on fire');
    rig.forbid('list', 'leases');
    assert.equal((await rig.explain()).cause, 'driver-error');
  });

  test('to read Secrets still has what the provisioner said of its Secret', async () => {
    await using rig = await ExplainRig.start();
    rig.addClass({ parameters: secretParameters('ns1') });
    rig.addProvisioner();
    rig.forbid('get', 'secrets');
    rig.addEvent(
      rig.addClaim(),
      'ProvisioningFailed',
      'error getting secret key in namespace ns1: secrets "key" not found',
    );
    assert.equal((await rig.explain()).cause, 'secret-missing');
  });

  const binder = { component: 'persistentvolume-controller' };

  test('to get persistentvolumes still has what kube-controller-manager says of the one that the claim names', async () => {
    await using rig = await ExplainRig.start();
    const claim = rig.addClaim({ volumeName: 'v' }, notHandedOver);
    rig.forbid('get', 'persistentvolumes');
    assert.equal((await rig.explain()).cause, null);
    rig.addEvent(claim, 'FailedBinding', 'volume "v" already bound to a different claim.', binder);
    const { verdict, cause, message } = await rig.explain();
    assert.deepEqual({ verdict, cause }, { verdict: 'stuck', cause: 'waits-for-volume' });
    assert.match(
      message,
      /^The claim names PersistentVolume v\. kube-controller-manager \d s ago: volume "v" already bound to/,
    );
    assert.equal(
      (await rig.explain({ claim: 'c' }, { laterMs: 10 * minute })).cause,
      null,
      'it would have repeated it',
    );
  });

  test('to get persistentvolumes still has what kube-controller-manager said of a lost claim', async () => {
    await using rig = await ExplainRig.start();
    const claim = rig.addClaim({ volumeName: 'v' }, { phase: 'Lost' });
    const text = 'Two claims are bound to the same volume, this one is bound incorrectly';
    rig.addEvent(claim, 'ClaimMisbound', text, { ...binder, msAgo: 50 * minute });
    rig.forbid('get', 'persistentvolumes');
    const { cause, message } = await rig.explain();
    assert.equal(cause, 'lost');
    assert.match(
      message,
      /, or belongs to another claim\. kube-controller-manager 50 min ago: Two claims are bound to/,
    );
  });

  for (const { reason, message, verdict, cause } of [
    {
      reason: 'ProvisioningFailed',
      message: 'storageclass.storage.k8s.io "sc" not found',
      verdict: 'stuck',
      cause: 'class-not-found',
    },
    {
      reason: 'WaitForFirstConsumer',
      message: 'waiting for first consumer to be created before binding',
      verdict: 'waiting',
      cause: 'waits-for-consumer',
    },
    {
      reason: 'WaitForPodScheduled',
      message: 'waiting for pod p to be scheduled',
      verdict: 'unknown',
      cause: null,
    },
  ]) {
    test(`to get storageclasses still has the words of kube-controller-manager after ${reason}`, async () => {
      await using rig = await ExplainRig.start();
      rig.addEvent(rig.addClaim({}, notHandedOver), reason, message, binder);
      rig.forbid('get', 'storageclasses');
      const explanation = await rig.explain();
      assert.deepEqual({ verdict: explanation.verdict, cause: explanation.cause }, { verdict, cause });
      assert.ok(explanation.message.includes(message), explanation.message);
    });
  }

  test('to list persistentvolumes says that the existing ones cannot be seen', async () => {
    await using rig = await ExplainRig.start();
    rig.addClaim({ storageClassName: '' }, notHandedOver);
    rig.forbid('list', 'persistentvolumes');
    const { cause, message } = await rig.explain();
    assert.equal(cause, 'static-class');
    assert.match(message, /which there are cannot be seen: the permission to list persistentvolumes is missing\.$/);
  });

  test('to list events and StatefulSets leaves open why a claim was never created, and names both', async () => {
    await using rig = await ExplainRig.start();
    rig.forbid('list', 'events');
    rig.forbid('list', 'statefulsets');
    const { verdict, cause, steps } = await rig.explain();
    assert.deepEqual({ verdict, cause }, { verdict: 'unknown', cause: 'not-found' });
    const unknown = steps.filter(({ state }) => state === 'unknown').map(({ detail }) => detail);
    assert.match(unknown.join('; '), /the permission to list events in namespace ns1 is missing/);
    assert.match(unknown.join('; '), /the permission to list statefulsets\.apps in namespace ns1 is missing/);
  });

  test('to list the controllers of Pods leaves open whether one of them cannot create the Pod', async () => {
    await using rig = await ExplainRig.start();
    rig.addClass(late);
    rig.addClaim({}, notHandedOver);
    rig.forbid('list', 'deployments');
    const { verdict, cause, steps } = await rig.explain();
    assert.deepEqual({ verdict, cause }, { verdict: 'waiting', cause: 'waits-for-consumer' });
    const owner = steps.find(({ step }) => step === 'owner');
    assert.equal(owner?.state, 'unknown');
    assert.match(owner.detail, /the permission to list deployments\.apps in namespace ns1 is missing$/);
  });
});
