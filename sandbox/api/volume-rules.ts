import { posix } from 'node:path';
import { accessModeErrors } from './claim-rules.ts';
import type { SandboxObject } from './client.ts';
import { all, each, type FieldError, filled, forbidden, ifFilled, ifSet, invalid, named, notSupported, oneOf, required, syntax } from './field-error.ts';
import { volumeSources } from './kind-schemas.ts';
import { type KindRules, withoutEmpty } from './kind-rules.ts';
import { arrayAt, at, isObject, jsonEqual, type JsonObject, objectAt, stringAt } from './json.ts';
import { subdomainProblem } from './names.ts';
import { quantityNanos } from './quantity.ts';
import { sameFields } from './schema.ts';
import { nodeSelector } from './selector-rules.ts';
import { timestamp } from './timestamps.ts';
import { completeSources, initiatorErrors, volumeSourceRules } from './volume-sources.ts';

const sourceNames = Object.keys(volumeSourceRules);
const mountOptionAnnotation = 'volume.beta.kubernetes.io/mount-options';

/** Labels of nodes that had another key once; a volume may change to the present one. */
const renamedLabels: Readonly<Record<string, string>> = {
  'failure-domain.beta.kubernetes.io/zone': 'topology.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region': 'topology.kubernetes.io/region',
  'beta.kubernetes.io/os': 'kubernetes.io/os',
  'beta.kubernetes.io/arch': 'kubernetes.io/arch',
  'beta.kubernetes.io/instance-type': 'node.kubernetes.io/instance-type',
};

const specFields = each({
  persistentVolumeReclaimPolicy: oneOf('Delete', 'Recycle', 'Retain'),
  storageClassName: ifFilled(syntax(subdomainProblem)),
  volumeMode: oneOf('Block', 'Filesystem'),
  volumeAttributesClassName: ifSet(named(subdomainProblem)),
  accessModes: accessModeErrors,
});

/** Defaults and checks of PersistentVolume. */
export const volumeRules: KindRules = {
  complete: completeSpec,
  prepareCreate(volume, { nowMs }) {
    volume['status'] = { phase: 'Pending', lastPhaseTransitionTime: timestamp(nowMs) };
  },
  prepareUpdate(volume, old, { nowMs }) {
    const [status, oldStatus] = [volume['status'], objectAt(old, 'status')];
    if (!isObject(status) || status['phase'] === oldStatus['phase']) return;
    if (status['lastPhaseTransitionTime'] === oldStatus['lastPhaseTransitionTime']) {
      status['lastPhaseTransitionTime'] = timestamp(nowMs);
    }
  },
  validate(volume, old) {
    const spec = objectAt(volume, 'spec');
    return [
      ...specFields(spec, 'spec'),
      ...capacityErrors(objectAt(spec, 'capacity')),
      ...affinityErrors(spec, old),
      ...sourceErrors(spec, volume.metadata.name),
      ...conflictErrors(spec),
      ...mountOptionErrors(volume, spec),
    ];
  },
  validateUpdate: updateErrors,
};

function completeSpec(volume: SandboxObject): void {
  const spec: JsonObject = (volume['spec'] = objectAt(volume, 'spec'));
  if (stringAt(spec, 'persistentVolumeReclaimPolicy') === '') spec['persistentVolumeReclaimPolicy'] = 'Retain';
  spec['volumeMode'] ??= 'Filesystem';
  completeSources(spec);
}

function capacityErrors(capacity: JsonObject): FieldError[] {
  const entries = Object.entries(capacity);
  const errors: FieldError[] = [];
  if (entries.length === 0) errors.push(required('spec.capacity'));
  else if (entries.length > 1 || capacity['storage'] === undefined) {
    errors.push(notSupported('spec.capacity', Object.keys(capacity).join(','), ['storage']));
  }
  for (const [name, amount] of entries) {
    if ((quantityNanos(amount) ?? 0n) <= 0n) {
      errors.push(invalid(`spec.capacity[${name}]`, amount, 'must be greater than zero'));
    }
  }
  return errors;
}

/** Values that are no label values are left alone where the volume had such ones before. */
function affinityErrors(spec: JsonObject, old: SandboxObject | undefined): FieldError[] {
  const oldSelector = at(old, 'spec', 'nodeAffinity', 'required');
  const anyValue = oldSelector !== undefined && nodeSelector()(oldSelector, '').length > 0;
  return ifSet(each({ required: all(filled, ifSet(nodeSelector(anyValue))) }))(
    spec['nodeAffinity'],
    'spec.nodeAffinity',
  );
}

/** Exactly one source; flexVolume stands beside others. */
function sourceErrors(spec: JsonObject, volumeName: string): FieldError[] {
  const names = sourceNames.filter((name) => spec[name] !== undefined);
  if (names.length === 0) return [required('spec', 'must specify a volume type')];
  return names.flatMap((name, index) => {
    if (index === 0 || name === 'flexVolume') return firstSourceErrors(spec, name, volumeName);
    const shown = name === 'cephfs' ? 'cephFS' : name;
    return [forbidden(`spec.${shown}`, 'may not specify more than 1 volume type')];
  });
}

function firstSourceErrors(spec: JsonObject, name: string, volumeName: string): FieldError[] {
  const { check, shownAs = name } = volumeSourceRules[name] ?? {};
  const errors = check?.(spec[name], `spec.${shownAs}`) ?? [];
  if (name === 'iscsi') return [...errors, ...initiatorErrors(spec[name], volumeName)];
  if (name !== 'local' || spec['nodeAffinity'] !== undefined) return errors;
  return [...errors, required('spec.nodeAffinity', 'Local volume requires node affinity')];
}

/** Fields that are right by themselves and wrong together. */
function conflictErrors(spec: JsonObject): FieldError[] {
  const errors: FieldError[] = [];
  const isRoot = isObject(spec['hostPath']) && posix.normalize(stringAt(spec, 'hostPath', 'path')) === '/';
  if (isRoot && spec['persistentVolumeReclaimPolicy'] === 'Recycle') {
    errors.push(forbidden('spec.persistentVolumeReclaimPolicy', "may not be 'recycle' for a hostPath mount of '/'"));
  }
  if (spec['volumeAttributesClassName'] !== undefined && spec['csi'] === undefined) {
    errors.push(required('spec.csi', 'has to be specified when using volumeAttributesClassName'));
  }
  return errors;
}

function mountOptionErrors({ metadata }: SandboxObject, spec: JsonObject): FieldError[] {
  if (metadata.annotations?.[mountOptionAnnotation] === undefined) return [];
  if (sourceNames.some((name) => spec[name] !== undefined && volumeSourceRules[name]?.mountOptions === true)) return [];
  return [
    forbidden(`metadata.annotations.${mountOptionAnnotation}`, 'may not specify mount options for this volume type'),
  ];
}

function updateErrors(volume: SandboxObject, old: SandboxObject): FieldError[] {
  const [spec, oldSpec] = [objectAt(volume, 'spec'), objectAt(old, 'spec')];
  const errors: FieldError[] = [];
  if (!sourceNames.every((name) => sameSource(spec, oldSpec, name))) {
    errors.push(forbidden('spec.persistentvolumesource', 'spec.persistentvolumesource is immutable after creation'));
  }
  if (spec['volumeMode'] !== oldSpec['volumeMode']) {
    errors.push(invalid('volumeMode', spec['volumeMode'], 'field is immutable'));
  }
  if (oldSpec['nodeAffinity'] !== undefined && !sameAffinity(spec['nodeAffinity'], oldSpec['nodeAffinity'])) {
    errors.push(invalid('nodeAffinity', spec['nodeAffinity'], 'field is immutable'));
  }
  if (oldSpec['volumeAttributesClassName'] !== undefined && spec['volumeAttributesClassName'] === undefined) {
    errors.push(forbidden('spec.volumeAttributesClassName', 'may not be removed'));
  }
  return errors;
}

/** `controllerExpandSecretRef` may be added once; everything else of a source stays. */
function sameSource(spec: JsonObject, oldSpec: JsonObject, name: string): boolean {
  const [source, oldSource] = [spec[name], oldSpec[name]];
  if (!isObject(source) || !isObject(oldSource)) return source === oldSource;
  const schema = volumeSources[name as keyof typeof volumeSources];
  const added = name === 'csi' && oldSource['controllerExpandSecretRef'] === undefined;
  return sameFields(added ? { ...source, controllerExpandSecretRef: undefined } : source, oldSource, schema);
}

function sameAffinity(affinity: unknown, old: unknown): boolean {
  if (jsonEqual(withoutEmpty(affinity), withoutEmpty(old))) return true;
  return jsonEqual(withoutEmpty(affinity), withoutEmpty(withRenamedKeys(old, affinity)));
}

/** The old affinity with the present key of a label, or none, wherever the new one has it in the same place. */
function withRenamedKeys(old: unknown, affinity: unknown): unknown {
  if (Array.isArray(old))
    return old.map((item, index) => withRenamedKeys(item, arrayAt({ affinity }, 'affinity')[index]));
  if (!isObject(old)) return old;
  const fields = Object.entries(old).map(([field, value]) => [field, withRenamedKeys(value, at(affinity, field))]);
  const isRenamed = (renamedLabels[stringAt(old, 'key')] ?? '') === stringAt(affinity, 'key');
  const renamed = isRenamed && old['key'] !== undefined ? { key: at(affinity, 'key') } : {};
  return { ...(Object.fromEntries(fields) as JsonObject), ...renamed };
}
