import type { SandboxObject } from './client.ts';
import { invalid, required } from './field-error.ts';
import type { FieldError } from './field-error.ts';
import { arrayAt, at, isObject, jsonEqual, objectAt, stringAt } from './json.ts';
import type { KindRules } from './kind-rules.ts';
import { labelNameProblem, pathSegmentProblem } from './names.ts';

/** Namespaces start Active and hold themselves with a finalizer of their own. */
export const namespaceRules: KindRules = {
  nameProblem: labelNameProblem,
  prepareCreate(namespace) {
    namespace['spec'] = { finalizers: ['kubernetes'] };
    namespace['status'] = { phase: 'Active' };
    namespace.metadata.labels = {
      ...namespace.metadata.labels,
      'kubernetes.io/metadata.name': namespace.metadata.name,
    };
  },
  prepareUpdate(namespace, old) {
    namespace['spec'] ??= old['spec'];
  },
};

/** Defaults and checks of Pod. */
export const podRules: KindRules = {
  prepareCreate(pod) {
    const spec = { ...objectAt(pod, 'spec') };
    spec['restartPolicy'] ??= 'Always';
    spec['schedulerName'] ??= 'default-scheduler';
    spec['terminationGracePeriodSeconds'] ??= 30;
    spec['dnsPolicy'] ??= 'ClusterFirst';
    spec['serviceAccountName'] ??= 'default';
    spec['enableServiceLinks'] ??= true;
    pod['spec'] = spec;
    pod['status'] = { phase: 'Pending', qosClass: 'BestEffort' };
  },
  validate(pod) {
    const containers = arrayAt(pod, 'spec', 'containers');
    if (containers.length === 0) return [required('spec.containers')];
    return containers.flatMap((container, index) => {
      const path = `spec.containers[${index}]`;
      const errors: FieldError[] = [];
      if (stringAt(container, 'name') === '') errors.push(required(`${path}.name`));
      if (stringAt(container, 'image') === '') errors.push(required(`${path}.image`));
      return errors;
    });
  },
  validateUpdate(pod, old) {
    const [nodeName, oldNodeName] = [stringAt(pod, 'spec', 'nodeName'), stringAt(old, 'spec', 'nodeName')];
    if (nodeName === oldNodeName || oldNodeName === '') return [];
    return [invalid('spec.nodeName', nodeName, 'field is immutable')];
  },
};

/** Secrets take plain text in `stringData` and keep base64 in `data`. */
export const secretRules: KindRules = {
  prepareCreate: encodeStringData,
  prepareUpdate: encodeStringData,
  validate: (secret) =>
    Object.entries(objectAt(secret, 'data'))
      .filter(([, value]) => !/^[A-Za-z0-9+/]*={0,2}$/.test(String(value)))
      .map(([key]) => invalid(`data[${key}]`, '<redacted>', 'must be base64')),
  validateUpdate(secret, old) {
    const errors = immutableContent(secret, old, ['data']);
    if (secret['type'] !== old['type']) errors.push(invalid('type', secret['type'], 'field is immutable'));
    return errors;
  },
};

/** ConfigMaps with `immutable: true` stay as they are. */
export const configMapRules: KindRules = {
  validateUpdate: (configMap, old) => immutableContent(configMap, old, ['data', 'binaryData']),
};

/** Events belong into the namespace of what they are about. */
export const eventRules: KindRules = {
  prepareCreate: completeEvent,
  prepareUpdate: completeEvent,
  validate(event) {
    const about = stringAt(event, 'involvedObject', 'namespace');
    const { namespace = '' } = event.metadata;
    if (about !== '' && about !== namespace) {
      return [invalid('involvedObject.namespace', about, 'does not match event.namespace')];
    }
    return [];
  },
};

/** Checks of Lease; an empty holder is allowed. */
export const leaseRules: KindRules = {
  validate(lease) {
    const errors: FieldError[] = [];
    const duration = at(lease, 'spec', 'leaseDurationSeconds');
    if (typeof duration === 'number' && duration <= 0) {
      errors.push(invalid('spec.leaseDurationSeconds', duration, 'must be greater than 0'));
    }
    const transitions = at(lease, 'spec', 'leaseTransitions');
    if (typeof transitions === 'number' && transitions < 0) {
      errors.push(invalid('spec.leaseTransitions', transitions, 'must be greater than or equal to 0'));
    }
    return errors;
  },
};

/** RBAC objects may have colons in their names. */
export const rbacRules: KindRules = { nameProblem: pathSegmentProblem };

/** Fields that a real server shows even where nobody set them, some of them as null. */
function completeEvent(event: SandboxObject): void {
  event['source'] ??= {};
  event['reportingComponent'] ??= '';
  event['reportingInstance'] ??= '';
  for (const field of ['eventTime', 'firstTimestamp', 'lastTimestamp']) event[field] ??= null;
}

function encodeStringData(secret: SandboxObject): void {
  const { stringData } = secret;
  secret['type'] ??= 'Opaque';
  if (!isObject(stringData)) return;
  const data = { ...objectAt(secret, 'data') };
  for (const [key, value] of Object.entries(stringData)) data[key] = Buffer.from(String(value)).toString('base64');
  secret['data'] = data;
  delete secret['stringData'];
}

function immutableContent(object: SandboxObject, old: SandboxObject, names: string[]): FieldError[] {
  if (old['immutable'] !== true) return [];
  const errors = names
    .filter((field) => !jsonEqual(object[field], old[field]))
    .map((field) => invalid(field, '<hidden>', 'field is immutable when `immutable` is set'));
  if (object['immutable'] !== true)
    errors.push(invalid('immutable', false, 'field is immutable when `immutable` is set'));
  return errors;
}
