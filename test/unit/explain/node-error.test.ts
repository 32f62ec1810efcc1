import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { nodeErrorCure } from '../../../src/explain/causes/node-error.ts';
import { barrierOf } from '../../../src/explain/node-labels.ts';
import type { ClusterNode } from '../../../src/explain/cluster-objects.ts';
import { schedulingCure } from '../../../src/explain/scheduler-words.ts';
import type { PersistentVolume } from '../../../src/provision/objects.ts';

const csi = { driver: 'd.example.com', volumeHandle: 'v', nodeStageSecretRef: { namespace: 'ns1', name: 'creds' } };
const volume = { metadata: { name: 'v' }, spec: { csi, mountOptions: ['nfsvers=4.1', 'nolocks'] } } as PersistentVolume;

describe('what to do about a volume that cannot be attached or mounted', () => {
  for (const [what, error, cure] of [
    [
      'a machine that is full',
      'The maximum number of data disks allowed to be attached to a VM of this size is 4',
      /^Node n1 has as many volumes attached/,
    ],
    [
      'EBS and a machine that is full',
      'AttachmentLimitExceeded: instance i-1',
      /^Node n1 has as many volumes attached/,
    ],
    [
      'another zone',
      'InvalidVolume.ZoneMismatch: The volume is not in the same zone',
      /no nodeAffinity, so the scheduler cannot know/,
    ],
    ['a machine that the storage does not know', 'failed to find VirtualMachine for node:"n1"', /spec\.providerID/],
    [
      'replicas that are not well',
      'volume pvc-1 is not ready for workloads',
      /^Check the health of the volume .*its data is still there$/,
    ],
    [
      'a damaged file system',
      "'fsck' found errors on device: UNEXPECTED INCONSISTENCY; RUN fsck MANUALLY",
      /^The file system is damaged\. First stop the Pod, and take a snapshot/,
    ],
    [
      'a program that is missing',
      'mount: bad option; you might need a /sbin/mount.nfs helper program',
      /^Node n1 lacks a program/,
    ],
    [
      'a program that a script does not find',
      "Failed to login with target iqn [iqn.2000-01.com.example:v], err: env: can't execute 'iscsiadm': No such file or directory\n (exit status 127)",
      /^Node n1 lacks a program/,
    ],
    [
      'a volume that somebody has deleted',
      'could not attach volume "vol-1" to node "i-1": InvalidVolume.NotFound: The volume \'vol-1\' does not exist.',
      /^Unless the error says otherwise: the storage has no volume of that name any more .* only from a snapshot or backup, into a new claim$/,
    ],
    [
      'a volume that the driver does not find',
      'rpc error: code = NotFound desc = volume 4711 not found',
      /^Unless the error says otherwise: the storage has no volume of that name any more/,
    ],
    [
      'a volume that another machine has open',
      'rpc error: code = Internal desc = rbd image replicapool/csi-vol-1 is still being used',
      /^Another machine still has the volume open/,
    ],
    [
      'a file system with errors that is to be expanded',
      'resize2fs: Permission denied to resize filesystem\nThere are errors in the filesystem, so online resizing is not allowed',
      /^The file system is damaged\. First stop the Pod/,
    ],
    [
      'a file system that cannot be expanded, of which no more is said',
      'MountVolume.Setup failed while expanding volume for volume "v" : resize2fs: Permission denied to resize filesystem',
      /^The volume is larger already, and its file system on node n1 cannot be expanded/,
    ],
    [
      'a zone that only the error names',
      "disk(/subscriptions/s/disks/d) cannot be attached to the VM because it is not in zone '2'",
      /no nodeAffinity, so the scheduler cannot know/,
    ],
    [
      'a machine that does not take the type of disk',
      'googleapi: Error 400: pd-balanced disk type cannot be used by n4-standard-4 machine type., badRequest',
      /^The machine of node n1 does not take this type of disk/,
    ],
    [
      'an option that the mount program does not know',
      'mount.nfs: an incorrect mount option was specified',
      /^The mount program of the node does not accept an option: correct the mountOptions of the PersistentVolume, which are nfsvers=4\.1,nolocks/,
    ],
    [
      'a name that is not found',
      'Failed to resolve "fs-1.efs.eu-west-1.amazonaws.com" - check that your file system ID is correct',
      /^Node n1 does not find the address of the storage by its name: .*mount target/,
    ],
    ['a right in vSphere', 'ServerFaultCode: NoPermission', /rejects the account .* \(Secret ns1\/creds\)$/],
    [
      'a group that the kubelet may not change',
      'applyFSGroup failed for vol v: open /m/raft: permission denied',
      /^The kubelet of node n1 may not change the group of the files .*: kubectl edit csidriver d\.example\.com$/,
    ],
    [
      'a process that has ended',
      'stat /var/lib/kubelet/pods/p/volumes/kubernetes.io~csi/v/mount: transport endpoint is not connected',
      /^The process that serves this mount on node n1 \(FUSE\) has ended/,
    ],
    ['a directory that was exported anew', 'stat /m: stale NFS file handle', /^The server no longer has the directory/],
    [
      'a certificate',
      'Post "https://10.0.0.1": x509: certificate has expired or is not yet valid',
      /^The storage answers, but node n1 does not accept its certificate/,
    ],
    [
      'an account that is refused',
      'mount error(13): Permission denied',
      /credentials or permissions \(Secret ns1\/creds\)$/,
    ],
    [
      'an export that is refused',
      'mount.nfs: access denied by server while mounting 10.0.0.1:/a',
      /^The NFS server does not export that path to node n1/,
    ],
    [
      'a path that is missing',
      'mount.nfs: mounting 10.0.0.1:/a failed, reason given by server: No such file or directory',
      /^Unless the error says otherwise: the storage does not have what/,
    ],
    [
      'a storage that is not reached',
      'iscsiadm: Could not log in to portal: connect timed out',
      /^Unless the error says otherwise: node n1 does not reach the storage/,
    ],
    [
      'an SMB server that is not reached',
      'mount error(115): Operation now in progress',
      /^Unless the error says otherwise: node n1 does not reach the storage/,
    ],
    [
      'a version of NFS that the server lacks',
      'mount.nfs: Protocol not supported for 10.0.0.1:/a on /m',
      /^The server does not offer the NFS version .*nfsvers=4\.1/,
    ],
    [
      'an image that the kernel cannot map',
      'rbd: sysfs write failed. RBD image feature set mismatch. rbd: map failed: (6) No such device or address',
      /^The kernel of node n1 lacks a feature that the image has .*rbd feature disable/,
    ],
    [
      'a device that another program holds',
      'mke2fs: /dev/longhorn/pvc-1 is apparently in use by the system; will not make a filesystem here!',
      /^Another program on node n1 has the device open: .*multipathd/,
    ],
    [
      'an earlier call',
      'rpc error: code = Aborted desc = an operation with the given volume already exists',
      /^Nothing yet/,
    ],
    [
      'a node plugin that does not respond',
      'rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing: dial unix /var/lib/kubelet/plugins/d/csi.sock: connect: connection refused"',
      /^The driver's node plugin does not respond on node n1/,
    ],
    [
      'a Secret that is not there',
      'fetching NodeStageSecretRef ns1/creds failed: kubernetes.io/csi: failed to find the secret creds in the namespace ns1 with error: secrets "creds" not found',
      /^Create the Secret that the PersistentVolume names \(Secret ns1\/creds\)/,
    ],
    [
      'SELinux labels that differ',
      'conflicting SELinux labels of volume data: "system_u:object_r:container_file_t:s0:c1" and "…:c2"',
      /^Another Pod on node n1 has the volume mounted with another SELinux label/,
    ],
    [
      'a key that is disabled',
      'rpc error: code = Internal desc = KMSInvalidStateException: arn:aws:kms:eu-west-1:1:key/k is disabled',
      /^Unless the error says otherwise: the volume is encrypted, and its key/,
    ],
    ['a passphrase', 'luksOpen: No key available with this passphrase.', /the volume is encrypted, and its key/],
    ['a disk that another machine has', 'RESOURCE_IN_USE_BY_ANOTHER_RESOURCE', /^Another machine still has the volume/],
    [
      'a file system that is newer than the kernel',
      'XFS: superblock has unknown read-only compatible features (0x8) enabled',
      /^The file system of the volume was made with features that the kernel of node n1 does not have/,
    ],
    [
      'a device that does not show',
      'MountVolume.WaitForAttach failed for volume "v" : timed out waiting for device /dev/xvdba to be attached',
      /^Unless the error says otherwise: the storage has attached the volume, and node n1 does not see the device/,
    ],
    ['a path of multipath that does not show', 'multipath: device is not found', /node n1 does not see the device/],
    [
      'an initiator that is refused',
      'iscsiadm: initiator reported error (24 - iSCSI login failed due to authorization failure)',
      /^The storage does not let node n1 log in: correct user and password of CHAP \(Secret ns1\/creds\), .*IQN/,
    ],
    [
      'a kernel without NFS',
      'mount.nfs: mount system call failed\nmount.nfs: No such device',
      /^Node n1 lacks a program/,
    ],
    [
      'a lock service that does not run',
      'mount.nfs: rpc.statd is not running but is required',
      /^Node n1 lacks a program/,
    ],
    [
      'a disk that is full',
      'mkdir /var/lib/kubelet/p: no space left on device',
      /^The volume is full, or the disk of node n1/,
    ],
    [
      'a plugin that Kubernetes no longer has',
      'FindAttachablePluginBySpec failed for volume "v"',
      /^This version of Kubernetes has no plugin for that kind of volume/,
    ],
    [
      'a call that does not end',
      'rpc error: code = DeadlineExceeded desc = context deadline exceeded',
      /^Nothing yet: the driver has not ended in time.* If it lasts: see in the log of the driver's node plugin on node n1/,
    ],
    [
      'a clone with XFS beside its source',
      'mount failed: exit status 32\nMounting arguments: -t xfs -o shared,defaults /dev/vde /m\nOutput: mount: /m: wrong fs type, bad option, bad superblock on /dev/vde',
      /^A clone or restored snapshot with XFS has the UUID of its source: .*nouuid/,
    ],
    [
      'a sidecar that no webhook has added',
      'rpc error: code = FailedPrecondition desc = failed to find the sidecar container in Pod spec',
      /^The driver needs a sidecar in the Pod, which its webhook adds/,
    ],
    [
      'a node without an ID',
      'cannot find NodeID for driver "d" for node "n1"',
      /^Let the driver's node plugin, usually a DaemonSet, run on node n1/,
    ],
    [
      'an attacher that does not answer, in older words',
      'attachment timeout for volume vol-1',
      /container csi-attacher/,
    ],
    [
      'a ConfigMap',
      'MountVolume.SetUp failed for volume "kms" : configmap "kms-config" not found',
      /^Create the ConfigMap that the message names/,
    ],
    [
      'a claim in a state of which the kubelet does not use it',
      'error processing PVC ns1/data: PVC is being deleted',
      /csi-provisioner why ns1\/data$/,
    ],
    [
      'a claim for one Pod',
      'volume uses the ReadWriteOncePod access mode and is already in use by another pod',
      /^The claim has access mode ReadWriteOncePod/,
    ],
    [
      'a volume that is being detached',
      'Code="AttachDiskWhileBeingDetached" Message="Cannot attach data disk"',
      /^Nothing yet: an earlier change of the attachment/,
    ],
    [
      'a volume that nobody has registered',
      'Volume with ID v is not registered as CNS Volume',
      /the storage has no volume of that name any more/,
    ],
    [
      'a disk of another machine in vSphere',
      "fault: ResourceInUse LocalizedMessage: The resource 'volume' is in use.",
      /^Another machine still has the volume open/,
    ],
    [
      'replicas that are not online',
      'No online replicas are available for Volume v',
      /^Check the health of the volume and of the cluster/,
    ],
    ['a disk that does not read', 'could not read block 0: Input/output error', /^Check the health of the volume/],
    [
      'a client of NFS that is not there, in words of file systems',
      'wrong fs type, bad option, bad superblock on 10.0.0.1:/media, missing codepage or helper program',
      /^Node n1 lacks a program/,
    ],
    [
      'a file system that the kernel does not know',
      "mount: unknown filesystem type 'glusterfs'",
      /^Node n1 lacks a program/,
    ],
    [
      'a file system of another type',
      'failed to mount the volume as "ext4", it already contains xfs. Mount error: mount failed',
      /^The volume holds something other than its fsType \(xfs\)/,
    ],
    [
      'a volume that was never written to',
      'failed to mount unformatted volume as read only',
      /^The volume has no file system that the node recognizes/,
    ],
    ['a node plugin without memory', 'mount.efs invoked oom-killer: Memory cgroup out of memory', /too little memory/],
    [
      'a volume that is not staged',
      'rpc error: code = FailedPrecondition desc = Volume does not appear staged',
      /^What an earlier use has left on node n1/,
    ],
    [
      'a version of NFS in other words',
      'mount.nfs: requested NFS version or transport protocol is not supported',
      /^The server does not offer the NFS version/,
    ],
    [
      'credentials that are not there',
      'Client error 2: No signing credentials found',
      /the storage rejects the account/,
    ],
    [
      'a kernel module for Lustre',
      '-t lustre fs-1@tcp:/x: mount failed: exit status 19 No such device',
      /^Node n1 lacks a program/,
    ],
    [
      'a target that takes no session',
      'iscsiadm: initiator reported error (19 - encountered non-retryable iSCSI login failure)',
      /node n1 gets no session with the storage/,
    ],
    [
      'a path of hostPath',
      'hostPath type check failed: /data is not a directory',
      /^Node n1 has no such file or directory of the type/,
    ],
    [
      'a kubelet with another root directory',
      'mount: /var/lib/kubelet/plugins/g/globalmount: mount point does not exist.',
      /mounts elsewhere than the kubelet of node n1 looks/,
    ],
    [
      'a device that does not exist',
      'The file /dev/nvme1n1 does not exist and no size was specified.',
      /node n1 does not see the device/,
    ],
    [
      'a device of multipath that is stale',
      "multipath device 'dm-76' serial check failed",
      /^What an earlier use has left/,
    ],
    [
      'a volume for another node',
      'MountVolume.NodeAffinity check failed for volume "v" : no matching NodeSelectorTerms',
      /the Pod is on node n1, usually as it sets spec\.nodeName/,
    ],
    [
      'a file system that needs more room',
      'output:(Filesystem must be larger than 300MB.',
      /^The volume is too small for its file system/,
    ],
    [
      'a volume in another state',
      'Invalid volume: Volume v status must be available or downloading to reserve, but the current status is detaching',
      /the storage has the volume in another state than it must be in/,
    ],
    [
      'a superblock that cannot be read',
      "mount: /m: can't read superblock on /dev/sdi.",
      /^The device or its file system cannot be read: .*dmesg/,
    ],
    [
      'nothing that is known',
      'the driver is on fire',
      /^Do what the error says; the log of the driver's node plugin on node n1 has the rest$/,
    ],
  ] as const) {
    test(`is read by its words: ${what}`, () => {
      assert.match(nodeErrorCure(error, { node: 'n1', isAttach: false, volume }), cure);
    });
  }

  test('names the log of who has tried: the attacher, or the kubelet for a volume of no driver', () => {
    assert.match(nodeErrorCure('on fire', { node: 'n1', isAttach: true, volume }), /csi-attacher/);
    for (const error of [
      'dial tcp 10.0.0.1:443: i/o timeout',
      'lookup api.example.com: no such host',
      'x509: unknown',
    ]) {
      const cure = nodeErrorCure(error, { node: 'n1', isAttach: true, volume });
      assert.match(cure, /the driver's controller/i);
      assert.doesNotMatch(cure, /n1/);
    }
    assert.match(
      nodeErrorCure('failed to find disk', { node: 'n1', isAttach: true, volume }),
      /^Do what the error says; the log of the driver's controller/,
    );
    assert.match(
      nodeErrorCure('ec2: UnauthorizedOperation', { node: 'n1', isAttach: true, volume }),
      /the account that attaches the volume/,
    );
    const nfs = { metadata: { name: 'v' }, spec: {} } as PersistentVolume;
    assert.match(nodeErrorCure('on fire', { node: 'n1', isAttach: false, volume: nfs }), /the kubelet on node n1/);
  });
});

test('of several nodes, names one whose taint is not there for good', () => {
  const node = (name: string, key: string): object => ({
    metadata: { name },
    spec: { taints: [{ key, effect: 'NoSchedule' }] },
    status: { conditions: [{ type: 'Ready', status: 'True' }] },
  });
  const control = node('control', 'node-role.kubernetes.io/control-plane');
  const cureOf = (...all: object[]): string =>
    schedulingCure('0/2 nodes are available: 2 node(s) had untolerated taint(s).', {
      pod: { metadata: { name: 'p' } },
      nodes: all as ClusterNode[],
    });
  assert.match(cureOf(control, node('n1', 'node.kubernetes.io/disk-pressure')), /^Free disk space on node n1/);
  assert.match(cureOf(control, node('n1', 'dedicated')), /kubectl taint nodes n1 dedicated:NoSchedule-$/);
  assert.match(cureOf(control), /kubectl taint nodes control /);
});

test('does not advise to remove by hand a taint that a controller removes', () => {
  const pod = { metadata: { name: 'p' } };
  const cureOf = (key: string): string => {
    const ready = [{ type: 'Ready', status: 'True' }];
    const spec = { taints: [{ key, effect: 'NoSchedule' }] };
    return barrierOf({ metadata: { name: 'n1' }, spec, status: { conditions: ready } }, pod)?.cure ?? '';
  };
  assert.match(
    cureOf('node.cloudprovider.kubernetes.io/uninitialized'),
    /^Check that the cloud controller manager runs/,
  );
  assert.match(cureOf('ToBeDeletedByClusterAutoscaler'), /^The autoscaler is about to remove node n1/);
  assert.match(
    cureOf('node.kubernetes.io/out-of-service'),
    /^Node n1 was marked as switched off\. Once it runs again: /,
  );
  assert.match(cureOf('node.kubernetes.io/disk-pressure'), /Kubernetes then removes the taint/);
  assert.match(
    cureOf('gpu'),
    /^Add a toleration to the Pod, or remove the taint: kubectl taint nodes n1 gpu:NoSchedule-$/,
  );
});
