/** What drivers say, with the codes of the CSI specification and without. */
import type { Cause } from '../../../src/explain/causes/cause.ts';
import type { Verdict } from '../../../src/explain/explanation.ts';
import type { Row } from './row.ts';

interface DriverRow {
  title: string;
  /** As the driver of a row takes it: `RESOURCE_EXHAUSTED`. */
  code: string;
  /** As an event has it: `ResourceExhausted`. */
  codeName: string;
  text: string;
  verdict?: Verdict;
  cause: Cause;
  advises: RegExp;
}

const words: readonly DriverRow[] = [
  {
    title: 'an error of the driver',
    ...{ code: 'INTERNAL', codeName: 'Internal', text: 'on fire' },
    cause: 'driver-error',
    advises: /^See the log of /,
  },
  {
    title: 'a storage without room, in the code for it',
    ...{ code: 'RESOURCE_EXHAUSTED', codeName: 'ResourceExhausted', text: 'pool fast is full' },
    cause: 'no-capacity',
    advises: /^Free storage, request less/,
  },
  {
    title: 'a limit of the storage, in the code for everything',
    ...{
      code: 'INTERNAL',
      codeName: 'Internal',
      text: 'api error VolumeLimitExceeded: You have exceeded your maximum',
    },
    cause: 'no-capacity',
    advises: /^Unless the error says otherwise: the storage has no room, or a limit is reached/,
  },
  {
    title: 'an account of the driver without a permission at the storage',
    ...{
      code: 'INTERNAL',
      codeName: 'Internal',
      text: 'UnauthorizedOperation: You are not authorized to perform this',
    },
    cause: 'driver-error',
    advises: /^Unless the error says otherwise: the account with which the driver uses the storage lacks a permission/,
  },
  {
    title: 'a storage that the driver does not reach',
    ...{ code: 'INTERNAL', codeName: 'Internal', text: 'dial tcp: lookup storage.example.com: no such host' },
    cause: 'driver-error',
    advises: /^Unless the error says otherwise: the driver does not reach its storage/,
  },
  {
    title: 'a mount that the server of a share refuses',
    ...{
      code: 'INTERNAL',
      codeName: 'Internal',
      text: 'failed to mount: mount.nfs: access denied by server while mounting',
    },
    cause: 'driver-error',
    advises: /^The NFS server does not export that path to the machine that mounts it/,
  },
  {
    title: 'a pool that the storage does not have',
    ...{ code: 'NOT_FOUND', codeName: 'NotFound', text: 'pool fats' },
    cause: 'driver-error',
    advises: /^The storage does not have what the class or the configuration of the driver names/,
  },
  {
    title: 'a storage whose state does not allow it',
    ...{ code: 'FAILED_PRECONDITION', codeName: 'FailedPrecondition', text: 'a policy demands encryption' },
    cause: 'driver-error',
    advises: /^The state of the storage, or a policy there/,
  },
  {
    title: 'credentials that the storage does not accept',
    ...{ code: 'UNAUTHENTICATED', codeName: 'Unauthenticated', text: 'wrong key' },
    cause: 'driver-error',
    advises: /^Check the credentials/,
  },
  {
    title: 'a driver that cannot do what is asked for',
    ...{ code: 'UNIMPLEMENTED', codeName: 'Unimplemented', text: 'not in this mode' },
    cause: 'driver-error',
    advises: /^The driver cannot do this, and further attempts do not change it/,
  },
  {
    title: 'a storage that damages data',
    ...{ code: 'DATA_LOSS', codeName: 'DataLoss', text: 'checksum' },
    cause: 'driver-error',
    advises: /^The storage reports data that is lost or damaged/,
  },
  {
    title: 'a size that the driver does not create',
    ...{ code: 'OUT_OF_RANGE', codeName: 'OutOfRange', text: 'at least 8Gi' },
    cause: 'unsupported-size',
    advises: /^Recreate the claim with a size that the driver supports/,
  },
  {
    title: 'a size that the storage does not support, in the code for everything',
    ...{
      code: 'INTERNAL',
      codeName: 'Internal',
      text: 'SDK.ServerError ErrorCode: InvalidDiskSize.NotSupported Message: The specified disk size is not supported.',
    },
    cause: 'unsupported-size',
    advises: /^Recreate the claim with a size that the storage supports/,
  },
  {
    title: 'a limit of the account, in the code for a storage without room',
    ...{ code: 'RESOURCE_EXHAUSTED', codeName: 'ResourceExhausted', text: '[400] Account Limit reached' },
    cause: 'no-capacity',
    advises: /^A limit is reached, as the message says, such as that of the account/,
  },
  {
    title: 'a policy of the class that fits no storage',
    ...{
      code: 'INTERNAL',
      codeName: 'Internal',
      text: 'failed to create volume with fault: CnsFault: No compatible datastore found for storagePolicy "gold"',
    },
    cause: 'driver-error',
    advises: /^Unless the error says otherwise: no storage that the driver knows fits what the class asks for/,
  },
  {
    title: 'a volume that the storage has lost while it created it',
    ...{
      code: 'INTERNAL',
      codeName: 'Internal',
      text: "failed to get an available volume in EC2: InvalidVolume.NotFound: The volume 'vol-1' does not exist.",
    },
    cause: 'driver-error',
    advises: /^The storage lost the volume while creating it; its own log .* says why/,
  },
  {
    title: 'a policy of a cloud that forbids the volume',
    ...{
      code: 'INTERNAL',
      codeName: 'Internal',
      text: 'RESPONSE 403: 403 Forbidden ERROR CODE: RequestDisallowedByPolicy',
    },
    cause: 'driver-error',
    advises: /^A policy of the cloud or storage forbids this/,
  },
  {
    title: 'a cloud that has none left in a zone',
    ...{
      code: 'UNAVAILABLE',
      codeName: 'Unavailable',
      text: "operation failed (ZONE_RESOURCE_POOL_EXHAUSTED): The zone 'zones/z-c' does not have enough resources available",
    },
    cause: 'no-capacity',
    advises: /^The cloud has none of this left there, and no limit of yours is reached/,
  },
  {
    title: 'a storage with a certificate that has expired',
    ...{
      code: 'INTERNAL',
      codeName: 'Internal',
      text: 'Post "https://storage.example.com": tls: failed to verify certificate: x509: certificate has expired',
    },
    cause: 'driver-error',
    advises: /^The storage answers, but the driver does not accept its certificate: renew it there/,
  },
  {
    title: 'a storage that does not accept a zone',
    ...{
      code: 'INTERNAL',
      codeName: 'Internal',
      text: `{"badRequest": {"code": 400, "message": "Invalid input received: Availability zone 'z-1' is invalid."}}`,
    },
    cause: 'driver-error',
    advises:
      /^Unless the error says otherwise: the storage does not accept a value that the message names, such as a type or a zone/,
  },
  {
    title: 'a storage that is away, in the code for what may pass',
    ...{
      code: 'UNAVAILABLE',
      codeName: 'Unavailable',
      text: 'dial tcp 192.0.2.7:443: i/o timeout',
    },
    cause: 'driver-error',
    advises: /^Unless the error says otherwise: the driver does not reach its storage/,
  },
  {
    title: 'a driver that is not ready yet',
    ...{
      code: 'UNAVAILABLE',
      codeName: 'Unavailable',
      text: 'the plugin is starting',
    },
    cause: 'driver-error',
    advises: /^Check that the driver's container runs beside the sidecar, and that the storage behind it responds/,
  },
  {
    title: 'a helper Pod that does not end in time',
    ...{
      code: 'UNKNOWN',
      codeName: 'Unknown',
      text: 'failed to create volume pvc-1: create process timeout after 120 seconds',
    },
    cause: 'driver-error',
    advises: /^The provisioner has a helper Pod do this on the node/,
  },
  {
    title: 'a driver that is still at work on an earlier call',
    ...{ code: 'ABORTED', codeName: 'Aborted', text: 'an operation with the given Volume ID already exists' },
    verdict: 'waiting',
    cause: 'driver-error',
    advises: /^Nothing yet: the driver is still at work on an earlier call/,
  },
];

export const drivers: readonly Row[] = [
  ...words.map(({ title, code, codeName, text, verdict = 'stuck', cause, advises }): Row => ({
    title,
    async arrange(world) {
      await world.fault({ code, message: text });
      await world.addClass();
      await world.addClaim();
    },
    async recorded(world) {
      await world.handedOver();
      const message = `failed to provision volume with StorageClass "ns1": rpc error: code = ${codeName} desc = ${text}`;
      await world.addEvent({ kind: 'claim', name: 'c' }, { reason: 'ProvisioningFailed', message });
    },
    verdict,
    cause,
    says: new RegExp(`^Provisioning failed .*code = ${codeName} desc = `),
    advises,
    cure: (world) => world.fault(),
    ends: 'bound',
  })),
  {
    title: 'a driver whose earlier call hangs for longer than ten minutes',
    async arrange(world) {
      await world.addClass();
      await world.addClaim();
    },
    cluster: { not: 'it takes ten minutes' },
    async recorded(world) {
      await world.handedOver();
      const message = 'rpc error: code = Aborted desc = an operation with the given Volume ID pvc-1 already exists';
      const about = { kind: 'claim', name: 'c' } as const;
      await world.addEvent(about, { reason: 'ProvisioningFailed', message, msAgo: 11 * 60_000 });
      await world.addEvent(about, { reason: 'ProvisioningFailed', message, count: 9 });
    },
    verdict: 'stuck',
    cause: 'driver-error',
    says: /^Provisioning failed 10 times in 11 min/,
    advises: /^An earlier call hangs in the driver.*and then restart the Pod of the driver\. See the log of /,
  },
  {
    title: 'a long error of the driver, in the Pod that its Lease and events name',
    async arrange(world) {
      await world.addClass();
      await world.addClaim();
    },
    cluster: { not: 'its provisioner is no Pod' },
    async recorded(world) {
      await world.handedOver();
      await world.add('pod', {
        metadata: { name: 'pod-1', namespace: 'driver' },
        spec: {
          containers: [
            { name: 'csi-provisioner', image: 'registry.example.com/csi-provisioner:v1' },
            { name: 'plugin', image: 'registry.example.com/hostpath:v1' },
            { name: 'liveness-probe', image: 'registry.example.com/livenessprobe:v1' },
          ],
        },
      });
      const message = `rpc error: code = Internal desc = making the file system failed: ${'arguments: -t ext4 '.repeat(80)}Output: wrong fs type`;
      await world.addEvent({ kind: 'claim', name: 'c' }, { reason: 'ProvisioningFailed', message });
    },
    verdict: 'stuck',
    cause: 'driver-error',
    says: /^.{0,350}code = Internal desc = making the file system failed: .{0,200} … .{0,400}Output: wrong fs type$/,
    advises: /^See the log of container plugin in Pod driver\/pod-1: kubectl logs -n driver pod-1 -c plugin$/,
  },
  {
    title: 'a value of the class that the configuration of the driver does not have',
    async arrange(world) {
      const text = 'failed to fetch monitor list using clusterID (rook-ceph): missing configuration';
      await world.fault({ code: 'INVALID_ARGUMENT', message: text });
      await world.addClass({ parameters: { clusterID: 'rook-ceph' } });
      await world.addClaim();
    },
    async recorded(world) {
      await world.handedOver();
      const message =
        'rpc error: code = InvalidArgument desc = failed to fetch monitor list using clusterID (rook-ceph): missing configuration';
      await world.addEvent({ kind: 'claim', name: 'c' }, { reason: 'ProvisioningFailed', message });
    },
    verdict: 'stuck',
    cause: 'driver-error',
    says: /^Provisioning failed .*clusterID \(rook-ceph\): missing configuration$/,
    advises: /^The error quotes rook-ceph, the value of the class parameter clusterID: .*The claim can stay$/,
  },
  {
    title: 'a value of the class that the storage does not offer, in the code for everything',
    async arrange(world) {
      const text = 'InvalidDataDiskCategory.NotSupported the diskCategory is not supported; diskCategory is cloud';
      await world.fault({ code: 'INTERNAL', message: text });
      await world.addClass({ parameters: { type: 'cloud' } });
      await world.addClaim();
    },
    async recorded(world) {
      await world.handedOver();
      const message =
        'rpc error: code = Internal desc = InvalidDataDiskCategory.NotSupported the diskCategory is not supported; diskCategory is cloud';
      await world.addEvent({ kind: 'claim', name: 'c' }, { reason: 'ProvisioningFailed', message });
    },
    verdict: 'stuck',
    cause: 'driver-error',
    says: /^Provisioning failed .*diskCategory is cloud$/,
    advises: /^The error quotes cloud, the value of the class parameter type: .*The claim can stay$/,
  },
  {
    title: 'an account without a permission, of a Secret that the class names',
    async arrange(world) {
      await world.fault({ code: 'INTERNAL', message: 'connecting failed: rados: ret=-13, Permission denied' });
      await world.add('secret', { metadata: { name: 'ceph' } });
      await world.addClass({
        parameters: {
          'csi.storage.k8s.io/provisioner-secret-name': 'ceph',
          'csi.storage.k8s.io/provisioner-secret-namespace': world.namespace,
        },
      });
      await world.addClaim();
    },
    async recorded(world) {
      await world.handedOver();
      const message = 'rpc error: code = Internal desc = connecting failed: rados: ret=-13, Permission denied';
      await world.addEvent({ kind: 'claim', name: 'c' }, { reason: 'ProvisioningFailed', message });
    },
    verdict: 'stuck',
    cause: 'driver-error',
    says: /^Provisioning failed .*rados: ret=-13, Permission denied$/,
    advises: /names another account \(the class names Secret \S+\/ceph\)\. See the log of /,
    cure: (world) => world.fault(),
    ends: 'bound',
  },
  {
    title: 'a source that the storage cannot copy in its state',
    async arrange(world) {
      await world.addClass();
      await world.addClaim({}, { name: 'src' });
      await world.bound('src');
      const message =
        'unable to create volume: failed to verify data source: cannot get client for volume pvc-1: engine is not running';
      await world.fault({ code: 'INTERNAL', message });
      await world.addClaim({ dataSource: { kind: 'PersistentVolumeClaim', name: 'src' } });
    },
    async recorded(world) {
      await world.handedOver();
      const message =
        'rpc error: code = Internal desc = unable to create volume: failed to verify data source: cannot get client for volume pvc-1: engine is not running';
      await world.addEvent({ kind: 'claim', name: 'c' }, { reason: 'ProvisioningFailed', message });
    },
    verdict: 'stuck',
    cause: 'source-not-ready',
    says: /^Provisioning failed .*engine is not running/,
    advises: /^The storage cannot copy PersistentVolumeClaim \S+\/src in the state that it has there/,
    cure: (world) => world.fault(),
    ends: 'bound',
  },
  {
    title: 'a source that the storage no longer has, in the code for everything',
    async arrange(world) {
      await world.addClass();
      await world.addClaim({}, { name: 'src' });
      await world.bound('src');
      const message = "api error InvalidSnapshot.NotFound: The snapshot 'snap-1' does not exist.";
      await world.fault({ code: 'INTERNAL', message });
      await world.addClaim({ dataSource: { kind: 'PersistentVolumeClaim', name: 'src' } });
    },
    async recorded(world) {
      await world.handedOver();
      const message =
        "rpc error: code = Internal desc = InvalidSnapshot.NotFound: The snapshot 'snap-1' does not exist.";
      await world.addEvent({ kind: 'claim', name: 'c' }, { reason: 'ProvisioningFailed', message });
    },
    verdict: 'stuck',
    cause: 'source-missing',
    says: /^Provisioning failed .*code = Internal desc = .*InvalidSnapshot\.NotFound/,
    advises:
      /^The storage no longer has what PersistentVolumeClaim \S+\/src stands for: recreate the claim with another source/,
    cure: (world) => world.fault(),
    ends: 'bound',
  },
  {
    title: 'a snapshot that the storage no longer has',
    async arrange(world) {
      await world.addClass();
      await world.addClaim({}, { name: 'src' });
      await world.bound('src');
      await world.fault({ code: 'NOT_FOUND', message: 'volume handle gone' });
      await world.addClaim({ dataSource: { kind: 'PersistentVolumeClaim', name: 'src' } });
    },
    async recorded(world) {
      await world.handedOver();
      const message = 'rpc error: code = NotFound desc = volume handle gone';
      await world.addEvent({ kind: 'claim', name: 'c' }, { reason: 'ProvisioningFailed', message });
    },
    verdict: 'stuck',
    cause: 'source-missing',
    says: /^Provisioning failed .*code = NotFound desc = /,
    advises: /^The storage no longer has what PersistentVolumeClaim \S+\/src stands for/,
    cure: (world) => world.fault(),
    ends: 'bound',
  },
];
