/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
/**
 * One diagnosis in four places: what `why` says of a claim that waits, with no more rights than docs/why.md asks for, say the
 * status page, the newest event of the claim and the log as well. Where a place cannot, the row says why.
 */
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import type { CoreV1Event, KubernetesObject, V1PersistentVolumeClaimSpec } from '@kubernetes/client-node';
import type { Cause } from '../../src/explain/causes/cause.ts';
import { type Meaning, textMeaning, waitMeaning } from '../../src/explain/causes/causes.ts';
import type { Explanation } from '../../src/explain/explanation.ts';
import { ifFound, servesAttributesClasses } from '../support/admin.ts';
import { freePorts } from '../support/free-ports.ts';
import { volumeSnapshotContentKind, volumeSnapshotKind } from '../support/custom-kinds.ts';
import { type DriverProcess, type Fault, startDriver } from '../support/driver-process.ts';
import { openScene, type ClaimOptions, type Scene } from '../support/scene.ts';
import { startSidecar } from '../support/sidecar-process.ts';
import type { StartedProcess } from '../support/started-process.ts';
import { createNode, createPod } from '../support/scheduled-pod.ts';
import { createSnapshotObject } from './snapshot-objects.ts';
import { readerKubeconfig, whyHere } from '../support/why-command.ts';

const isReal = process.env['E2E_TARGET'] === 'kubernetes';
const crossNamespace = 'CrossNamespaceVolumeDataSource';
const zone = 'e2e.example.com/zone';
const late = { volumeBindingMode: 'WaitForFirstConsumer' };
const secretName = 'csi.storage.k8s.io/provisioner-secret-name';
const secretNamespace = 'csi.storage.k8s.io/provisioner-secret-namespace';

/** A driver with its sidecar. */
interface Provisioner {
  readonly driver: Pick<DriverProcess, 'driverName'>;
  readonly sidecar: StartedProcess;
  /** `http://127.0.0.1:PORT`. */
  readonly page: string;
}

interface World {
  scene: Scene;
  /** Of the scene: it has all rights, and a driver with topology. */
  own: Provisioner;
  /** May not list nodes, and its driver has topology. */
  unready: Provisioner;
  /** May not read Secrets. */
  withoutSecrets: Provisioner;
}

/** A place that says something else, or nothing. */
interface Other {
  /** Undefined: nothing. */
  cause?: Cause | readonly Cause[];
  cure?: RegExp;
  because: string;
}

const comparesNoNames = {
  cause: 'class-not-found',
  cure: /^Create the class/,
  because: 'only why compares the names of the classes',
} as const;

interface Row {
  /** What is wrong; the last words of the title. */
  what: string;
  /** The name of the claim, and the value of the class parameter `case`. */
  name: string;
  /** What the driver does to its `CreateVolume`. */
  fault?: Omit<Fault, 'method' | 'parameters'>;
  class?: Parameters<Scene['createClass']>[0];
  claim?: Omit<ClaimOptions, 'className' | 'name'>;
  by?: 'own' | 'unready' | 'withoutSecrets';
  /** Default: a class and a claim as above. */
  make?: (world: World, row: Row) => Promise<unknown>;
  needs?: 'a real API server' | 'attributes classes';
  /** In the message of the page. */
  pageSays?: RegExp;
  cause: Cause;
  verdict?: 'waiting' | 'stuck';
  /** In the message of `why`. */
  says: RegExp;
  cure: RegExp;
  page?: Other;
  event?: Other;
  log?: Other;
}

const noAttempt = 'the provisioner makes no attempt';
const quiet = { event: { because: noAttempt }, log: { because: noAttempt } };
const ofNobody = {
  page: { because: 'kube-controller-manager hands the claim to no provisioner' },
  event: { because: 'no provisioner has the claim' },
  log: { because: 'no provisioner has the claim' },
};
const notYet = { code: 'INTERNAL', message: 'not yet' };
const earlier = { cause: 'driver-error', because: 'the last attempt was before it' } as const;
const cloneOf = (name: string): Partial<V1PersistentVolumeClaimSpec> => ({
  dataSource: { kind: 'PersistentVolumeClaim', name },
});
const allowing = (value: string) => [{ matchLabelExpressions: [{ key: zone, values: [value] }] }];
const secretOf = (name: string, namespace = '${pvc.namespace}') => ({
  [secretName]: name,
  [secretNamespace]: namespace,
});

/** What the provisioner says of a source: it does not read on. */
const ofSource: Other = {
  cause: 'source-not-ready',
  cure: /source/,
  because: 'only why reads what the source itself lacks',
};

const rows: readonly Row[] = [
  {
    what: 'a provisioner that may not list nodes',
    name: 'not-ready',
    by: 'unready',
    cause: 'not-ready',
    says: /leads \(.+\) but is not ready, for \d+ s: .*nodes/s,
    cure: /^Add the rule /,
    event: { because: 'it is about the Lease, for all claims' },
    log: { cause: 'not-ready', cure: /the rule to add/, because: 'the rule is in the line before' },
  },
  {
    what: 'a driver that does not return',
    name: 'hang',
    fault: { hang: true },
    cause: 'driver-error',
    verdict: 'waiting',
    says: /DeadlineExceeded/,
    cure: /^Nothing yet: the driver may still be at work/,
  },
  {
    what: 'a typo in allowedTopologies, with immediate binding',
    name: 'typo-immediate',
    class: { allowedTopologies: allowing('nroth') },
    cause: 'no-topology',
    says: /zone nroth is on no node; nodes have north\.$/,
    cure: /^Correct allowedTopologies/,
    event: { cause: 'no-capacity', cure: /allowedTopologies/, because: 'the text is that of the driver' },
    log: { cause: 'no-capacity', cure: /allowedTopologies/, because: 'the text is that of the driver' },
  },
  {
    what: 'a typo in allowedTopologies, with late binding',
    name: 'typo-late',
    class: { ...late, allowedTopologies: allowing('nroth') },
    cause: 'no-topology',
    says: /zone nroth is on no node; nodes have north\.$/,
    cure: /^Correct allowedTopologies/,
    ...quiet,
  },
  {
    what: 'no room in the topology',
    name: 'no-room-there',
    fault: { code: 'RESOURCE_EXHAUSTED', message: 'no capacity in the requested topology zone=north' },
    cause: 'no-capacity',
    says: /ResourceExhausted desc = no capacity in the requested topology/,
    cure: /cannot create the volume where it is requested/,
  },
  {
    what: 'a full pool',
    name: 'full',
    fault: { code: 'RESOURCE_EXHAUSTED', message: 'pool is full' },
    cause: 'no-capacity',
    says: /pool is full/,
    cure: /^Free storage/,
  },
  {
    what: 'a full pool on the node that was chosen',
    name: 'full-node',
    fault: { code: 'RESOURCE_EXHAUSTED', message: 'pool is full' },
    class: late,
    make: async (world, row) => {
      await makeClaim(world, row);
      await createPod(world.scene, row.name);
    },
    cause: 'no-capacity',
    says: /pool is full/,
    cure: /^Free storage/,
  },
  {
    what: 'a source in another namespace while the feature is off',
    name: 'foreign-source',
    claim: { spec: { dataSourceRef: { kind: 'PersistentVolumeClaim', name: 'source', namespace: 'default' } } },
    cause: 'feature-disabled',
    says: new RegExp(`${crossNamespace} feature is disabled`),
    cure: /--feature-gates/,
  },
  {
    what: 'a misspelt key in a Secret',
    name: 'secret-key',
    needs: 'a real API server', // the sandbox keeps no managed fields, in which the keys are
    class: { parameters: { requireSecret: 'password', ...secretOf('misspelt') } },
    cause: 'secret-content',
    says: /secrets must have the key password/,
    cure: /has the key pasword: if the driver needs password, rename that key/,
    page: { cause: 'driver-error', cure: /Secret/, because: 'the provisioner keeps nothing of a Secret' },
    event: { cause: 'driver-error', cure: /Secret/, because: 'the text is that of the driver' },
    log: { cause: 'driver-error', cure: /Secret/, because: 'the text is that of the driver' },
  },
  {
    what: 'a misspelt variable in the template of a Secret',
    name: 'secret-template',
    class: { parameters: secretOf('${pvc.nmae}') },
    cause: 'secret-missing',
    says: /error resolving value/,
    cure: /^Correct the template .*\$\{pvc\.name\}/,
  },
  {
    what: 'half of the reference to a Secret',
    name: 'secret-half',
    class: { parameters: { [secretName]: 'misspelt' } },
    cause: 'secret-missing',
    says: /name and namespace/,
    cure: /Name and namespace of the Secret must both be given/,
  },
  {
    what: 'a Secret that does not exist',
    name: 'secret-none',
    class: { parameters: secretOf('no-such') },
    cause: 'secret-missing',
    says: /no-such, which the StorageClass names for the driver, does not exist/,
    cure: /^Create the Secret/,
  },
  {
    what: 'a Secret that the provisioner may not read',
    name: 'secret-forbidden',
    by: 'withoutSecrets',
    class: { parameters: secretOf('misspelt') },
    cause: 'secret-missing',
    says: /forbidden/,
    cure: /Add the rule .*secrets/,
  },
  {
    what: 'credentials that the backend refuses',
    name: 'unauthenticated',
    fault: { code: 'UNAUTHENTICATED', message: 'login of admin failed' },
    cause: 'driver-error',
    says: /login of admin failed/,
    cure: /^Check the credentials/,
  },
  {
    what: 'a clone with another volume mode',
    name: 'clone-mode',
    claim: { volumeMode: 'Block', spec: cloneOf('source') },
    cause: 'source-not-ready',
    says: /has volumeMode Filesystem, and the claim requests Block/,
    cure: /^Recreate the claim with .*volumeMode/,
  },
  {
    what: 'a clone that is smaller than its source',
    name: 'clone-small',
    claim: { size: '500Mi', spec: cloneOf('source') },
    cause: 'source-not-ready',
    says: /has 1Gi, which is more than the 500Mi/,
    cure: /size/,
  },
  {
    what: 'a typo in the name of the source',
    name: 'source-typo',
    claim: { spec: cloneOf('sorce') },
    cause: 'source-missing',
    says: /\/sorce, the data source of the claim, does not exist/,
    cure: /^Create the source/,
  },
  {
    what: 'a source that is itself not bound',
    name: 'source-pending',
    claim: { spec: cloneOf('full') },
    cause: 'no-capacity',
    says: /^It waits for its data source, claim full: /,
    cure: /^Free storage/,
    page: ofSource,
    event: ofSource,
    log: ofSource,
  },
  {
    what: 'a source of another driver',
    name: 'source-elsewhere',
    claim: { spec: cloneOf('elsewhere') },
    cause: 'source-not-ready',
    says: /elsewhere, .* has a volume of driver /,
    cure: /^Recreate the claim with a StorageClass whose provisioner is /,
    page: ofSource,
    event: ofSource,
    log: ofSource,
  },
  {
    what: 'a snapshot that is not ready',
    name: 'snapshot-unready',
    make: async (world, row) => {
      await createSnapshotObject(world.scene, { name: 'fresh', claimName: 'source' });
      await makeClaim(world, row);
    },
    claim: { spec: { dataSource: { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'fresh' } } },
    cause: 'source-not-ready',
    verdict: 'waiting',
    says: /VolumeSnapshot .*fresh.* is not ready, and no snapshot-controller has worked on it/,
    cure: /^Nothing yet: the snapshot-controller takes a moment/,
    page: ofSource,
    event: ofSource,
    log: ofSource,
  },
  {
    what: 'a snapshot that does not exist',
    name: 'snapshot-typo',
    claim: { spec: { dataSource: { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'no-such' } } },
    cause: 'source-missing',
    says: /VolumeSnapshot .*no-such.* does not exist/,
    cure: /^Create the source/,
  },
  {
    what: 'a source that nobody populates',
    name: 'populator',
    claim: { spec: { dataSourceRef: { apiGroup: 'e2e.example.com', kind: 'Greeting', name: 'hello' } } },
    cause: 'source-not-ready',
    verdict: 'waiting',
    says: /Greeting, which needs a volume populator/,
    cure: /populator/,
    event: { because: 'the event Provisioning says that a populator is assumed' },
    log: { because: noAttempt },
  },
  {
    what: 'both keys of the file system type',
    name: 'fstypes',
    class: { parameters: { fstype: 'ext4', 'csi.storage.k8s.io/fstype': 'xfs' } },
    cause: 'class-parameters',
    says: /fstype/,
    cure: /^Keep csi\.storage\.k8s\.io\/fstype/,
  },
  {
    what: 'a misspelt key of the sidecar in the class',
    name: 'class-key',
    class: { parameters: { 'csi.storage.k8s.io/fstyp': 'xfs' } },
    cause: 'class-parameters',
    says: /csi\.storage\.k8s\.io\/fstyp/,
    cure: /delete the class and create it again/,
  },
  {
    what: 'a size that the driver does not create',
    name: 'out-of-range',
    claim: { size: '2Pi' },
    cause: 'unsupported-size',
    says: /OutOfRange/,
    cure: /^Recreate the claim with a size/,
  },
  {
    what: 'a volume that is smaller than requested',
    name: 'too-small',
    fault: { capacityBytes: 4096 },
    cause: 'unsupported-size',
    says: /created volume capacity 4096 less than requested/,
    cure: /smaller than requested/,
  },
  {
    what: 'what the driver calls invalid, while it is held back',
    name: 'infeasible',
    pageSays: /InvalidArgument desc = tier "fats" is unknown/,
    fault: { code: 'INVALID_ARGUMENT', message: 'tier "fats" is unknown' },
    cause: 'driver-error',
    says: /tier "fats" is unknown/,
    cure: /^The driver cannot create such a volume/,
  },
  {
    what: 'an attributes class that does not exist',
    name: 'attributes-typo',
    claim: { spec: { volumeAttributesClassName: 'no-such' } },
    needs: 'attributes classes',
    cause: 'attributes-class',
    says: /no-such does not exist/,
    cure: /^Create /,
  },
  {
    what: 'a selector',
    name: 'selector',
    claim: { spec: { selector: { matchLabels: { disk: 'fast' } } } },
    cause: 'selector',
    says: /has a selector/,
    cure: /without spec\.selector/,
  },
  {
    what: 'a policy that refuses its PersistentVolume',
    name: 'policy',
    needs: 'a real API server',
    make: async (world, row) => {
      await forbidVolumes(world.scene, await makeClass(world, row));
      await makeClaim(world, row);
    },
    cause: 'rejected',
    says: /by house rules/,
    cure: /^The API server does not accept .*PersistentVolume.*such as a policy/,
  },
  {
    what: 'a webhook for its PersistentVolume that does not run',
    name: 'webhook',
    needs: 'a real API server',
    make: async (world, row) => {
      await sendVolumesToNobody(world.scene, await makeClass(world, row));
      await makeClaim(world, row);
    },
    cause: 'api-server',
    verdict: 'waiting',
    says: /failed calling webhook "nobody\.e2e\.example\.com"/,
    cure: /^See whether the webhook that the message names runs/,
  },
  {
    what: 'an error of the driver',
    name: 'internal',
    fault: { code: 'INTERNAL', message: 'on fire' },
    cause: 'driver-error',
    says: /on fire/,
    cure: /^See the log of the driver's container/,
  },
  {
    what: 'a driver that says that it is not available',
    name: 'unavailable',
    fault: { code: 'UNAVAILABLE', message: 'out for lunch' },
    cause: 'driver-error',
    says: /out for lunch/,
    cure: /container runs/,
  },
  {
    what: 'a driver that does not reach its storage',
    name: 'unreachable',
    fault: { code: 'UNAVAILABLE', message: 'connection refused' },
    cause: 'driver-error',
    says: /connection refused/,
    cure: /^Unless the error says otherwise: the driver does not reach its storage/,
  },
  {
    what: 'a driver that is still at work',
    name: 'aborted',
    fault: { code: 'ABORTED', message: 'an operation is pending' },
    cause: 'driver-error',
    verdict: 'waiting',
    says: /an operation is pending/,
    cure: /still at work/,
  },
  {
    what: 'another volume of its name at the backend',
    name: 'exists-already',
    fault: { code: 'ALREADY_EXISTS', message: 'volume exists with a different capacity' },
    cause: 'driver-error',
    says: /exists with a different capacity/,
    cure: /^The storage has another volume of this name/,
  },
  {
    what: 'a class that was deleted',
    name: 'class-gone',
    fault: notYet,
    make: async (world, row) => {
      await world.scene.admin.storage.deleteStorageClass({ name: await handedOver(world, row) });
    },
    cause: 'class-not-found',
    says: /does not exist/,
    cure: /^Create (the class|StorageClass)/,
    page: { ...comparesNoNames },
    event: { ...comparesNoNames },
    log: { ...comparesNoNames },
  },
  {
    what: 'a class that was recreated for another provisioner',
    name: 'class-moved',
    fault: notYet,
    make: async (world, row) => {
      const name = await handedOver(world, row);
      await world.scene.admin.storage.deleteStorageClass({ name });
      await world.scene.admin.storage.createStorageClass({
        body: { metadata: { name }, provisioner: 'another.example.com' },
      });
    },
    cause: 'no-provisioner',
    says: /no sign of a provisioner for another\.example\.com/,
    cure: /^If the provisioner is installed, check that its Pod runs, and see its log: .* Otherwise install the driver/,
    page: { because: 'kube-controller-manager has handed it to the other provisioner' },
    event: { cause: ['driver-error', 'class-not-found', 'not-handed-over'], because: 'it is from before' },
    log: { cause: ['driver-error', 'class-not-found', 'not-handed-over'], because: 'it is from before' },
  },
  {
    what: 'a PersistentVolume that has its name',
    name: 'name-taken',
    fault: notYet,
    make: async (world, row) => {
      await handedOver(world, row);
      const { metadata } = await world.scene.readClaim(row.name);
      await createVolume(world.scene, `pvc-${metadata?.uid ?? ''}`, 'somebody');
    },
    cause: 'name-taken',
    says: /exists and is not for this claim/,
    cure: /^Delete that PersistentVolume/,
    log: {
      cause: 'driver-error',
      because: 'the provisioner stops with the event alone: the line is of the attempt before',
    },
  },
  {
    what: 'a finalizer while it is being deleted',
    name: 'deleting',
    fault: notYet,
    make: async (world, row) => {
      await handedOver(world, row);
      const { admin, namespace } = world.scene;
      await world.scene.eventually(async () => {
        const claim = await world.scene.readClaim(row.name);
        claim.metadata!.finalizers = [...(claim.metadata?.finalizers ?? []), 'e2e.example.com/hold'];
        await admin.core.replaceNamespacedPersistentVolumeClaim({ name: row.name, namespace, body: claim });
      });
      held.push(row.name);
      await world.scene.deleteClaim(row.name);
    },
    cause: 'deleting',
    says: /e2e\.example\.com\/hold/,
    cure: /finalizers/,
    event: earlier,
    log: earlier,
  },
  {
    what: 'no Pod',
    name: 'no-pod',
    class: late,
    cause: 'waits-for-consumer',
    verdict: 'waiting',
    says: /waits for the first Pod/,
    cure: /^Nothing/,
    ...quiet,
  },
  {
    what: 'a Pod that fits no node',
    name: 'unschedulable',
    class: late,
    make: async (world, row) => {
      await makeClaim(world, row);
      await createPod(world.scene, row.name, 'no-such-node');
    },
    cause: 'pod-unschedulable',
    says: /cannot be scheduled/,
    cure: /^Correct nodeSelector or affinity of the Pod|^Add a node/,
    page: { cause: 'waits-for-consumer', cure: /^Nothing/, because: 'the provisioner does not know Pods' },
    ...quiet,
  },
  {
    what: 'a class that never existed',
    name: 'class-never',
    make: ({ scene }, { name }) => scene.createClaim({ name, className: `${scene.namespace}-none` }),
    cause: 'class-not-found',
    says: /-none does not exist/,
    cure: /^Create (the class|StorageClass)/,
    ...ofNobody,
  },
  {
    what: 'the class ""',
    name: 'static',
    make: ({ scene }, { name }) => scene.createClaim({ name, className: '' }),
    cause: 'static-class',
    says: /storageClassName ""/,
    cure: /^Create a PersistentVolume/,
    ...ofNobody,
  },
  {
    what: 'a volume that does not exist',
    name: 'volume-named',
    make: ({ scene }, { name }) => scene.createClaim({ name, className: '', spec: { volumeName: 'no-such' } }),
    cause: 'waits-for-volume',
    says: /no-such, which does not exist/,
    cure: /^Create that volume/,
    ...ofNobody,
  },
];

/** Claims with a finalizer of the test. */
const held: string[] = [];
const classNames = new Map<string, string>();

function provisionerOf(world: World, { by = 'own' }: Row): Provisioner {
  return world[by];
}

async function makeClass(world: World, row: Row): Promise<string> {
  const { driver } = provisionerOf(world, row);
  const { parameters = {}, ...rest } = row.class ?? {};
  const name =
    classNames.get(row.name) ??
    (await world.scene.createClass({
      provisioner: driver.driverName,
      parameters: { case: row.name, ...parameters },
      ...rest,
    }));
  classNames.set(row.name, name);
  return name;
}

async function makeClaim(world: World, row: Row) {
  return await world.scene.createClaim({ name: row.name, className: await makeClass(world, row), ...row.claim });
}

/** Waits until the provisioner has the claim. @returns the name of its class. */
async function handedOver(world: World, row: Row): Promise<string> {
  await makeClaim(world, row);
  await world.scene.event(await world.scene.readClaim(row.name), 'ProvisioningFailed');
  return await makeClass(world, row);
}

/** A volume of another driver. @param claim - that it is for. */
async function createVolume({ admin, namespace }: Scene, name: string, claim: string): Promise<void> {
  volumes.push(name);
  await admin.core.createPersistentVolume({
    body: {
      metadata: { name, annotations: { 'pv.kubernetes.io/provisioned-by': 'nobody.example.com' } },
      spec: {
        accessModes: ['ReadWriteOnce'],
        capacity: { storage: '1Gi' },
        persistentVolumeReclaimPolicy: 'Retain',
        claimRef: { namespace, name: claim },
        csi: { driver: 'nobody.example.com', volumeHandle: name },
      },
    },
  });
}

const volumes: string[] = [];

/** What would hold the namespace, and what is in none. */
async function removeObjects(scene: Scene): Promise<void> {
  const { admin, namespace } = scene;
  for (const name of held) {
    await scene.eventually(async () => {
      const body = await ifFound(admin.core.readNamespacedPersistentVolumeClaim({ name, namespace }));
      if (body?.metadata === undefined) return;
      body.metadata.finalizers = [];
      await admin.core.replaceNamespacedPersistentVolumeClaim({ name, namespace, body });
    });
  }
  for (const name of volumes) await ifFound(admin.core.deletePersistentVolume({ name }));
  for (const policy of policies) await admin.objects.delete(policy);
}

const policies: KubernetesObject[] = [];

/** The API server refuses volumes of the class from then on. */
async function forbidVolumes(scene: Scene, className: string): Promise<void> {
  const apiVersion = 'admissionregistration.k8s.io/v1';
  const metadata = { name: className };
  const made: KubernetesObject[] = [
    {
      apiVersion,
      kind: 'ValidatingAdmissionPolicy',
      metadata,
      spec: {
        matchConstraints: {
          resourceRules: [
            { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['persistentvolumes'] },
          ],
        },
        validations: [
          {
            expression: `!has(object.spec.storageClassName) || object.spec.storageClassName != "${className}"`,
            message: 'by house rules',
          },
        ],
      },
    } as KubernetesObject,
    {
      apiVersion,
      kind: 'ValidatingAdmissionPolicyBinding',
      metadata,
      spec: { policyName: className, validationActions: ['Deny'] },
    } as KubernetesObject,
  ];
  await refuseVolumes(scene, made, { className, refusal: /by house rules/ });
}

/** The API server asks a webhook about volumes of the class from then on, and nobody is there. */
async function sendVolumesToNobody(scene: Scene, className: string): Promise<void> {
  const configuration = {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name: className },
    webhooks: [
      {
        name: 'nobody.e2e.example.com',
        clientConfig: { url: 'https://127.0.0.1:1/' },
        rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['persistentvolumes'] }],
        matchConditions: [
          {
            name: 'class',
            expression: `has(object.spec.storageClassName) && object.spec.storageClassName == "${className}"`,
          },
        ],
        failurePolicy: 'Fail',
        sideEffects: 'None',
        admissionReviewVersions: ['v1'],
      },
    ],
  } as KubernetesObject;
  await refuseVolumes(scene, [configuration], { className, refusal: /failed calling webhook/ });
}

/** Creates policies, and waits until they are in force. */
async function refuseVolumes(
  scene: Scene,
  made: readonly KubernetesObject[],
  { className, refusal }: { className: string; refusal: RegExp },
): Promise<void> {
  for (const policy of made) {
    await scene.admin.objects.create(policy);
    policies.push(policy);
  }
  await scene.eventually(() =>
    assert.rejects(
      scene.admin.core.createPersistentVolume({
        dryRun: 'All',
        body: {
          metadata: { name: className },
          spec: {
            storageClassName: className,
            accessModes: ['ReadWriteOnce'],
            capacity: { storage: '1Gi' },
            csi: { driver: 'nobody.example.com', volumeHandle: className },
          },
        },
      }),
      refusal,
    ),
  );
}

const sidecarFlags = ['--leader-election', '--logging-format=json', '-v=0', '--status-page', '--timeout=3s'];
const pageFlag = (port: number): string => `--http-endpoint=127.0.0.1:${port}`;

describe('one diagnosis', { concurrency: 12 }, () => {
  const closers: (() => Promise<unknown>)[] = [];
  let world: World;
  let kubeconfig: string;
  before(async () => {
    const [port = 0, ...otherPorts] = await freePorts(3);
    const scene = await openScene({
      cluster: isReal ? { featureGates: [crossNamespace] } : {},
      driverFlags: [`--topology=${zone}=north`],
      sidecarFlags: [...sidecarFlags, pageFlag(port)],
      rbac: ['leader-election', 'topology', 'attributes-classes', 'snapshots'].map(
        (component) => `components/${component}/rbac.yaml`,
      ),
      kinds: [volumeSnapshotKind, volumeSnapshotContentKind],
    });
    closers.push(() => scene.close());
    closers.push(() => removeObjects(scene));
    closers.push(await createNode(scene, { name: `${scene.namespace}-n1`, labels: { [zone]: 'north' } }));
    const [unready, withoutSecrets] = await startPoorProvisioners(scene, otherPorts);
    world = {
      scene,
      own: { driver: scene.driver, sidecar: scene.sidecar, page: `http://127.0.0.1:${port}` },
      unready,
      withoutSecrets,
    };
    await scene.driver.setFaults(
      rows.flatMap(({ name, fault }) =>
        fault === undefined ? [] : [{ method: 'CreateVolume', parameters: { case: name }, ...fault }],
      ),
    );
    kubeconfig = await readerKubeconfig(scene.cluster, scene.namespace);
    await grantSecrets(scene);
    await scene.admin.core.createNamespacedSecret({
      namespace: scene.namespace,
      body: { metadata: { name: 'misspelt' }, stringData: { pasword: 'x' } },
    });
    await scene.createClaim({ name: 'source', className: await scene.createClass() });
    await createVolume(scene, `${scene.namespace}-elsewhere`, 'elsewhere');
    await scene.createClaim({
      name: 'elsewhere',
      className: '',
      spec: { volumeName: `${scene.namespace}-elsewhere` },
    });
    for (const name of ['source', 'elsewhere']) await scene.bound(name);
  });
  afterEach((context) => {
    world.scene.report(context);
  });
  after(async () => {
    for (const close of closers.toReversed()) await close();
  });

  /** Two drivers, one with topology, and their sidecars, whose account may not list nodes and read Secrets. */
  async function startPoorProvisioners(scene: Scene, ports: readonly number[]): Promise<[Provisioner, Provisioner]> {
    const { cluster, namespace } = scene;
    const name = `${namespace}-poor`;
    const files = ['base', 'components/leader-election'].map((folder) => join(deploy, folder, 'rbac.yaml'));
    const manifests = (await Promise.all(files.map((file) => readFile(file, 'utf8')))).join('\n---\n');
    const account = { namespace: cluster.sidecarNamespace, name };
    const poor = await cluster.accountKubeconfig(manifests.replaceAll('csi-provisioner', name), account);
    const start = async (part: string, flags: string[], port = 0): Promise<Provisioner> => {
      const folder = await mkdtemp(join(tmpdir(), `${namespace}-`));
      closers.push(() => rm(folder, { recursive: true, force: true }));
      const driver = await startDriver({ driverName: `${part}.${namespace}.example.com`, folder, flags });
      closers.push(() => driver.stop());
      const sidecar = await startSidecar({
        csiAddress: driver.address,
        kubeconfig: poor,
        namespace: cluster.sidecarNamespace,
        flags: [...sidecarFlags, pageFlag(port)],
      });
      closers.push(() => sidecar.stop());
      return { driver, sidecar, page: `http://127.0.0.1:${port}` };
    };
    return [await start('a', [`--topology=${zone}=north`], ports[0]), await start('b', [], ports[1])];
  }

  /** As docs/why.md has it: in the namespaces of the Secrets. */
  async function grantSecrets({ admin, cluster, namespace }: Scene): Promise<void> {
    const apiVersion = 'rbac.authorization.k8s.io/v1';
    const metadata = { name: 'why', namespace };
    const rights: KubernetesObject[] = [
      {
        apiVersion,
        kind: 'Role',
        metadata,
        rules: [{ apiGroups: [''], resources: ['secrets'], verbs: ['get'] }],
      } as KubernetesObject,
      {
        apiVersion,
        kind: 'RoleBinding',
        metadata,
        subjects: [{ kind: 'ServiceAccount', namespace: cluster.sidecarNamespace, name: `${namespace}-why` }],
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'why' },
      } as KubernetesObject,
    ];
    for (const right of rights) await admin.objects.create(right);
  }

  for (const row of rows) {
    test(`a claim that waits because of ${row.what} is ${row.cause} in all places`, async (t) => {
      const { scene } = world;
      if (row.needs === 'a real API server' && !isReal) {
        t.skip('the sandbox has neither admission policies nor managed fields');
        return;
      }
      if (row.needs === 'attributes classes' && !(await servesAttributesClasses(scene.admin))) {
        t.skip('attributes classes are not served');
        return;
      }
      await (row.make ?? makeClaim)(world, row);
      await scene.eventually(async () => {
        const found = await whyHere(kubeconfig, `${scene.namespace}/${row.name}`);
        const cure = checkWhy(found, row);
        const of = { cause: row.cause, cure };
        const { text, ...meaning } = (await onPage(row)) ?? {};
        same('the page', text === undefined ? undefined : meaning, of, row.page);
        if (row.pageSays !== undefined) assert.match(text ?? '', row.pageSays);
        same('the newest event', await inEvent(row), of, row.event);
        same('the log', inLog(row), of, row.log);
      });
    });
  }

  function checkWhy({ verdict, cause, message, cure }: Explanation, row: Row): string {
    assert.equal(cause, row.cause, message);
    assert.equal(verdict, row.verdict ?? 'stuck', message);
    assert.match(message, row.says);
    assert.match(cure, row.cure);
    return cure;
  }

  function same(place: string, found: Partial<Meaning> | undefined, of: Meaning, other?: Other): void {
    if (other === undefined) {
      assert.deepEqual(withoutPod(found), withoutPod(of), `${place} says what why says`);
    } else {
      assert.ok([other.cause].flat().includes(found?.cause), `${place}: ${other.because}, ${JSON.stringify(found)}`);
      if (other.cure !== undefined) assert.match(found?.cure ?? '', other.cure, place);
    }
  }

  /** What the claim's view of the status page says; undefined where the claim does not wait there. */
  async function onPage(row: Row): Promise<(Meaning & { text: string }) | undefined> {
    const { page } = provisionerOf(world, row);
    const response = await fetch(`${page}/status?claim=${world.scene.namespace}/${row.name}`);
    const text = await response.text();
    const term = (name: string): string =>
      unescaped(new RegExp(`<dt>${name}<dd>(.*?)(?=<dt>|</dl>)`, 's').exec(text)?.[1] ?? '');
    const [, cause, message = ''] = /^<b>[a-z]+: ([a-z-]+)<\/b>\. (.*)$/s.exec(term('Cause')) ?? [];
    if (cause === undefined) return undefined;
    return { cause: cause as Cause, cure: term('What to do').replace(/\.$/, ''), text: message };
  }

  /** What the newest event of the provisioner about the claim means. */
  async function inEvent(row: Row): Promise<Meaning | undefined> {
    const { driver } = provisionerOf(world, row);
    const events = (await world.scene.events(await world.scene.readClaim(row.name)))
      .filter(({ source }) => source?.component?.startsWith(`${driver.driverName}_`))
      .toSorted((a, b) => timeOf(a) - timeOf(b) || (a.reason ?? '').localeCompare(b.reason ?? ''));
    const newest = events.findLast(({ reason = '' }) => /^Provisioning(Failed|Waiting)$/.test(reason));
    if (newest === undefined) return undefined;
    const { reason, message = '' } = newest;
    const meaning = reason === 'ProvisioningWaiting' ? waitMeaning(message) : textMeaning(message);
    return meaning && { cause: meaning.cause, cure: meaning.cure };
  }

  /** The fields of the newest line about an attempt, or of that about the leader. */
  function inLog(row: Row): Meaning | undefined {
    const line = row.by === 'unready' ? lineOf(row, 'Has not been ready', '') : lineOf(row, '"cure":');
    if (line === undefined) return undefined;
    const { cause, cure } = JSON.parse(line) as Meaning;
    return { cause, cure };
  }

  /** The newest line of its sidecar with a text, and the claim. */
  function lineOf(row: Row, text: string, claim = `"${world.scene.namespace}/${row.name}"`): string | undefined {
    const lines = provisionerOf(world, row).sidecar.log().split('\n');
    return lines.findLast((line) => line.includes(claim) && line.includes(text));
  }
});

const deploy = join(import.meta.dirname, '../../deploy');

function timeOf({ lastTimestamp }: CoreV1Event): number {
  return lastTimestamp?.getTime() ?? 0; // in seconds: of one second a wait, which is not repeated, is the later one
}

function unescaped(html: string): string {
  const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" };
  return html.replaceAll(/&([a-z0-9#]+);/g, (_, name: string) => entities[name] ?? '');
}

/** Only `why` sees in which Pod the driver is, whose log says more. */
function withoutPod(meaning: Partial<Meaning> | undefined): Partial<Meaning> | undefined {
  const cure = meaning?.cure?.replace(/See the log of the driver's container.*$/, 'See the log');
  return meaning && { ...meaning, ...(cure !== undefined && { cure }) };
}
