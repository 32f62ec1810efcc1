/** What it means that a volume cannot be attached to a node or mounted there, by the words of drivers, kubelets and mount programs. */
import { shellWord } from '../../base/shell-word.ts';
import type { PersistentVolume } from '../../provision/objects.ts';
import { termsOf, termText } from '../node-labels.ts';
import { lasting, unlessSaid } from '../texts.ts';
import { certificateCure, networkWords, openElsewhere, storageCure } from './storage-words.ts';

/** Where it failed, and for which volume. */
interface NodeError {
  node: string;
  /** Taints of the node, where it was read: such as `key:NoSchedule`. */
  taints?: readonly string[];
  isAttach: boolean;
  /** Undefined where it was not read. */
  volume: PersistentVolume | undefined;
}

interface NodeErrorCure {
  pattern: RegExp;
  /** As of `TextPattern`. */
  byWords?: true;
  /** Whether it says nothing of a volume that is to be attached. */
  onNode?: true;
  /** Without a full stop. @param said - the first group of the pattern. */
  cure: (where: NodeError, said: string) => string;
}

export const attacherCure =
  "Check that the Pod of the driver's controller runs, with its container csi-attacher. If the driver does not need attaching, recreate its CSIDriver with attachRequired: false, which cannot be changed in place";

/** Of a mount. */
function programCure({ node }: NodeError): string {
  return `Node ${node} lacks a program or kernel module that the mount needs, such as nfs-common, cifs-utils, open-iscsi or the module nvme_tcp: install and start, or load it there`;
}

/** The first that fits decides. */
const cures: readonly NodeErrorCure[] = [
  {
    pattern: /has volumeMode Block, but is specified in volumeMounts/,
    cure: () =>
      'The claim is a block device (volumeMode Block): name it in volumeDevices of the container, with a devicePath, instead of volumeMounts; or use a claim of volumeMode Filesystem',
  },
  {
    pattern: /has volumeMode Filesystem, but is specified in volumeDevices/,
    cure: () =>
      'The claim is a file system (volumeMode Filesystem): name it in volumeMounts of the container, with a mountPath, instead of volumeDevices; or use a claim of volumeMode Block',
  },
  {
    pattern: /sidecar(?: container)?\b.*(?:not found|missing|not inject)|(?:find|inject) the sidecar/i,
    cure: () =>
      'The driver needs a sidecar in the Pod, which its webhook adds to Pods that have its annotation (of Cloud Storage FUSE: gke-gcsfuse/volumes: "true"): add that to the Pod template, check that the webhook runs, and create the Pod again',
  },
  {
    pattern: /configmap "[^"]+" not found/i,
    cure: () => 'Create the ConfigMap that the message names, in the namespace of the Pod, or correct the Pod',
  },
  {
    pattern: /error processing PVC ([^\s:]+):/,
    cure: (_, claim) =>
      `The kubelet does not use a claim in that state: csi-provisioner why ${shellWord(claim) ?? 'NAMESPACE/CLAIM'}`,
  },
  {
    pattern: /ReadWriteOncePod access mode and is already in use/,
    cure: () =>
      'The claim has access mode ReadWriteOncePod, and another Pod on that node has its volume: end that Pod, or wait until its kubelet has unmounted it',
  },
  {
    pattern:
      /volume attachment (?:is being|has been) deleted|BeingDetached|server is locked|in "?creating"? state|(?:but|it) was attaching/i,
    cure: () =>
      lasting(
        'Nothing yet: an earlier change of the attachment is still in progress at the storage, and this is tried again',
        'See in the storage, and in the VolumeAttachment of the volume, what does not end: kubectl get volumeattachments',
      ),
  },
  { pattern: /timed out waiting for external-attacher|attach(?:ment)? timeout for volume/i, cure: () => attacherCure },
  {
    pattern:
      /does not contain driver |not found in the list of registered CSI drivers|cannot find NodeID|has no NodeID/,
    cure: ({ node, taints = [] }) =>
      `Let the driver's node plugin, usually a DaemonSet, run on node ${node}${taints.length === 0 ? '' : ` (its Pods must tolerate the taint ${taints.join(' and ')})`}, and see what it has registered: kubectl get csinode ${node} -o yaml`,
  },
  {
    pattern:
      /\.sock\b.*(?:connection refused|no such file|connect|timed? ?out)|dial unix|grpc: the connection is unavailable/is,
    cure: (where) =>
      where.isAttach
        ? "The driver does not run beside its external-attacher: see the Pod of the driver's controller"
        : `The driver's node plugin does not respond on node ${where.node}: see its Pod there, usually of a DaemonSet`,
  },
  {
    pattern:
      /failed to find the secret|secrets? "[^"]+" (?:not found|is forbidden)|SecretRef .* cannot get resource "secrets"/,
    cure: ({ volume }) =>
      `Create the Secret that the PersistentVolume names${secretText(volume)}; the PersistentVolume keeps that name, whatever the class says now`,
  },
  {
    pattern:
      /AttachmentLimitExceeded|max(?:imum)? (?:number of )?(?:data )?(?:disks|volumes|attachments)|(?:volume|disk|attachment) limit/i,
    cure: ({ node }) =>
      `Node ${node} has as many volumes attached as its machine allows: move the Pod to another node, or detach a volume there. The scheduler respects the limit only if the driver reports it (allocatable.count in the CSINode of the node)`,
  },
  {
    pattern:
      /ZoneMismatch|(?:different|wrong|another|same) (?:availability )?zone|zone .*(?:mismatch|does not match)|not in (?:availability )?zone/i,
    cure: ({ node, volume }) =>
      `The volume is in another zone than node ${node}: have the Pod run in that of the volume${hasAffinity(volume) ? '' : '. Its PersistentVolume has no nodeAffinity, so the scheduler cannot know: add spec.nodeAffinity for that zone, which is allowed while there is none: kubectl edit pv ' + (volume?.metadata.name ?? '')}`,
  },
  {
    pattern:
      /(?:cannot be used by|not (?:supported|compatible) (?:by|for|with)) .*(?:machine|instance|VM) (?:type|size|family)|InstanceType\.\w*NotSupport/i,
    cure: ({ node }) =>
      `The machine of node ${node} does not take this type of disk: have the Pod run on nodes of another machine type (nodeSelector), or copy the data to a volume of a class with a type that the machine takes`,
  },
  {
    pattern:
      /(?:VirtualMachine|virtual machine|instance|node|server|droplet) \S* ?(?:was )?not found|failed to find VirtualMachine|no such (?:instance|node)/i,
    byWords: true,
    cure: ({ node }) =>
      `The storage finds no machine for node ${node}: compare the node's spec.providerID with the machine there, and check the cloud controller manager: kubectl get node ${node} -o yaml`,
  },
  {
    pattern:
      /InvalidVolume\.NotFound|\bvolume ?(?:id )?\S* ?(?:was |is |could )?(?:not (?:be )?found|does(?: not|n't) exist)|vStorageObject .*not found|not registered as a? ?CNS/i,
    byWords: true,
    cure: () =>
      'The storage has no volume of that name any more (spec.csi.volumeHandle of the PersistentVolume): see there who deleted or moved it. If it is gone, its data comes back only from a snapshot or backup, into a new claim',
  },
  {
    pattern: /conflicting SELinux labels|SELinux.*(?:mismatch|conflict)/i,
    cure: ({ node }) =>
      `Another Pod on node ${node} has the volume mounted with another SELinux label: give both the same seLinuxOptions, or have them run on different nodes`,
  },
  {
    pattern:
      /wrong fs type.* on (?:\S+:\/|\/\/)|unknown filesystem type|multipathd is not running|could not connect to iscsid|exit status 127/is,
    cure: programCure,
  },
  {
    pattern: /it already contains ([^\s.]+)/,
    cure: (_, own) =>
      `The volume holds something other than its fsType (${own}): if that is its file system, create the PersistentVolume again with spec.csi.fsType ${own} (first set persistentVolumeReclaimPolicy Retain); if not, check that it is the right volume before anything is written to it`,
  },
  {
    pattern: /unformatted volume as read only/,
    cure: () =>
      'The volume has no file system that the node recognizes. If it is new, let a Pod mount it once without readOnly, which formats it; if not, check that it is the right volume first',
  },
  {
    pattern: /oom-?kill|out of memory|signal: killed/i,
    cure: ({ node }) => `The node plugin of the driver on node ${node} has too little memory: raise its memory limit`,
  },
  {
    pattern: /\bKMS|\bluks|cryptsetup|passphrase|(?:decrypt|encrypt)\w* .*(?:key|fail)|key .*(?:disabled|not enabled)/i,
    byWords: true,
    cure: ({ volume }) =>
      `The volume is encrypted, and its key is not there, is disabled, or is another one: check the key, the right of the driver to use it, and its passphrase${secretText(volume)}. Without the key the data cannot be read`,
  },
  {
    pattern: new RegExp(
      `${openElsewhere.source}|VolumeInUse|ResourceInUse|resource '?volume'? is in use|IN_USE_BY_ANOTHER|already (?:attached|being used|mounted on another)|attached on another node|exclusive open`,
      'i',
    ),
    cure: () =>
      'Another machine still has the volume open, often the node on which its Pod ran before: find it in the storage (of Ceph: rbd status POOL/IMAGE), and end what uses the volume there, or shut that machine off. Two writers corrupt the file system',
  },
  {
    pattern: /can't read superblock/i,
    cure: ({ node }) =>
      `The device or its file system cannot be read: the kernel log of node ${node} says which (dmesg). If the storage is healthy, take a snapshot or copy of the volume, and repair the file system while it is not mounted (fsck, xfs_repair)`,
  },
  {
    pattern:
      /not ready for workloads|not scheduled|no online replicas|input\/output error|wrong medium type|write-protected|no mds\b|might be laggy|\bosds?\b.*(?:down|full)|(?:volume|replica|cluster|pool)s? .*(?:degraded|faulted|unhealthy|not healthy)/i,
    cure: () =>
      'Check the health of the volume and of the cluster in the storage system: its replicas, and of Ceph the MDS and OSDs (ceph status). Do not delete the claim: its data is still there',
  },
  {
    pattern: /fsck.* errors|errors in the file ?system|RUN fsck|UNEXPECTED INCONSISTENCY|structure needs cleaning/i,
    cure: ({ node }) =>
      `The file system is damaged. First stop the Pod, and take a snapshot or copy of the volume; then repair it on node ${node} while it is not mounted (fsck, or xfs_repair for XFS)`,
  },
  {
    pattern: /while expanding volume|NodeExpand\w* failed|resize2fs|xfs_growfs/i,
    cure: ({ node }) =>
      `The volume is larger already, and its file system on node ${node} cannot be expanded to that: usually it has errors, which the kernel log of the node shows (dmesg). Take a snapshot or copy, end the Pods that use the volume, and check the file system while it is not mounted`,
  },
  {
    pattern: /transport endpoint is not connected/i,
    cure: ({ node }) =>
      `The process that serves this mount on node ${node} (FUSE) has ended: see why, such as for lack of memory, in the mount Pod of the driver or its node plugin there. Then delete the Pod that uses the volume, so that it is mounted again`,
  },
  {
    pattern: /stale (?:NFS )?file handle/i,
    cure: ({ node }) =>
      `The server no longer has the directory that node ${node} has mounted, as after it was removed or exported again: see that it is there, and delete the Pods of the node that use the volume, so that it is mounted again`,
  },
  {
    pattern: /not appear staged|lun\b.* is not valid|serial check failed/i,
    cure: ({ node }) =>
      `What an earlier use has left on node ${node} is in the way: delete the Pod, so that the volume is unmounted and staged again; if that does not help, remove the stale devices there (multipath -ll), or move the Pod`,
  },
  {
    pattern: /login failed due to authorization|iscsi\w*\b.*authorization fail/i,
    cure: ({ node, volume }) =>
      `The storage does not let node ${node} log in: correct user and password of CHAP${secretText(volume)}, and have the storage permit the initiator name (IQN) of the node`,
  },
  { pattern: /x509: |certificate/i, cure: (where) => certificateCure(whoCalls(where)) },
  {
    pattern: /unknown (?:read-only )?(?:in)?compatible feature|unsupported features/i,
    cure: ({ node }) =>
      `The file system of the volume was made with features that the kernel of node ${node} does not have: have the Pod run on a node with a newer kernel, and create further file systems with older features (options of mkfs in the class, if the driver has them)`,
  },
  {
    pattern: /\bxfs\b.*wrong fs type|wrong fs type.*\bxfs\b|duplicate UUID/is,
    cure: ({ node }) =>
      `A clone or restored snapshot with XFS has the UUID of its source: if that or another copy of it is mounted on node ${node}, add nouuid to mountOptions (of the PersistentVolume; for new volumes of the class), or have the two run on different nodes. Otherwise the file system is damaged: take a snapshot or copy before you change anything on it`,
  },
  {
    pattern:
      /(?:file ?system|device|size|volume)\b.* (?:must be (?:larger|at least)|(?:is )?too small)|smaller than the minimum/i,
    cure: () =>
      'The volume is too small for its file system (XFS needs 300 MiB): request more, if the class allows expansion, or recreate the claim with a larger request or another csi.storage.k8s.io/fstype in its class',
  },
  {
    pattern: /node ?affinity check failed|no matching NodeSelectorTerms/i,
    cure: ({ node, volume }) => {
      const terms = volume === undefined ? [] : termsOf(volume);
      const where =
        terms.length === 0 ? 'other nodes' : `nodes with ${terms.map((term) => termText(term)).join(', or ')}`;
      return `The volume can only be used on ${where}, and the Pod is on node ${node}, usually as it sets spec.nodeName, which bypasses the scheduler: create the Pod again without it`;
    },
  },
  {
    pattern: /wrong fs type|bad superblock|unknown filesystem type/i,
    cure: () =>
      'The file system of the volume is damaged, differs from its fsType, or lacks its kernel module on the node. Take a snapshot or copy before you change anything on it',
  },
  {
    pattern: /applyFSGroup failed.*(?:permission denied|not permitted|read-only)/is,
    cure: ({ node, volume }) =>
      `The kubelet of node ${node} may not change the group of the files to the fsGroup of the Pod, as on an NFS export with root_squash: remove fsGroup from the Pod, export with no_root_squash, or turn off fsGroup for all volumes of the driver with fsGroupPolicy: None: kubectl edit csidriver ${(volume?.spec.csi as { driver?: string } | undefined)?.driver ?? ''}`.trimEnd(),
  },
  {
    pattern:
      /executable file not found|command not found|can't execute|exit (?:status|code) 127|helper program|bad option|modprobe|(?:kernel )?module \S+ not found|rpc\.statd is not running|-t (?:nfs4?|cifs|ceph|lustre|glusterfs)\b.*no such device|mount\.(?:nfs|lustre).*no such device|dev\/nvme-fabrics/is,
    cure: programCure,
  },
  {
    pattern:
      /(?:incorrect|invalid|unknown|unrecognized) mount option|mount option\S* .*(?:incorrect|invalid|not supported)/i,
    cure: ({ volume }) => {
      const { mountOptions = [] } = (volume?.spec ?? {}) as { mountOptions?: string[] };
      const own =
        mountOptions.length === 0
          ? 'mountOptions of the PersistentVolume'
          : `mountOptions of the PersistentVolume, which are ${mountOptions.join(',')}`;
      return `The mount program of the node does not accept an option: correct the ${own}, and for new volumes those of the class (delete it and create it again)`;
    },
  },
  {
    pattern: /failed to resolve|could not resolve|name or service not known|name resolution|no such host/i,
    cure: (where) =>
      where.isAttach
        ? "The driver's controller does not find the address of the storage by its name: check that the name is right, and the DNS of its Pod"
        : `Node ${where.node} does not find the address of the storage by its name: check that the name is right, and the DNS of the node; of a cloud's file storage, such as EFS, also that it has a mount target in the network and zone of the node`,
  },
  {
    pattern: /mount\.nfs.*access denied/is,
    cure: ({ node }) =>
      `The NFS server does not export that path to node ${node}: have it permit the address of the node`,
  },
  {
    pattern: /mount\.nfs.*(?:protocol|version)\b.* not supported/is,
    cure: () =>
      'The server does not offer the NFS version that the mount requests: set one that it offers in mountOptions, such as nfsvers=4.1 (of the PersistentVolume for this volume, of the class for new ones), or enable the version on the server',
  },
  {
    pattern: /feature set mismatch|image uses unsupported features/i,
    cure: ({ node }) =>
      `The kernel of node ${node} lacks a feature that the image has (of Ceph: imageFeatures in the class, for new volumes): disable it for this image (rbd feature disable POOL/IMAGE FEATURE), or use a newer kernel`,
  },
  {
    pattern: /apparently in use by the system|mount point busy|device or resource busy|device is busy/i,
    cure: ({ node }) =>
      `Another program on node ${node} has the device open: find out which. If it is multipathd, add the devices of this storage to the blacklist in multipath.conf`,
  },
  {
    pattern:
      /(?:timed out )?waiting for (?:the )?(?:device|disk|udev|path|volume .*to (?:appear|be attached))|(?:device|multipath|disk)\S*:? .*not found|(?:find|locate) (?:the )?(?:device|disk|NVMe)|no such device|size reported to be zero|no fc disk|DeviceNotFound|not attached to node|\/dev\/\S+,? (?:does not exist|no such file)/i,
    byWords: true,
    onNode: true,
    cure: ({ node }) =>
      `The storage has attached the volume, and node ${node} does not see the device: check there that the disk shows (lsblk), and what brings it there, such as iSCSI sessions, multipath or udev; if it does not, detach it by moving the Pod to another node`,
  },
  {
    pattern:
      /mount error\(13\)|NT_STATUS_|LOGON_FAILURE|permission denied|access denied|PermissionDenied|NoPermission|Unauthenticated|UnauthorizedOperation|AccessDenied|not authorized|authorization fail|credentials|required key not available/i,
    byWords: true,
    cure: ({ isAttach, volume }) =>
      `The storage rejects the account that ${isAttach ? 'attaches' : 'mounts'} the volume, or denies it a permission: correct its credentials or permissions${secretText(volume)}`,
  },
  {
    pattern: /hostPath type check failed/,
    cure: ({ node }) =>
      `Node ${node} has no such file or directory of the type that the volume asks for: create it there, or correct hostPath.path and its type`,
  },
  {
    pattern: /mount ?point\S* .*does not exist|kubelet\S*: no such file or directory/i,
    byWords: true,
    cure: ({ node }) =>
      `The driver's node plugin mounts elsewhere than the kubelet of node ${node} looks: have it use the root directory of that kubelet, which differs with k0s or MicroK8s, and share its mounts (mountPropagation Bidirectional)`,
  },
  {
    pattern: /no such file or directory|does not exist/i,
    byWords: true,
    cure: () =>
      'The storage does not have what the message names, such as a path or a share: create it there, or correct the PersistentVolume',
  },
  {
    pattern: new RegExp(
      [...networkWords, '(?:iscsi|login|mount).*time(?:d )?out', String.raw`mount error\((?:110|11[1-5])\)`].join('|'),
      'is',
    ),
    byWords: true,
    cure: (where) =>
      `${whoCalls(where)} does not reach the storage: check that what it connects to runs, its address, DNS, network policies and firewalls`,
  },
  {
    pattern: /no space left on device|disk quota exceeded/i,
    cure: ({ node }) =>
      `The volume is full, or the disk of node ${node}, on which the mount points are: see which (df), and make room there`,
  },
  {
    pattern:
      /no (?:such |volume )plugin (?:matched)?|FindAttachablePluginBySpec failed|failed to get Plugin from volumeSpec/i,
    cure: () =>
      'This version of Kubernetes has no plugin for that kind of volume: set persistentVolumeReclaimPolicy Retain, so that no data is lost, then create the PersistentVolume again for its CSI driver',
  },
  {
    pattern: /iscsi|\bnvme|initiator/i,
    byWords: true,
    onNode: true,
    cure: ({ node }) =>
      `Node ${node} gets no session with the storage: check there that the service of the initiator runs (iscsid, or kernel module nvme_tcp), that its name (IQN or NQN) may use the volume at the storage, and that it reaches the portal (3260, or 4420)`,
  },
  {
    pattern: /multipath/i,
    byWords: true,
    onNode: true,
    cure: ({ node }) =>
      `Check multipath on node ${node}: that multipathd runs, and what it says of the device (multipath -ll)`,
  },
  {
    pattern: /\bstatus must be\b|current status is|\binvalid (?:volume )?state\b/i,
    byWords: true,
    cure: () =>
      'The storage has the volume in another state than it must be in, often after an earlier call that did not end: see there what it waits for, and, if no machine has the volume, reset its state',
  },
  {
    pattern: /an operation with the given .*already exists|already in progress|code = Aborted/i,
    cure: (where) =>
      lasting(
        'Nothing yet: an earlier call for this volume is still in progress',
        `See in ${logOf(where)} what it waits for, usually for a storage that does not respond; check that the storage is well, and reached from there. If the call hangs even then, delete the Pod of the driver there`,
      ),
  },
  {
    pattern: /deadline ?exceeded/i,
    cure: (where) =>
      lasting(
        'Nothing yet: the driver has not ended in time, and is asked again',
        `See in ${logOf(where)} what it waits for, usually for the storage`,
      ),
  },
];

/** Volumes are attached by the controller of a driver, and mounted on the node. */
function whoCalls({ node, isAttach }: NodeError): string {
  return isAttach ? "the driver's controller" : `node ${node}`;
}

/** What to do, with whose log says more. @param error - as an event or a VolumeAttachment has it. */
export function nodeErrorCure(error: string, where: NodeError): string {
  for (const { pattern, byWords, onNode, cure } of cures) {
    const match = onNode === true && where.isAttach ? null : pattern.exec(error);
    if (match === null) continue;
    const text = cure(where, match[1] ?? '');
    return byWords === true ? unlessSaid(text) : text;
  }
  // the controller of a driver is refused by the storage as in other calls
  const byStorage = where.isAttach ? storageCure(error) : undefined;
  return byStorage ?? `Do what the error says; ${logOf(where)} has the rest`;
}

function logOf({ node, isAttach, volume }: NodeError): string {
  if (isAttach) return "the log of the driver's controller, container csi-attacher,";
  return volume !== undefined && volume.spec.csi === undefined
    ? `the log of the kubelet on node ${node}`
    : `the log of the driver's node plugin on node ${node}`;
}

function hasAffinity(volume: PersistentVolume | undefined): boolean {
  return volume === undefined || volume.spec.nodeAffinity !== undefined;
}

function secretText(volume: PersistentVolume | undefined): string {
  const { csi, iscsi, rbd, cephfs } = (volume?.spec ?? {}) as Record<string, SecretRefs | undefined>;
  const reference =
    csi?.nodeStageSecretRef ??
    csi?.nodePublishSecretRef ??
    [iscsi, rbd, cephfs].find((each) => each?.secretRef)?.secretRef;
  const { namespace = '', name = '' } = reference ?? {};
  if (name === '') return '';
  return ` (Secret ${namespace === '' ? '' : `${namespace}/`}${name})`;
}

/** Of a CSI volume, and of kinds that are part of Kubernetes. */
interface SecretRefs {
  nodeStageSecretRef?: SecretRef;
  nodePublishSecretRef?: SecretRef;
  secretRef?: SecretRef;
}

interface SecretRef {
  namespace?: string;
  name?: string;
}
