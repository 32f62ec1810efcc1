/** The objects that run Pods, and which of their containers are the Go sidecar. */
import { nameList } from '../../base/name-list.ts';
import { shortValue } from '../../base/short-value.ts';
import { type Fields, type Manifest, ManifestError } from './manifest.ts';

/** What a container needs to be judged. */
export interface Container {
  name: string;
  image: string;
  /** Undefined: the image's own. */
  command: string[] | undefined;
  args: string[];
  env: EnvironmentVariable[];
  /** It has variables that are named elsewhere, in a ConfigMap or Secret. */
  hasOtherVariables: boolean;
  fields: Fields;
}

interface EnvironmentVariable {
  name: string;
  /** As it is written. */
  value: string | undefined;
  /** The field of the Pod that it takes its value from. */
  fieldPath: string | undefined;
}

/** An object that runs Pods. */
export interface Workload {
  manifest: Manifest;
  kind: string;
  name: string;
  namespace: string | undefined;
  /** `spec` of the Pods. */
  pod: Fields;
  /** Those that run beside each other, with init containers that keep running. */
  containers: Container[];
  /** How many Pods are wanted at once; undefined where the number is none of the object's, as of a DaemonSet. */
  replicas: number | undefined;
}

/** A container that is the Go sidecar. */
export interface SidecarContainer {
  workload: Workload;
  container: Container;
}

/** The workload in a manifest; undefined for an object that runs no Pods. @throws {ManifestError} */
function workloadOf(manifest: Manifest, defaultNamespace: string | undefined): Workload | undefined {
  const pod = podSpec(manifest);
  if (pod?.has('containers') !== true) return undefined;
  const { kind, name, namespace = defaultNamespace } = manifest;
  const spec = manifest.fields.part('spec');
  return {
    manifest,
    kind,
    name,
    namespace,
    pod,
    containers: [...pod.parts('initContainers').filter(keepsRunning), ...pod.parts('containers')].map(containerOf),
    replicas:
      kind === 'Deployment' || kind === 'StatefulSet' || kind === 'ReplicaSet'
        ? (spec?.number('replicas') ?? 1)
        : undefined,
  };
}

/** Also of kinds that are not known, such as those of an operator that rolls out Pods: most have a template. */
function podSpec({ kind, group, fields }: Manifest): Fields | undefined {
  if (kind === 'Pod' && group === '') return fields.part('spec');
  if (kind === 'CronJob') return fields.partAt('spec', 'jobTemplate', 'spec', 'template', 'spec');
  if (kind === 'PodTemplate') return fields.partAt('template', 'spec');
  return workloadKinds.has(kind) || group.includes('.')
    ? maybePart(maybePart(maybePart(fields, 'spec'), 'template'), 'spec')
    : undefined;
}

const workloadKinds = new Set(['Deployment', 'StatefulSet', 'DaemonSet', 'ReplicaSet', 'ReplicationController', 'Job']);

/** Fields of foreign kinds may have any type. */
function maybePart(fields: Fields | undefined, name: string): Fields | undefined {
  return fields?.isMap(name) === true ? fields.part(name) : undefined;
}

/** Kubernetes page "Sidecar Containers". */
function keepsRunning(container: Fields): boolean {
  return container.text('restartPolicy') === 'Always';
}

function containerOf(fields: Fields): Container {
  const command = fields.texts('command');
  return {
    name: fields.text('name') ?? '',
    image: fields.text('image') ?? '',
    command: command.length === 0 ? undefined : command,
    args: fields.texts('args'),
    env: fields.parts('env').map(variableOf),
    hasOtherVariables: fields.parts('envFrom').length > 0,
    fields,
  };
}

function variableOf(fields: Fields): EnvironmentVariable {
  return {
    name: fields.text('name') ?? '',
    value: fields.text('value'),
    fieldPath: fields.partAt('valueFrom', 'fieldRef')?.text('fieldPath'),
  };
}

/** The last part of an image's name, as mirrors and distributions spell it. */
const imageName = /(?:^|-)(?:csi-(?:external-)?|external-)provisioner(?:-(?:rhel\d+|amd64|arm64|arm|ppc64le|s390x))?$/;
/** Programs whose names are similar. */
const otherImages = /nfs-subdir|nfs-client|nfs-ganesha|nfs-server|local-static/;

/** Name and tag of an image, without registry and digest. */
function imageParts(image: string): { name: string; tag: string } {
  const [reference = ''] = image.split('@');
  const last = reference.slice(reference.lastIndexOf('/') + 1);
  const colon = last.indexOf(':');
  return colon < 0 ? { name: last, tag: '' } : { name: last.slice(0, colon), tag: last.slice(colon + 1) };
}

export function isProvisionerImage(image: string): boolean {
  const { name } = imageParts(image);
  return imageName.test(name) && !otherImages.test(name);
}

/** By its image, or by its name and arguments, as in a patch that leaves out the image. */
function isProvisionerContainer({ name, image, args, command = [] }: Container): boolean {
  if (isProvisionerImage(image)) return true;
  const words = [...command, ...args];
  return /^(?:csi-|external-)?provisioner$/.test(name) && words.some((word) => word.startsWith('--csi-address'));
}

/** Releases in which something changed that a container without further flags notices. */
export interface GoRelease {
  major: number;
  minor: number;
}

/** By the tag of an image with the project's own name: distributions number theirs in another way. */
export function goRelease(image: string): GoRelease | undefined {
  const { name, tag } = imageParts(image);
  if (!/^(?:[a-z-]*-)?(?:csi|external)-provisioner$/.test(name) || name.startsWith('ose-')) return undefined;
  const [, major, minor] = /^v?(\d+)\.(\d+)(?:\.\d+)?(?:-|$)/.exec(tag) ?? [];
  if (major === undefined || major === '0') return undefined; // older than its first release, or an image of this project
  return { major: Number(major), minor: Number(minor) };
}

/** Whether a release is older than another; one that is not known is taken for the newest. */
export function isBefore(release: GoRelease | undefined, { major, minor }: GoRelease): release is GoRelease {
  if (release === undefined) return false;
  return release.major < major || (release.major === major && release.minor < minor);
}

export function releaseText({ major, minor }: GoRelease): string {
  return `v${major}.${minor}`;
}

/** The workloads, without those that others of the manifests have made, such as the Pods of a Deployment. */
export function workloadsIn(manifests: readonly Manifest[], namespace: string | undefined): Workload[] {
  const all = manifests.flatMap((manifest) => workloadOf(manifest, namespace) ?? []);
  return all.filter((each) => !isMadeByAnother(each, all));
}

function isMadeByAnother({ manifest, name, namespace }: Workload, all: readonly Workload[]): boolean {
  const owners = manifest.fields.part('metadata')?.parts('ownerReferences') ?? [];
  if (!owners.some((owner) => owner.flag('controller') === true)) return false;
  return all.some(
    (other) => other.manifest !== manifest && other.namespace === namespace && name.startsWith(`${other.name}-`),
  );
}

/**
 * @param named - the container's name; undefined: those that are known by image, or by name and arguments.
 * @throws {ManifestError} where there is none; it says what there is instead.
 */
export function findSidecars(
  manifests: readonly Manifest[],
  workloads: readonly Workload[],
  named: string | undefined,
): SidecarContainer[] {
  const found = workloads.flatMap((workload) =>
    workload.containers
      .filter((container) => (named === undefined ? isProvisionerContainer(container) : container.name === named))
      .map((container) => ({ workload, container })),
  );
  if (found.length > 0) return found;
  throw new ManifestError(nothingFound(manifests, workloads, named));
}

function nothingFound(
  manifests: readonly Manifest[],
  workloads: readonly Workload[],
  named: string | undefined,
): string {
  const what =
    named === undefined ? 'no container is the Go sidecar csi-provisioner' : `no container is called ${named}`;
  const operator = manifests.find(({ kind, fields }) => !withoutImages.test(kind) && namesImage(fields.everyText()));
  if (operator !== undefined) {
    const { kind, name } = operator;
    return `${what}, but ${kind} ${shortValue(name)} names its image: an operator in the cluster seems to create the Deployment. Pass that Deployment: kubectl get deployment -n NAMESPACE NAME -o yaml | csi-provisioner preflight FILE... -`;
  }
  const containers = workloads.flatMap(({ kind, name, containers: own }) =>
    own.map((container) => `${container.name} of ${kind} ${name}`),
  );
  if (containers.length === 0) {
    return `${what}: none of the ${manifests.length} objects runs Pods. Pass the file with the driver's controller`;
  }
  return `${what}. Choose one with --container, or pass the file with the driver's controller. There are: ${nameList(containers, 10)}`;
}

/** Kinds that nothing is made from: the roles of our own deployment are called `csi-provisioner:NAMESPACE`, as an image might be. */
const withoutImages = /^(?:Secret|(?:Cluster)?Role(?:Binding)?)$/;

function namesImage(texts: Iterable<string>): boolean {
  for (const text of texts) {
    const words = text.split(/[\s,;"'=]+/, 10_000);
    if (words.some((word) => /[/:]/.test(word) && isProvisionerImage(word))) return true;
  }
  return false;
}

const reference = /\$\$|\$\(([A-Za-z_.-][A-Za-z0-9_.-]*)\)/g;

/**
 * Replaces `$(NAME)` in a container's arguments, as the kubelet does (Kubernetes page "Define Dependent Environment Variables").
 *
 * @param values - of the variables; a reference to any other stays as it is. `$$` is an escaped `$`.
 */
export function expandVariables(text: string, values: ReadonlyMap<string, string | undefined>): string {
  return text.replaceAll(reference, (found, name: string | undefined) =>
    name === undefined ? '$' : (values.get(name) ?? found),
  );
}
