import type { SandboxObject } from './client.ts';
import { forbidden, invalid, notSupported, required } from './field-error.ts';
import type { FieldError } from './field-error.ts';
import { arrayAt, at, copyJson, isObject, jsonEqual, objectAt, stringAt } from './json.ts';
import type { JsonObject } from './json.ts';
import type { KindRules } from './kind-rules.ts';
import { subdomainProblem } from './names.ts';
import { quantityNanos, sameQuantity } from './quantity.ts';

const accessModes = ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod'];
const betaClassAnnotation = 'volume.beta.kubernetes.io/storage-class';

/** Complaints about a list of access modes, which may be neither empty nor mix ReadWriteOncePod with others. */
export function accessModeErrors(modes: readonly unknown[], field: string): FieldError[] {
  if (modes.length === 0) return [required(field, 'at least 1 access mode is required')];
  const errors = modes
    .filter((mode) => !accessModes.includes(String(mode)))
    .map((mode) => notSupported(field, mode, accessModes));
  if (modes.includes('ReadWriteOncePod') && modes.length > 1) {
    errors.push(forbidden(field, 'may not use ReadWriteOncePod with other access modes'));
  }
  return errors;
}

/** Complaint about a volume mode, if there is one. */
export function volumeModeErrors(mode: unknown, field: string): FieldError[] {
  if (mode === undefined || mode === 'Filesystem' || mode === 'Block') return [];
  return [notSupported(field, mode, ['Block', 'Filesystem'])];
}

/** Defaults and checks of PersistentVolumeClaim. */
export const claimRules: KindRules = {
  prepareCreate(claim) {
    claim['status'] = { phase: 'Pending' };
    const spec = specOf(claim);
    spec['volumeMode'] ??= 'Filesystem';
    completeDataSources(spec);
  },
  prepareUpdate(claim) {
    completeDataSources(specOf(claim));
  },
  validate: (claim) => specErrors(objectAt(claim, 'spec')),
  validateUpdate: updateErrors,
};

function specOf(claim: SandboxObject): JsonObject {
  const { spec } = claim;
  if (isObject(spec)) return spec;
  return (claim['spec'] = {});
}

/** Drops data sources no server knows and mirrors `dataSource` and `dataSourceRef`. */
function completeDataSources(spec: JsonObject): void {
  const { dataSource, dataSourceRef } = spec;
  if (isObject(dataSource) && !isKnownSource(dataSource)) delete spec['dataSource'];
  if (isObject(spec['dataSource']) && !isObject(dataSourceRef)) {
    spec['dataSourceRef'] = copyJson(spec['dataSource']);
  } else if (spec['dataSource'] === undefined && dataSource === undefined && isObject(dataSourceRef)) {
    if (stringAt(dataSourceRef, 'namespace') !== '') return;
    if (isKnownSource(dataSourceRef)) spec['dataSource'] = copyJson(dataSourceRef);
  }
}

function isKnownSource(source: JsonObject): boolean {
  const [group, kind] = [stringAt(source, 'apiGroup'), stringAt(source, 'kind')];
  if (group === '') return kind === 'PersistentVolumeClaim';
  return group === 'snapshot.storage.k8s.io' && kind === 'VolumeSnapshot';
}

function specErrors(spec: JsonObject): FieldError[] {
  const errors = accessModeErrors(arrayAt(spec, 'accessModes'), 'spec.accessModes');
  const request = at(spec, 'resources', 'requests', 'storage');
  if (request === undefined) errors.push(required('spec.resources[storage]'));
  else if ((quantityNanos(request) ?? 0n) <= 0n) {
    errors.push(invalid('spec.resources[storage]', request, 'must be greater than zero'));
  }
  for (const field of ['storageClassName', 'volumeAttributesClassName']) {
    const name = stringAt(spec, field);
    const problem = name === '' ? '' : subdomainProblem(name);
    if (problem !== '') errors.push(invalid(`spec.${field}`, name, problem));
  }
  errors.push(...volumeModeErrors(spec['volumeMode'], 'spec.volumeMode'));
  return [...errors, ...dataSourceErrors(spec)];
}

function dataSourceErrors(spec: JsonObject): FieldError[] {
  const errors: FieldError[] = [];
  const { dataSource, dataSourceRef } = spec;
  for (const [field, source] of Object.entries({ dataSource, dataSourceRef })) {
    if (!isObject(source)) continue;
    const path = `spec.${field}`;
    if (stringAt(source, 'name') === '') errors.push(required(`${path}.name`));
    if (stringAt(source, 'kind') === '') errors.push(required(`${path}.kind`));
    if (stringAt(source, 'apiGroup') === '' && stringAt(source, 'kind') !== 'PersistentVolumeClaim') {
      errors.push(
        invalid(path, stringAt(source, 'kind'), 'must be PersistentVolumeClaim when referencing the core group'),
      );
    }
  }
  if (!isObject(dataSource) || !isObject(dataSourceRef)) return errors;
  if (stringAt(dataSourceRef, 'namespace') !== '') {
    errors.push(invalid('spec', 'dataSource', 'may not be specified when dataSourceRef.namespace is specified'));
  } else if (!jsonEqual(withGroup(dataSource), withGroup(dataSourceRef))) {
    errors.push(invalid('spec', 'dataSource', 'must match dataSourceRef'));
  }
  return errors;
}

function withGroup(source: JsonObject): JsonObject {
  return { ...source, apiGroup: stringAt(source, 'apiGroup'), namespace: undefined };
}

function updateErrors(claim: SandboxObject, old: SandboxObject): FieldError[] {
  const errors: FieldError[] = [];
  const [betaClass, oldBetaClass] = [claim, old].map((each) =>
    at(each, 'metadata', 'annotations', betaClassAnnotation),
  );
  if (betaClass !== oldBetaClass) {
    errors.push(invalid(`metadata.annotations[${betaClassAnnotation}]`, betaClass ?? '', 'field is immutable'));
  }
  const [spec, oldSpec] = [objectAt(claim, 'spec'), objectAt(old, 'spec')];
  const bound = stringAt(old, 'status', 'phase') === 'Bound';
  const tolerated: JsonObject = { ...spec };
  if (stringAt(oldSpec, 'volumeName') === '') tolerated['volumeName'] = oldSpec['volumeName'];
  if (oldSpec['storageClassName'] === undefined) delete tolerated['storageClassName'];
  if (bound) tolerated['volumeAttributesClassName'] = oldSpec['volumeAttributesClassName'];
  const request = at(spec, 'resources', 'requests', 'storage');
  const oldRequest = at(oldSpec, 'resources', 'requests', 'storage');
  if (sameQuantity(request, oldRequest) || bound) {
    tolerated['resources'] = withRequest(objectAt(spec, 'resources'), oldRequest);
  }
  if (!jsonEqual(withoutSources(tolerated), withoutSources(oldSpec)) || !sourcesKept(spec, oldSpec)) {
    errors.push(
      forbidden(
        'spec',
        'spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims',
      ),
    );
    return errors;
  }
  const [size, oldSize] = [quantityNanos(request), quantityNanos(oldRequest)];
  const capacity = quantityNanos(at(old, 'status', 'capacity', 'storage'));
  if (size !== undefined && oldSize !== undefined && size < oldSize && (capacity === undefined || size <= capacity)) {
    errors.push(forbidden('spec.resources.requests.storage', 'field can not be less than status.capacity'));
  }
  return errors;
}

function withRequest(resources: JsonObject, storage: unknown): JsonObject {
  return { ...resources, requests: { ...objectAt(resources, 'requests'), storage } };
}

function withoutSources(spec: JsonObject): JsonObject {
  return { ...spec, dataSource: undefined, dataSourceRef: undefined };
}

/** A source is never changed; that a mirror was added to an old claim is no change. */
function sourcesKept(spec: JsonObject, oldSpec: JsonObject): boolean {
  return ['dataSource', 'dataSourceRef'].every(
    (field) => jsonEqual(spec[field], oldSpec[field]) || (oldSpec[field] === undefined && isMirror(spec)),
  );
}

function isMirror(spec: JsonObject): boolean {
  return isObject(spec['dataSource']) && jsonEqual(spec['dataSource'], spec['dataSourceRef']);
}
