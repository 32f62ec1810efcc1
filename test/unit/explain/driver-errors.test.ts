/** What the errors of drivers mean, by the codes of the CSI specification, and by texts as drivers have reported them. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { failureMeaning } from '../../../src/explain/causes/causes.ts';
import { deletionMeaning } from '../../../src/explain/causes/failed-deletion.ts';
import type { ClaimFacts } from '../../../src/explain/claim-facts-reader.ts';
import { cureText } from '../../../src/explain/texts.ts';

const log = 'See the log of the driver';
const cureOf = (text: string, isLate = true): string => cureText(failureMeaning(text), { isLate, log });
const error = (code: string, text = 'TEXT'): string => `rpc error: code = ${code} desc = ${text}`;

describe('a code of the CSI specification', () => {
  for (const [code, cause, cure] of [
    ['Canceled', 'driver-error', /^The storage does not respond to the driver in time/],
    ['InvalidArgument', 'driver-error', /^The driver cannot create such a volume/],
    ['DeadlineExceeded', 'driver-error', /^The storage does not respond to the driver in time.*--timeout/],
    ['NotFound', 'driver-error', /^The storage does not have what the class or the configuration of the driver names/],
    ['AlreadyExists', 'driver-error', /^The storage has another volume of this name/],
    ['PermissionDenied', 'driver-error', /^Check the credentials and permissions/],
    ['ResourceExhausted', 'no-capacity', /^Free storage/],
    ['FailedPrecondition', 'driver-error', /^The state of the storage, or a policy there/],
    ['Aborted', 'driver-error', /^An earlier call hangs in the driver/],
    ['OutOfRange', 'unsupported-size', /^Recreate the claim with a size/],
    ['Unimplemented', 'driver-error', /^The driver cannot do this/],
    ['Unavailable', 'driver-error', /^Check that the driver's container runs/],
    ['DataLoss', 'driver-error', /^The storage reports data that is lost/],
    ['Unauthenticated', 'driver-error', /^Check the credentials and permissions/],
    ['Internal', 'driver-error', /^See the log of the driver$/],
    ['Unknown', 'driver-error', /^See the log of the driver$/],
  ] as const) {
    test(`${code} means ${cause}, and has a cure of its own`, () => {
      assert.equal(failureMeaning(error(code)).cause, cause);
      assert.match(cureOf(error(code)), cure);
    });
  }

  for (const [what, text] of [
    ['this sidecar', 'the CSI driver is not connected'],
    ['this sidecar amid a call', 'error reading from server: EOF'],
    [
      'the Go sidecar',
      'connection error: desc = "transport: Error while dialing: dial unix /run/csi/socket: connect: connection refused"',
    ],
  ] as const) {
    test(`of a driver that is away, in the words of ${what}, is not about its storage`, () => {
      assert.match(cureOf(error('Unavailable', text)), /^Check that the driver's container runs beside the sidecar\. /);
      const deletion = deletionMeaning(error('Unavailable', text), undefined);
      assert.equal(deletion.cure, "Check that the driver's container runs beside the sidecar");
    });
  }

  test('of a call that may go on advises nothing at first, and says what if it lasts', () => {
    for (const code of ['DeadlineExceeded', 'Aborted', 'Canceled']) {
      assert.match(
        cureOf(error(code), false),
        /^Nothing yet: .*called again\. If it lasts: .*the storage does not respond/,
      );
    }
  });

  test('counts that is wrapped in one that says nothing', () => {
    const wrapped = error('Internal', `failed to create volume v: ${error('OutOfRange', 'at most 5Gi')}`);
    assert.equal(failureMeaning(wrapped).cause, 'unsupported-size');
    const hung = error(
      'Internal',
      `failed to mount smb server: ${error('Aborted', 'An operation with the given Volume ID exists')}`,
    );
    assert.match(cureOf(hung), /^An earlier call hangs/);
  });
});

describe('an error with a code for everything', () => {
  for (const [what, text, cause, cure] of [
    [
      'a name that a driver in Node.js does not resolve',
      error('Internal', 'Error: getaddrinfo ENOTFOUND nas.lan'),
      'driver-error',
      /^Unless the error says otherwise: the driver does not reach its storage/,
    ],
    [
      'backends of which none fits',
      error('Unknown', 'no available backends for storage class gold'),
      'driver-error',
      /^Unless the error says otherwise: no storage that the driver knows fits what the class asks for, is online, and accepts the account of the driver/,
    ],
    [
      'a host that is not found among several',
      error('Internal', "Couldn't find any host available to create Volume"),
      'driver-error',
      /no storage that the driver knows fits what the class asks for/,
    ],
    [
      'an access mode of a local path, without a code',
      'NodePath only supports ReadWriteOnce and ReadWriteOncePod (1.22+) access modes',
      'driver-error',
      /^The storage does not have volumes with the access mode that the claim requests/,
    ],
    [
      'an access mode of the CSI specification',
      error(
        'InvalidArgument',
        'volume capability access mode MULTI_NODE_MULTI_WRITER is not supported for block storage',
      ),
      'driver-error',
      /^The storage does not have volumes with the access mode/,
    ],
    [
      'a pool that is full',
      error('Internal', 'pool is full'),
      'no-capacity',
      /^Unless the error says otherwise: the storage has no room/,
    ],
    [
      'a volume group that is not found by its pattern',
      error('Internal', 'no vg available to serve volume request'),
      'driver-error',
      /^Unless the error says otherwise: no storage that the driver knows fits/,
    ],
    [
      'a name that is taken',
      error('Internal', "cannot create 'tank/pvc-1': dataset already exists"),
      'driver-error',
      /^Unless the error says otherwise: the storage has another volume of this name/,
    ],
    [
      'a status of HTTP about an account',
      error('Internal', 'Request failed with status code 401'),
      'driver-error',
      /^Unless the error says otherwise: the storage does not accept the credentials/,
    ],
    [
      'a password',
      error('Internal', 'Cannot complete login due to an incorrect user name or password.'),
      'driver-error',
      /^Unless the error says otherwise: the storage does not accept the credentials/,
    ],
    [
      'credentials that are not there',
      error('Internal', 'get identity: get credentials: no EC2 IMDS role found'),
      'driver-error',
      /^The driver has no credentials/,
    ],
    [
      'a storage that is in trouble',
      error('Internal', 'unexpected status code 503'),
      'driver-error',
      /^The storage, or the service through which the driver uses it, does not work/,
    ],
    [
      'a call that does not end',
      error('Internal', 'caused by: context deadline exceeded'),
      'driver-error',
      /^The storage does not respond to the driver in time/,
    ],
    [
      'storage that may only be read',
      error('Internal', 'mkdir /mnt/pvc-1: read-only file system'),
      'driver-error',
      /^The driver may only read the storage/,
    ],
    [
      'a licence',
      error('Internal', 'license expired'),
      'driver-error',
      /^Unless the error says otherwise: the storage needs a license/,
    ],
    [
      'a topology',
      error('FailedPrecondition', 'no topology key found on CSINode node-1'),
      'driver-error',
      /^Unless the error says otherwise: the driver finds no place for the volume/,
    ],
    [
      'a parameter of the class',
      error('InvalidArgument', 'invalid parameter "tpye" in storage class'),
      'driver-error',
      /^Unless the error says otherwise: a parameter of the class is wrong/,
    ],
    [
      'a role that the service account may not take',
      error('Internal', 'api error AccessDenied: Not authorized to perform sts:AssumeRoleWithWebIdentity'),
      'driver-error',
      /^The cloud does not let the service account of the driver use its role/,
    ],
    [
      'a pool that is not found, in other words',
      error('Internal', 'no found any available storage pool for volume map[allocType:thin]'),
      'driver-error',
      /no storage that the driver knows fits what the class asks for/,
    ],
    [
      'a size that a cloud names as a parameter',
      error('Internal', 'ErrorCode: InvalidParameter Message: The specified parameter "Size" is not valid.'),
      'unsupported-size',
      /^Recreate the claim with a size that the storage supports/,
    ],
    [
      'a format that does not fit',
      error('Internal', "volume name 'vm-9999-pvc-1' does not match requested format 'qcow2'"),
      'driver-error',
      /the storage does not accept a value that the message names/,
    ],
    [
      'an account that a driver calls an invalid argument',
      error('InvalidArgument', 'connecting failed: rados: ret=-13, Permission denied'),
      'driver-error',
      /^Unless the error says otherwise: the account with which the driver uses the storage/,
    ],
    [
      'a service that is switched off',
      error(
        'PermissionDenied',
        'googleapi: Error 403: Cloud Filestore API has not been used in project 1 before or it is disabled',
      ),
      'driver-error',
      /^The account at the cloud does not have that service switched on/,
    ],
    [
      'a directory that may not be made, of a provisioner without codes',
      'unable to create directory to provision new pv: mkdir /persistentvolumes/x: permission denied',
      'driver-error',
      /^Unless the error says otherwise: the account with which/,
    ],
    [
      'room that there is not, of a provisioner without codes',
      'Failed to allocate new volume: No space',
      'driver-error',
      /^Unless the error says otherwise: the storage has no room/,
    ],
    [
      'a file system that is named as an argument',
      error('InvalidArgument', 'volume not found'),
      'driver-error',
      /^Unless the error says otherwise: the storage does not have what the class/,
    ],
    [
      'a rate',
      error('Internal', 'failed (RESOURCE_OPERATION_RATE_EXCEEDED): Operation rate exceeded'),
      'driver-error',
      /^The storage limits how often it is called/,
    ],
    [
      'a volume that is still made',
      error('Unknown', 'volume state is still Creating, not Succeeded'),
      'driver-error',
      /^The storage does not respond to the driver in time/,
    ],
    [
      'a name in one word',
      error('Internal', 'Failed to create access point: AccessPointAlreadyExists:'),
      'driver-error',
      /^Unless the error says otherwise: the storage has another volume of this name/,
    ],
    [
      'a mount of the controller',
      error('Internal', 'Mounting command: mount: mount failed: exit status 32'),
      'driver-error',
      /^Unless the error says otherwise: the machine on which the driver runs cannot mount the storage/,
    ],
    [
      'a class that binds at once',
      'configuration error, no node was specified',
      'driver-error',
      /^The provisioner creates volumes on the node of a Pod: .* WaitForFirstConsumer/,
    ],
    [
      'access modes in short',
      error('InvalidArgument', 'Creating RWX volumes from snapshots is not supported'),
      'driver-error',
      /^The storage does not have volumes with the access mode/,
    ],
    [
      'a size without a code',
      'The requested volumeSize 49 GB is not supported. It should be between 50 GB and 16384 GB',
      'unsupported-size',
      /^Recreate the claim with a size/,
    ],
    [
      'a name of a server that is gone',
      error(
        'Internal',
        'mount failed: exit status 32 Output: mount.nfs: Failed to resolve server nas: Name or service not known',
      ),
      'driver-error',
      /^Unless the error says otherwise: the driver does not reach its storage/,
    ],
    [
      'what is not there, or not for this account',
      error('Internal', 'Http Status Code: 404. Error Code: NotAuthorizedOrNotFound'),
      'driver-error',
      /^Unless the error says otherwise: the account with which/,
    ],
    [
      'keys that an account does not accept',
      error('Internal', 'StatusCode=403, ErrorCode=KeyBasedAuthenticationNotPermitted'),
      'driver-error',
      /^A policy of the cloud or storage forbids this/,
    ],
    [
      'a parent of another kind',
      error('Internal', "cannot create 'tank/pvc-1': parent is not a filesystem"),
      'driver-error',
      /^Unless the error says otherwise: the storage does not have what the class or the configuration/,
    ],
    [
      'a node that a configuration lacks',
      "config doesn't contain node node-1, and no DEFAULT_PATH_FOR_NON_LISTED_NODES available",
      'driver-error',
      /^Unless the error says otherwise: the storage does not have what the class or the configuration/,
    ],
    [
      'credentials that nobody has given to the driver',
      error('Internal', 'get identity: get credentials: failed to refresh cached credentials, no EC2 IMDS role found'),
      'driver-error',
      /^The driver has no credentials: give its service account a role/,
    ],
    [
      'a client secret that has expired',
      error('Unknown', "AADSTS7000222: The provided client secret keys for app 'a' are expired"),
      'driver-error',
      /^Unless the error says otherwise: the storage does not accept the credentials/,
    ],
    [
      'a webhook of the storage',
      error(
        'Internal',
        'failed calling webhook "mutator.longhorn.io": Post "https://w:9502/m?timeout=10s": no endpoints available for service "w"',
      ),
      'driver-error',
      /^The webhook that the message names/,
    ],
    [
      'a limit of time in an address',
      error('Internal', 'Post "https://w:9502/m?timeout=10s": something else'),
      'driver-error',
      /^See the log/,
    ],
    [
      'a file system that is not mounted',
      error('Internal', 'primary filesystem fs1 is not mounted on GUI node'),
      'driver-error',
      /^Unless the error says otherwise: a part of the storage/,
    ],
    [
      'too few zones',
      error(
        'InvalidArgument',
        'failed to pick zones from topology: need 2 zones from topology, only got 1 unique zones',
      ),
      'driver-error',
      /^Unless the error says otherwise: the driver finds no place/,
    ],
    [
      'a volume that is gone while the driver waits for it',
      error(
        'Internal',
        "timed out waiting for volume to create: InvalidVolume.NotFound: The volume 'vol-1' does not exist",
      ),
      'driver-error',
      /^The storage lost the volume while creating it/,
    ],
    [
      'a quota of a region',
      error(
        'ResourceExhausted',
        "(QUOTA_EXCEEDED): Quota 'SSD_TOTAL_GB' exceeded. Limit: 500.0 in region us-central1.",
      ),
      'no-capacity',
      /^A limit is reached, as the message says/,
    ],
    [
      'a size that is not accepted',
      error('Internal', '[400] [size] Must be 10-16384'),
      'driver-error',
      /^Unless the error says otherwise: the storage does not accept a value/,
    ],
    [
      'a parameter that is not there',
      error('InvalidArgument', 'clusterID must be set'),
      'driver-error',
      /^Unless the error says otherwise: the driver lacks a value, usually a parameter of the class/,
    ],
    [
      'a permission at a cloud',
      error(
        'Internal',
        'Could not create volume "pvc-1": could not create volume in EC2: UnauthorizedOperation: You are not authorized to perform this operation.',
      ),
      'driver-error',
      /lacks a permission/,
    ],
    [
      'a permission in vSphere',
      error('Internal', 'failed to create volume. Error: ServerFaultCode: NoPermission'),
      'driver-error',
      /lacks a permission/,
    ],
    [
      'too few nodes for the replicas',
      error('ResourceExhausted', 'failed to enqueue: Not enough available nodes. Replica count: 3'),
      'no-capacity',
      /^Too few nodes or pools of the storage can take a replica each/,
    ],
    [
      'too few pools for the replicas',
      error('ResourceExhausted', 'Not enough suitable pools available, 0/3'),
      'no-capacity',
      /^Too few nodes or pools/,
    ],
    [
      'a permission that is named',
      error(
        'Internal',
        "CreateVolume failed: unknown Insert disk error: googleapi: Error 403: Required 'compute.snapshots.useReadOnly' permission, forbidden",
      ),
      'driver-error',
      /lacks a permission/,
    ],
    [
      'an export of a server',
      error(
        'Internal',
        'failed to mount nfs server: mount failed: exit status 32 Output: mount.nfs: access denied by server while mounting 10.0.0.1:/share',
      ),
      'driver-error',
      /^The NFS server does not export that path/,
    ],
    [
      'credentials',
      error(
        'Unknown',
        'azure.BearerAuthorizer#WithAuthorization: Failed to refresh the Token for request: StatusCode=400',
      ),
      'driver-error',
      /^Unless the error says otherwise: the storage does not accept the credentials of the driver/,
    ],
    [
      'a limit of an account',
      error(
        'Internal',
        'got 413 instead {"overLimit": {"message": "VolumeLimitExceeded: Maximum number of volumes allowed (10) exceeded for quota \'volumes\'."}}',
      ),
      'no-capacity',
      /a limit is reached/,
    ],
    ['a full pool', error('Internal', 'write /dev/sda: no space left on device'), 'no-capacity', /has no room/],
    [
      'a limit of requests, which is none of volumes',
      error('Internal', 'RequestLimitExceeded: Request limit exceeded.'),
      'driver-error',
      /^The storage limits how often it is called/,
    ],
    [
      'a name that does not resolve',
      error(
        'Internal',
        'failed to create volume: Post http://glusterd2.gcs:24007/v1: dial tcp: lookup glusterd2.gcs: no such host',
      ),
      'driver-error',
      /^Unless the error says otherwise: the driver does not reach its storage/,
    ],
    [
      'a datastore that is not there',
      error(
        'Internal',
        'failed to create volume. Error: Datastore ds:///vmfs/1 specified in the storage class does not exist',
      ),
      'driver-error',
      /^Unless the error says otherwise: the storage does not have what the class/,
    ],
    [
      'a socket',
      error(
        'Unavailable',
        'connection error: desc = "transport: Error while dialing dial unix /csi/csi.sock: connect: connection refused"',
      ),
      'driver-error',
      /^Check that the driver's container runs beside the sidecar\. See/,
    ],
    [
      'a token that is no value of a class',
      error('Internal', 'failed to create volume: the session is invalid'),
      'driver-error',
      /^Unless the error says otherwise: the storage does not accept the credentials of the driver/,
    ],
    [
      'a part of the storage that is away, which is no value of a class either',
      error('Internal', 'the metadata service is not available'),
      'driver-error',
      /^See the log of the driver$/,
    ],
    [
      'a policy above the account',
      error(
        'Internal',
        'UnauthorizedOperation: You are not authorized to perform: ec2:CreateVolume with an explicit deny in a service control policy',
      ),
      'driver-error',
      /^A policy of the cloud or storage forbids this/,
    ],
    [
      'a zone without disks',
      error('Internal', 'RESPONSE 409 ERROR CODE: SkuNotAvailable: The requested size is currently not available'),
      'no-capacity',
      /^The cloud has none of this left there/,
    ],
    [
      'a certificate of an unknown authority',
      error('Unavailable', 'Post "https://10.0.0.1/api": x509: certificate signed by unknown authority'),
      'driver-error',
      /^The storage answers, but the driver does not accept its certificate/,
    ],
    [
      'a type that is not offered',
      error('Internal', 'api error InvalidParameterValue: Invalid value for parameter volumeType'),
      'driver-error',
      /^Unless the error says otherwise: the storage does not accept a value that the message names/,
    ],
    [
      'a code that may pass, around one that says more',
      error('Unavailable', `failed to create volume: ${error('DeadlineExceeded', 'context deadline exceeded')}`),
      'driver-error',
      /^The storage does not respond to the driver in time/,
    ],
    [
      'nothing that is known',
      error('Internal', 'zfs: volume creation failed'),
      'driver-error',
      /^See the log of the driver$/,
    ],
    ['no code at all', 'unexpected end of JSON input', 'driver-error', /^See the log of the driver$/],
  ] as const) {
    test(`is read by its words: ${what}`, () => {
      assert.equal(failureMeaning(text).cause, cause);
      assert.match(cureOf(text), cure);
    });
  }
});

test('an error about what fits the class names its parameters, of which no value is said', () => {
  const parameters = { dsm: '10.0.0.1', location: '/volume1', 'csi.storage.k8s.io/fstype': 'ext4' };
  const storageClass = { kind: 'found', value: { metadata: { name: 'nas' }, provisioner: 'd', parameters } };
  const claim = { metadata: { name: 'c' }, spec: {} };
  const facts = { claim, storageClass } as unknown as ClaimFacts;
  const { cure } = failureMeaning(error('Unknown', 'no available backends'), { facts });
  assert.match(cure, / \(parameters of the class: dsm, location\)$/);
});

describe('an error of many kilobytes', () => {
  const filler = 'no RWX API '.repeat(5000);

  test('is read at both ends', () => {
    assert.match(failureMeaning(error('Internal', `${filler}permission denied`)).cure, /^The account with which/);
    assert.match(failureMeaning(error('Internal', `permission denied ${filler}`)).cure, /^The account with which/);
  });

  test('is not searched for words between them, which would take long', () => {
    assert.equal(failureMeaning(error('Internal', `${filler}permission denied ${filler}`)).cure, '');
  });
});

describe('a value of the class that the driver refuses without quotes', () => {
  const cureOf = (said: string, parameters: Record<string, string>, code = 'InvalidArgument'): string => {
    const storageClass = { metadata: { name: 's' }, provisioner: 'd.example.com', parameters };
    const claim = { metadata: { name: 'c', namespace: 'ns1' }, spec: {} };
    const facts: ClaimFacts = { nowMs: 0, claim, storageClass: { kind: 'found', value: storageClass } };
    return failureMeaning(error(code, said), { facts }).cure;
  };

  test('is named with its parameter', () => {
    assert.match(
      cureOf('azureDisk - PremiumV2_LRS is not supported. Supported values are [Premium_LRS]', {
        skuName: 'PremiumV2_LRS',
      }),
      /^The error quotes PremiumV2_LRS, the value of the class parameter skuName: /,
    );
    assert.match(
      cureOf('no pbm profile found with name: "gold"', { policy: 'gold' }, 'Internal'),
      /^The error quotes gold, the value of the class parameter policy: /,
    );
  });

  test('is the last one that the message has, and none of those that the driver would take', () => {
    const mode = 'PRIVATE_SERVICE_ACCESS';
    assert.match(
      cureOf(`with connect mode ${mode} the range must have a name, not 10.20.0.0/24`, { mode, range: '10.20.0.0/24' }),
      /the value of the class parameter range: /,
    );
    assert.match(
      cureOf('no such type. Supported values are Premium_LRS', { skuName: 'Premium_LRS' }),
      /^The storage does not have what the class/,
    );
  });
});

describe('an error about a volume with a data source', () => {
  const source = { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', namespace: 'ns1', name: 's' };
  const facts: ClaimFacts = { nowMs: 0, claim: { metadata: { name: 'c', namespace: 'ns1' }, spec: {} }, source };

  test('says that the source is gone at the storage', () => {
    const { cause, cure } = failureMeaning(error('NotFound', 'snap-1'), { facts });
    assert.equal(cause, 'source-missing');
    assert.match(cure, /VolumeSnapshot ns1\/s stands for/);
  });

  test('says that the source does not fit the class, where it speaks of the source', () => {
    const { cure } = failureMeaning(error('InvalidArgument', 'cannot restore the snapshot into another pool'), {
      facts,
    });
    assert.match(cure, /^The driver cannot create such a volume from VolumeSnapshot ns1\/s/);
    const other = failureMeaning(error('InvalidArgument', 'unknown parameter tier'), { facts });
    assert.match(other.cure, /^A parameter of the class is wrong/);
  });
});

describe('an error of a deletion', () => {
  const ofDeletion = (text: string, isLate = true): string =>
    cureText(deletionMeaning(text, undefined), { isLate, log });
  test('in the words of the provisioner itself is not about the storage', () => {
    const secret = 'error getting secret creds in namespace ns1: secrets "creds" is forbidden: User "u" cannot get it';
    assert.match(ofDeletion(secret), /^See whether the Secret that the message names exists, and whether/);
    assert.equal(ofDeletion('persistentvolume v is still attached to node n1'), log);
  });

  test('about a protection or a mirror says what to end at the storage', () => {
    assert.match(ofDeletion(error('Internal', 'volume deletion is protected (protected)')), /^A lock or protection/);
    const mirror = error('Unknown', 'is the source endpoint of one or more SnapMirror relationships');
    assert.match(ofDeletion(mirror), /^The volume takes part in a mirror or replication/);
  });

  test('about snapshots is one about what still needs the volume', () => {
    const text = error('Internal', 'failed to handle delete volume request for {4158} with 1 snapshots');
    assert.match(ofDeletion(text), /^The storage is still in use\. .*snapshots/);
  });

  for (const [code, cure] of [
    ['FailedPrecondition', /^The storage is still in use\. .*snapshots/],
    ['NotFound', /^The driver does not find what the deletion needs/],
    ['PermissionDenied', /^Check the credentials/],
    ['Unauthenticated', /^Check the credentials/],
    ['InvalidArgument', /^The driver does not understand the volume/],
    ['Unavailable', /^Check that the driver's container runs/],
    ['DeadlineExceeded', /^The storage does not respond to the driver in time/],
    ['Aborted', /^The storage does not respond to the driver in time/],
    ['Canceled', /^The storage does not respond to the driver in time/],
    ['Unimplemented', /^The driver cannot delete volumes/],
    ['Internal', /^See the log of the driver$/],
    ['Unknown', /^See the log of the driver$/],
  ] as const) {
    test(`with code ${code} has a cure`, () => assert.match(ofDeletion(error(code)), cure));
  }

  test('is read by its words where the code says nothing', () => {
    const open = error('Internal', 'rbd csi-vol-1 is still being used');
    assert.match(ofDeletion(open), /^A machine still has the volume open: .*rbd status POOL\/IMAGE/);
    const busy = error('Internal', "failed to delete volume. Error: The resource 'volume' is in use.");
    assert.match(ofDeletion(busy), /^The storage is still in use/);
    assert.match(ofDeletion(error('Internal', 'AccessDenied: ec2:DeleteVolume')), /lacks a permission/);
  });

  test('is a lock or a protection that somebody has set', () => {
    for (const words of ['409 Conflict ERROR CODE: ScopeLocked', 'volume has deletion protection enabled']) {
      assert.match(ofDeletion(error('Internal', words)), /^A lock or protection of the storage forbids the deletion/);
    }
  });

  test('of a deletion that may go on advises nothing at first, and says what if it lasts', () => {
    assert.match(
      ofDeletion(error('Aborted'), false),
      /^Nothing yet: .*called again\. If it lasts: the storage does not respond/,
    );
  });
});
