/** The objects that run Pods, and their containers. */
import type { Fields, Manifest } from './manifest.ts';

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

export interface EnvironmentVariable {
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

/** The workload in a manifest; undefined for an object that runs no Pods. @throws {ManifestError} */
export function workloadOf(manifest: Manifest, defaultNamespace: string | undefined): Workload | undefined {
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
