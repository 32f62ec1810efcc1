import { accessModeErrors, volumeModeErrors } from './claim-rules.ts';
import type { SandboxObject } from './client.ts';
import { forbidden, invalid, notSupported, required } from './field-error.ts';
import type { FieldError } from './field-error.ts';
import { arrayAt, at, isObject, jsonEqual, objectAt, stringAt } from './json.ts';
import type { JsonObject } from './json.ts';
import { volumeSources } from './kind-schemas.ts';
import type { KindRules } from './kind-rules.ts';
import { subdomainProblem } from './names.ts';
import { quantityNanos } from './quantity.ts';
import { timestamp } from './timestamps.ts';

const sourceNames = Object.keys(volumeSources);
const reclaimPolicies = ['Delete', 'Recycle', 'Retain'];

/** Defaults and checks of PersistentVolume. */
export const volumeRules: KindRules = {
  prepareCreate(volume, { nowMs }) {
    volume['status'] = { phase: 'Pending', lastPhaseTransitionTime: timestamp(nowMs) };
    const { spec } = volume;
    if (!isObject(spec)) return;
    spec['persistentVolumeReclaimPolicy'] ??= 'Retain';
    spec['volumeMode'] ??= 'Filesystem';
    if (isObject(spec['hostPath'])) spec['hostPath']['type'] ??= '';
  },
  prepareUpdate(volume, old, { nowMs }) {
    const [status, oldStatus] = [volume['status'], objectAt(old, 'status')];
    if (!isObject(status) || status['phase'] === oldStatus['phase']) return;
    if (status['lastPhaseTransitionTime'] === oldStatus['lastPhaseTransitionTime']) {
      status['lastPhaseTransitionTime'] = timestamp(nowMs);
    }
  },
  validate: (volume) => specErrors(objectAt(volume, 'spec')),
  validateUpdate: updateErrors,
};

function specErrors(spec: JsonObject): FieldError[] {
  const errors = capacityErrors(objectAt(spec, 'capacity'));
  errors.push(...accessModeErrors(arrayAt(spec, 'accessModes'), 'spec.accessModes'));
  const sources = sourceNames.filter((name) => spec[name] !== undefined);
  if (sources.length === 0) errors.push(required('spec', 'must specify a volume type'));
  for (const extra of sources.slice(1))
    errors.push(forbidden(`spec.${extra}`, 'may not specify more than 1 volume type'));
  if (isObject(spec['csi'])) {
    for (const field of ['driver', 'volumeHandle']) {
      if (stringAt(spec, 'csi', field) === '') errors.push(required(`spec.csi.${field}`));
    }
  }
  if (isObject(spec['nfs'])) {
    for (const field of ['server', 'path'])
      if (stringAt(spec, 'nfs', field) === '') errors.push(required(`spec.nfs.${field}`));
  }
  if (isObject(spec['hostPath']) && stringAt(spec, 'hostPath', 'path') === '')
    errors.push(required('spec.hostPath.path'));
  if (isObject(spec['local'])) {
    if (stringAt(spec, 'local', 'path') === '') errors.push(required('spec.local.path'));
    if (at(spec, 'nodeAffinity', 'required') === undefined) {
      errors.push(required('spec.nodeAffinity', 'Local volume requires node affinity'));
    }
  }
  const nodeAffinity = at(spec, 'nodeAffinity', 'required');
  if (nodeAffinity !== undefined && arrayAt(nodeAffinity, 'nodeSelectorTerms').length === 0) {
    errors.push(required('spec.nodeAffinity.required.nodeSelectorTerms', 'must have at least one node selector term'));
  }
  const policy = spec['persistentVolumeReclaimPolicy'];
  if (policy !== undefined && !(reclaimPolicies as unknown[]).includes(policy)) {
    errors.push(notSupported('spec.persistentVolumeReclaimPolicy', policy, reclaimPolicies));
  }
  const className = stringAt(spec, 'storageClassName');
  const problem = className === '' ? '' : subdomainProblem(className);
  if (problem !== '') errors.push(invalid('spec.storageClassName', className, problem));
  return [...errors, ...volumeModeErrors(spec['volumeMode'], 'spec.volumeMode')];
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

function updateErrors(volume: SandboxObject, old: SandboxObject): FieldError[] {
  const [spec, oldSpec] = [objectAt(volume, 'spec'), objectAt(old, 'spec')];
  const errors: FieldError[] = [];
  if (!sourceNames.every((name) => jsonEqual(sourceForCompare(spec, oldSpec, name), oldSpec[name]))) {
    errors.push(forbidden('spec.persistentvolumesource', 'spec.persistentvolumesource is immutable after creation'));
  }
  if (spec['volumeMode'] !== oldSpec['volumeMode']) {
    errors.push(invalid('spec.volumeMode', spec['volumeMode'], 'field is immutable'));
  }
  if (oldSpec['nodeAffinity'] !== undefined && !jsonEqual(spec['nodeAffinity'], oldSpec['nodeAffinity'])) {
    errors.push(invalid('spec.nodeAffinity', spec['nodeAffinity'], 'field is immutable'));
  }
  return errors;
}

/** `controllerExpandSecretRef` may be added once; everything else of a source stays. */
function sourceForCompare(spec: JsonObject, oldSpec: JsonObject, name: string): unknown {
  const source = spec[name];
  if (name !== 'csi' || !isObject(source) || at(oldSpec, 'csi', 'controllerExpandSecretRef') !== undefined)
    return source;
  return { ...source, controllerExpandSecretRef: undefined };
}
