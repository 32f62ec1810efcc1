/** From the text of a provisioner's event to the cause: the texts of this sidecar and of the Go sidecar are the same. */
import type { Cause } from './explanation.ts';

interface FailureCause {
  pattern: RegExp;
  cause: Cause;
  cure: string;
}

const secretCure =
  'Create the Secret, or correct the secret parameters of the class (delete the class and create it again). If it is forbidden, let the provisioner get Secrets';
const topologyCure =
  "Check that the driver's node plugin runs on the nodes, that CSINode objects name its topology keys, and that the class's allowedTopologies fit them";

/** The first pattern that fits decides. */
const failureCauses: readonly FailureCause[] = [
  { pattern: /^error getting secret /, cause: 'secret-missing', cure: secretCure },
  {
    pattern: /failed to get (default )?name and namespace template from params|is not a valid (secret|namespace) name/,
    cause: 'secret-missing',
    cure: secretCure,
  },
  { pattern: /^error resolving value /, cause: 'secret-missing', cure: secretCure },
  {
    pattern: /^accessing .* isn't allowed$|CrossNamespaceVolumeDataSource feature is disabled/,
    cause: 'grant-missing',
    cure: 'Create a ReferenceGrant in the namespace of the source, and enable the feature gate CrossNamespaceVolumeDataSource of the provisioner',
  },
  {
    pattern: /error getting (PVC|snapshot|snapshotcontent) |^the PVC source (not found for PVC|does not belong) /,
    cause: 'source-missing',
    cure: 'Create the source, or recreate the claim with another one',
  },
  {
    pattern: /^error getting handle for DataSource /,
    cause: 'source-not-ready',
    cure: 'Wait until the source is ready, or recreate the claim with a source that fits its driver, size and volume mode',
  },
  {
    pattern: /volumeattributesclass|^VAC |MODIFY_VOLUME/,
    cause: 'attributes-class',
    cure: 'Create the VolumeAttributesClass for this driver, or recreate the claim without it. If it is forbidden, let the provisioner get VolumeAttributesClasses',
  },
  {
    pattern: /^claim Selector is not supported/,
    cause: 'selector',
    cure: 'Recreate the claim without spec.selector',
  },
  {
    pattern: /^failed to get selected (CSINode|Node) /,
    cause: 'selected-node-gone',
    cure: 'Usually the scheduler chooses another node at once. If it chooses this one again, check that the driver runs there',
  },
  {
    pattern: /^no volume plugin matched/,
    cause: 'no-provisioner',
    cure: 'Kubernetes has no such plugin, or no longer has it: recreate the class with the name of a CSI driver',
  },
  { pattern: /^error generating accessibility requirements: /, cause: 'no-topology', cure: topologyCure },
  {
    pattern: /^PersistentVolume ".*" exists already|PersistentVolume ".*" exists already /,
    cause: 'name-taken',
    cure: 'Delete that PersistentVolume if nobody uses it, or recreate the claim',
  },
  {
    pattern: /^StorageClass ".*" names provisioner ".*", and the claim asks for /,
    cause: 'not-handed-over',
    cure: 'Usually kube-controller-manager corrects the annotation. Otherwise recreate the claim',
  },
  {
    pattern: /^The selected node could not be removed from the claim /,
    cause: 'no-capacity',
    cure: 'Let the provisioner update claims, so that another node can be chosen',
  },
  {
    pattern: /code = ResourceExhausted /,
    cause: 'no-capacity',
    cure: 'Free storage, request less, or use a class with enough capacity',
  },
  {
    pattern: /code = Unavailable /,
    cause: 'driver-error',
    cure: "Check that the driver's container runs beside the sidecar, and see its log",
  },
  {
    pattern: /infeasible error|code = InvalidArgument /,
    cause: 'driver-error',
    cure: 'The driver cannot create such a volume: correct the class or the claim, and recreate it, as it cannot be edited',
  },
  {
    pattern: /^An earlier attempt may have left a volume/,
    cause: 'driver-error',
    cure: 'See "A record that is stuck" in docs/troubleshooting.md',
  },
];

const driverCure = "See the log of the driver's controller, and docs/troubleshooting.md for this text";

/** The cause of a failed attempt; `driver-error` for a text that nothing else fits. */
export function failureCause(text: string): { cause: Cause; cure: string } {
  return failureCauses.find(({ pattern }) => pattern.test(text)) ?? { cause: 'driver-error', cure: driverCure };
}

/** What a `ProvisioningWaiting` event of this sidecar says. `state`: a person must act, or not. */
const waitingCauses: readonly (FailureCause & { state: 'waiting' | 'stuck' })[] = [
  {
    pattern: /^Waiting for (StorageClass |a StorageClass)/,
    cause: 'class-not-found',
    state: 'stuck',
    cure: 'Create the class, or recreate the claim with another',
  },
  {
    pattern: /^Waiting for a node with room /,
    cause: 'no-capacity',
    state: 'stuck',
    cure: 'Free storage on a node, request less, or use a class with enough capacity',
  },
  { pattern: /^Waiting for a node that StorageClass /, cause: 'no-topology', state: 'stuck', cure: topologyCure },
  {
    pattern: /^Waiting for node ".*", which was selected/,
    cause: 'provisioner-away',
    state: 'stuck',
    cure: "Start the driver's Pod on that node, or recreate the claim",
  },
  {
    pattern: /^Waiting for the deletion of a volume: /,
    cause: 'no-capacity',
    state: 'stuck',
    cure: 'Delete volumes that nobody needs, or raise the limit of the provisioner or its class',
  },
  {
    pattern: /^Waiting for the API server /,
    cause: 'in-progress',
    state: 'waiting',
    cure: 'Nothing to do about the claim; the API server is overloaded or unavailable',
  },
  {
    pattern: /^Waiting for another process: /,
    cause: 'in-progress',
    state: 'waiting',
    cure: 'Nothing to do about the claim; the other process of the provisioner finishes first, or is replaced after 30 seconds',
  },
  {
    pattern: /^Waiting for the end of a drain: /,
    cause: 'in-progress',
    state: 'waiting',
    cure: 'An operator is draining the intent journal, such as before another provisioner takes over; csi-provisioner journal drain --resume ends that',
  },
  {
    pattern: /^Waiting for a deletion: /,
    cause: 'name-taken',
    state: 'waiting',
    cure: 'Wait until that PersistentVolume is deleted; if it stays, find out why it is not deleted',
  },
  {
    pattern: /^Waiting: /,
    cause: 'name-taken',
    state: 'stuck',
    cure: 'Raise --volume-name-uuid-length of the provisioner: names of volumes are too short to be unique',
  },
];

/** The cause of a wait; undefined for a text of another provisioner. */
export function waitingCause(text: string): { cause: Cause; state: 'waiting' | 'stuck'; cure: string } | undefined {
  return waitingCauses.find(({ pattern }) => pattern.test(text));
}
