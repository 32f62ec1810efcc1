/** Whether a feature is used here, as far as manifests show it: what a driver can do, only the driver itself says. */
import { controllerContainers, type SidecarFacts } from './sidecar-facts.ts';

export interface FeatureState {
  /** `depends`: on the driver, or on what users create. */
  state: 'on' | 'off' | 'depends';
  /** What shows it, or what it depends on. */
  why: string;
}

export const off: FeatureState = { state: 'off', why: '' };

export function usesTopology({ arguments: { config, values, given } }: SidecarFacts): FeatureState {
  if (values['node-deployment'] || config?.featureGates.topology === false) return off;
  const named = values['feature-gates'].get('Topology') === true ? 'feature-gates=Topology=true' : undefined;
  const flag = named ?? (['strict-topology', 'immediate-topology'] as const).find((name) => given.has(name));
  if (flag === undefined) return { state: 'depends', why: 'the driver reports VOLUME_ACCESSIBILITY_CONSTRAINTS' };
  return { state: 'on', why: `--${flag}` };
}

/** By the CSIDriver objects that are given, else by the attacher beside it. */
export function attachesVolumes(facts: SidecarFacts): FeatureState {
  const drivers = facts.manifests.filter(({ kind, group }) => kind === 'CSIDriver' && group === 'storage.k8s.io');
  const required = drivers.map(({ fields }) => fields.part('spec')?.flag('attachRequired') ?? true);
  if (required.length > 0 && required.every((each) => !each)) return off;
  if (hasImage(facts, 'attacher')) return { state: 'on', why: 'the external-attacher runs beside it' };
  if (required.length > 0 && required.every(Boolean)) return { state: 'on', why: 'attachRequired of the CSIDriver' };
  return { state: 'depends', why: 'the driver reports PUBLISH_UNPUBLISH_VOLUME' };
}

export function restoresSnapshots(facts: SidecarFacts): FeatureState {
  if (hasImage(facts, 'snapshotter')) return { state: 'on', why: 'the external-snapshotter runs beside it' };
  if (facts.manifests.some(({ kind }) => kind === 'VolumeSnapshotClass')) {
    return { state: 'on', why: 'there is a VolumeSnapshotClass' };
  }
  return { state: 'depends', why: 'a claim names a snapshot as its source' };
}

export function namesAttributesClasses(facts: SidecarFacts): FeatureState {
  if (facts.arguments.config?.featureGates.volumeAttributesClass === false) return off;
  if (facts.manifests.some(({ kind }) => kind === 'VolumeAttributesClass')) {
    return { state: 'on', why: 'there is a VolumeAttributesClass' };
  }
  return { state: 'depends', why: 'a claim names a VolumeAttributesClass' };
}

/** The parameters of classes that name a Secret for CreateVolume and DeleteVolume. */
const secretParameters = ['csi.storage.k8s.io/provisioner-secret-name', 'csiProvisionerSecretName'];

export function namesSecrets({ manifests }: SidecarFacts): FeatureState {
  const named = manifests
    .filter(({ kind, group }) => kind === 'StorageClass' && group === 'storage.k8s.io')
    .find(({ fields }) => secretParameters.some((key) => fields.part('parameters')?.has(key) === true));
  if (named !== undefined) return { state: 'on', why: `the class ${named.name} names one` };
  return { state: 'depends', why: 'a class names a Secret of the provisioner' };
}

export function journalState({ arguments: { values } }: SidecarFacts): FeatureState {
  return values['intent-journal'] === 'off' ? off : { state: 'on', why: '--intent-journal=lease, the default' };
}

export function electionState({ arguments: { values } }: SidecarFacts): FeatureState {
  return values['leader-election'] && !values['node-deployment'] ? { state: 'on', why: '--leader-election' } : off;
}

export function capacityState({ arguments: { values } }: SidecarFacts): FeatureState {
  return values['enable-capacity'] ? { state: 'on', why: '--enable-capacity' } : off;
}

/** @param level - from which on it is needed. */
export function ownerState(facts: SidecarFacts, level: number): FeatureState {
  const asked = facts.arguments.values['capacity-ownerref-level'];
  const capacity = capacityState(facts);
  if (capacity.state === 'off' || asked < level) return off;
  return { state: 'on', why: `--enable-capacity with --capacity-ownerref-level=${asked}` };
}

export function goneNodesState(facts: SidecarFacts): FeatureState {
  if (!facts.arguments.values['node-deployment'] || journalState(facts).state === 'off') return off;
  return { state: 'on', why: '--node-deployment' };
}

function hasImage(facts: SidecarFacts, part: string): boolean {
  return controllerContainers(facts).some(({ image }) =>
    image.slice(image.lastIndexOf('/') + 1).includes(`csi-${part}`),
  );
}
