import type { SandboxObject } from './client.ts';
import { type Check, each, type FieldError, filled, forbidden, ifFilled, ifSet, invalid, notSupported, oneOf, required, syntax } from './field-error.ts';
import { at, copyJson, isObject, type JsonObject, objectAt, stringAt, stringsAt } from './json.ts';
import type { KindRules } from './kind-rules.ts';
import { claimSpecSchema } from './kind-schemas.ts';
import { labelNameProblem, subdomainProblem } from './names.ts';
import { quantityNanos } from './quantity.ts';
import { sameFields } from './schema.ts';
import { labelSelector } from './selector-rules.ts';

const accessModes = ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod'];
const betaClassAnnotation = 'volume.beta.kubernetes.io/storage-class';

/** Complaints about a list of access modes, which may be neither empty nor mix ReadWriteOncePod with others. */
export const accessModeErrors: Check = (value, field) => {
  const modes = stringsAt({ value }, 'value');
  if (modes.length === 0) return [required(field, 'at least 1 access mode is required')];
  const known = modes.filter((mode) => accessModes.includes(mode));
  const errors = modes
    .filter((mode) => !accessModes.includes(mode))
    .map((mode) => notSupported(field, mode, accessModes));
  if (new Set(known).size > 1 && known.includes('ReadWriteOncePod')) {
    errors.push(forbidden(field, 'may not use ReadWriteOncePod with other access modes'));
  }
  return errors;
};

const specFields = each({
  accessModes: accessModeErrors,
  storageClassName: ifFilled(syntax(subdomainProblem)),
  volumeAttributesClassName: ifFilled(syntax(subdomainProblem)),
  volumeMode: oneOf('Block', 'Filesystem'),
});

/** Defaults and checks of PersistentVolumeClaim. */
export const claimRules: KindRules = {
  complete(claim) {
    claim['spec'] ??= {};
    objectAt(claim, 'spec')['volumeMode'] ??= 'Filesystem';
  },
  prepareCreate(claim) {
    claim['status'] = { phase: 'Pending' };
    mirrorSource(objectAt(claim, 'spec'), undefined);
  },
  prepareUpdate(claim, old) {
    mirrorSource(objectAt(claim, 'spec'), objectAt(old, 'spec'));
  },
  validate: (claim, old) => specErrors(objectAt(claim, 'spec'), old && objectAt(old, 'spec')),
  validateUpdate: updateErrors,
};

/** Drops data sources no server knows and mirrors `dataSource` and `dataSourceRef`. */
function mirrorSource(spec: JsonObject, old: JsonObject | undefined): void {
  const hadSource = old !== undefined && (old['dataSource'] !== undefined || old['dataSourceRef'] !== undefined);
  const { dataSource, dataSourceRef } = spec;
  if (isObject(dataSource) && dataSourceRef === undefined && !hadSource && !isKnownSource(dataSource)) {
    delete spec['dataSource'];
  }
  if (isObject(spec['dataSource']) && !isObject(dataSourceRef)) {
    spec['dataSourceRef'] = copyJson(spec['dataSource']);
  } else if (spec['dataSource'] === undefined && isObject(dataSourceRef)) {
    if (stringAt(dataSourceRef, 'namespace') !== '') return;
    const { namespace: _empty, ...mirror } = dataSourceRef;
    spec['dataSource'] = copyJson(mirror);
  }
}

function isKnownSource(source: JsonObject): boolean {
  const [group, kind] = [stringAt(source, 'apiGroup'), stringAt(source, 'kind')];
  if (group === '') return kind === 'PersistentVolumeClaim';
  return group === 'snapshot.storage.k8s.io' && kind === 'VolumeSnapshot';
}

/** @param old - the spec before; what it had of the wrong sort may stay. */
function specErrors(spec: JsonObject, old: JsonObject | undefined): FieldError[] {
  const oldSelector = old?.['selector'];
  const anyValue = oldSelector !== undefined && labelSelector()(oldSelector, '').length > 0;
  const anyGroup = [old?.['dataSource'], old?.['dataSourceRef']].some((source) => at(source, 'apiGroup') !== undefined);
  return [
    ...specFields(spec, 'spec'),
    ...ifSet(labelSelector(anyValue))(spec['selector'], 'spec.selector'),
    ...requestErrors(at(spec, 'resources', 'requests', 'storage')),
    ...dataSourceErrors(spec, anyGroup),
  ];
}

function requestErrors(request: unknown): FieldError[] {
  const field = 'spec.resources[storage]';
  if (request === undefined) return [required(field)];
  return (quantityNanos(request) ?? 0n) > 0n ? [] : [invalid(field, request, 'must be greater than zero')];
}

function dataSourceErrors(spec: JsonObject, anyGroup: boolean): FieldError[] {
  const { dataSource, dataSourceRef } = spec;
  const namespace = stringAt(dataSourceRef, 'namespace');
  const errors = [
    ...sourceErrors(dataSource, 'spec.dataSource', anyGroup),
    ...sourceErrors(dataSourceRef, 'spec.dataSourceRef', anyGroup),
    ...ifFilled(syntax(labelNameProblem))(namespace, 'spec.dataSourceRef.namespace'),
  ];
  if (!isObject(dataSource) || !isObject(dataSourceRef)) return errors;
  if (namespace !== '') {
    errors.push(invalid('spec', 'dataSource', 'may not be specified when dataSourceRef.namespace is specified'));
  } else if (!sameSource(dataSource, dataSourceRef)) {
    errors.push(invalid('spec', 'dataSource', 'must match dataSourceRef'));
  }
  return errors;
}

function sameSource(a: JsonObject, b: JsonObject): boolean {
  const sameTexts = ['kind', 'name'].every((field) => stringAt(a, field) === stringAt(b, field));
  return sameTexts && a['apiGroup'] === b['apiGroup'];
}

function sourceErrors(source: unknown, path: string, anyGroup: boolean): FieldError[] {
  if (!isObject(source)) return [];
  const [group, kind] = [stringAt(source, 'apiGroup'), stringAt(source, 'kind')];
  const groupProblem = group === '' || anyGroup ? '' : subdomainProblem(group);
  return [
    ...each({ name: filled, kind: filled })(source, path),
    ...(group === '' && kind !== 'PersistentVolumeClaim'
      ? [invalid(path, kind, 'must be PersistentVolumeClaim when referencing the core group')]
      : []),
    ...(groupProblem === '' ? [] : [invalid(`${path}.apiGroup`, group, groupProblem)]),
  ];
}

function updateErrors(claim: SandboxObject, old: SandboxObject): FieldError[] {
  const [spec, oldSpec] = [objectAt(claim, 'spec'), objectAt(old, 'spec')];
  const errors = classErrors(claim, old);
  if (!sameFields(comparable(claim, old), comparable(old, old), claimSpecSchema)) {
    errors.push(
      forbidden(
        'spec',
        'spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims',
      ),
    );
  }
  errors.push(...shrinkErrors(spec, old));
  if (spec['volumeMode'] !== oldSpec['volumeMode']) {
    errors.push(invalid('volumeMode', spec['volumeMode'], 'field is immutable'));
  }
  const current = at(old, 'status', 'currentVolumeAttributesClassName');
  if (current !== undefined && stringAt(spec, 'volumeAttributesClassName') === '') {
    if (spec['volumeAttributesClassName'] !== oldSpec['volumeAttributesClassName']) {
      errors.push(forbidden('spec.volumeAttributesClassName', 'may not be removed once a class is in effect'));
    }
  }
  return errors;
}

/** The former annotation for the class stays, unless its class moves into the spec. */
function classErrors(claim: SandboxObject, old: SandboxObject): FieldError[] {
  if (movesClass(claim, old)) return [];
  const [betaClass = '', oldBetaClass = ''] = [betaClassOf(claim), betaClassOf(old)];
  if (betaClass === oldBetaClass) return [];
  return [invalid(`metadata.annotations.${betaClassAnnotation}`, betaClass, 'field is immutable')];
}

function betaClassOf({ metadata }: SandboxObject): string | undefined {
  return metadata.annotations?.[betaClassAnnotation];
}

function movesClass(claim: SandboxObject, old: SandboxObject): boolean {
  const oldClass = betaClassOf(old);
  return (
    oldClass !== undefined &&
    at(old, 'spec', 'storageClassName') === undefined &&
    at(claim, 'spec', 'storageClassName') === oldClass &&
    (betaClassOf(claim) ?? oldClass) === oldClass
  );
}

/** The spec of a claim with the old values of what may change. */
function comparable(claim: SandboxObject, old: SandboxObject): JsonObject {
  const [spec, oldSpec] = [{ ...objectAt(claim, 'spec') }, objectAt(old, 'spec')];
  const bound = stringAt(old, 'status', 'phase') === 'Bound';
  if (stringAt(oldSpec, 'volumeName') === '') spec['volumeName'] = '';
  if (oldSpec['storageClassName'] === undefined && mayTakeClass(claim, old)) delete spec['storageClassName'];
  if (bound) spec['volumeAttributesClassName'] = oldSpec['volumeAttributesClassName'];
  const resources = objectAt(spec, 'resources');
  spec['resources'] = bound ? withRequest(resources, at(oldSpec, 'resources', 'requests', 'storage')) : resources;
  return spec;
}

function mayTakeClass(claim: SandboxObject, old: SandboxObject): boolean {
  const oldClass = betaClassOf(old);
  return oldClass === undefined || stringAt(claim, 'spec', 'storageClassName') === oldClass;
}

function withRequest(resources: JsonObject, storage: unknown): JsonObject {
  const { requests } = resources;
  return isObject(requests) ? { ...resources, requests: { ...requests, storage } } : resources;
}

/** A request may go down after a failed expansion, but not to what there is. */
function shrinkErrors(spec: JsonObject, old: SandboxObject): FieldError[] {
  const nanos = (value: unknown, ...path: string[]): bigint => quantityNanos(at(value, ...path, 'storage')) ?? 0n;
  const size = nanos(spec, 'resources', 'requests');
  if (size >= nanos(old, 'spec', 'resources', 'requests') || size > nanos(old, 'status', 'capacity')) return [];
  return [forbidden('spec.resources.requests.storage', 'field can not be less than status.capacity')];
}
