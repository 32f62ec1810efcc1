/** From class parameters to the name of a Secret (Kubernetes CSI documentation, "Secrets & Credentials"). */
import { compareBytes } from '../../base/compare-bytes.ts';
import { goQuote } from '../../base/go-quote.ts';
import type { Logger } from '../../base/logger.ts';
import { shortValue } from '../../base/short-value.ts';
import { isLabelName, isSubdomainName } from '../../kube/kube-object.ts';
import type { SecretReference } from '../../provision/objects.ts';
import { reservedPrefix, warnDeprecated } from '../class-parameters.ts';
import { errorMessage } from '../call-error.ts';

interface SecretKeys {
  /** Its name in error texts. */
  label: string;
  name: string;
  namespace: string;
  deprecatedName?: string;
  deprecatedNamespace?: string;
}

function keys(label: string, pair: string, deprecated?: string): SecretKeys {
  return {
    label,
    name: `${reservedPrefix}${pair}secret-name`,
    namespace: `${reservedPrefix}${pair}secret-namespace`,
    ...(deprecated === undefined
      ? {}
      : { deprecatedName: `${deprecated}SecretName`, deprecatedNamespace: `${deprecated}SecretNamespace` }),
  };
}

const defaultKeys = keys('Default', '');

/** The kinds of secrets a class may name. */
export const secretKinds = {
  provisioner: keys('Provisioner', 'provisioner-', 'csiProvisioner'),
  controllerPublish: keys('ControllerPublish', 'controller-publish-', 'csiControllerPublish'),
  nodeStage: keys('NodeStage', 'node-stage-', 'csiNodeStage'),
  nodePublish: keys('NodePublish', 'node-publish-', 'csiNodePublish'),
  controllerExpand: keys('ControllerExpand', 'controller-expand-'),
  nodeExpand: keys('NodeExpand', 'node-expand-'),
  controllerModify: keys('ControllerModify', 'controller-modify-'),
} as const satisfies Record<string, SecretKeys>;

export type SecretKind = keyof typeof secretKinds;

/** What templates may name. */
interface TemplateContext {
  volumeName: string;
  claim: { namespace: string; name: string; annotations?: Record<string, string> | undefined };
}

/**
 * The secret of one kind that a class names, its templates expanded. The secret itself is not read.
 *
 * @returns nothing when the class names neither this kind nor a default.
 * @throws {Error} for half a pair, an empty half, both spellings of one key, an unknown token, an invalid result.
 */
export function secretReference(
  kind: SecretKind,
  parameters: Record<string, string>,
  context: TemplateContext,
  logger: Logger,
): SecretReference | undefined {
  const template =
    readPair(secretKinds[kind], parameters, logger, 'failed to get name and namespace template from params') ??
    readPair(defaultKeys, parameters, logger, 'failed to get default name and namespace template from params');
  if (template === undefined) return undefined;
  const { volumeName, claim } = context;
  const namespaceValues = new Map([
    ['pv.name', volumeName],
    ['pvc.namespace', claim.namespace],
  ]);
  const nameValues = new Map([...namespaceValues, ['pvc.name', claim.name]]);
  for (const [key, value] of Object.entries(claim.annotations ?? {}))
    nameValues.set(`pvc.annotations['${key}']`, value);
  // The namespace first: which of two errors is reported is part of the contract.
  const namespace = resolve(template.namespace, namespaceValues, isLabelName, 'namespace');
  const name = resolve(template.name, nameValues, isSubdomainName, 'secret');
  return { name, namespace };
}

function readPair(
  { label, name, namespace, deprecatedName, deprecatedNamespace }: SecretKeys,
  parameters: Record<string, string>,
  logger: Logger,
  failure: string,
): SecretReference | undefined {
  const nameTemplate = readHalf(label, name, deprecatedName, parameters, logger, failure);
  const namespaceTemplate = readHalf(label, namespace, deprecatedNamespace, parameters, logger, failure);
  if (nameTemplate === undefined && namespaceTemplate === undefined) return undefined;
  if (nameTemplate === undefined || namespaceTemplate === undefined) {
    throw new Error(`${failure}: either name and namespace for ${label} secrets specified, Both must be specified`);
  }
  if (nameTemplate === '' || namespaceTemplate === '') {
    throw new Error(
      `${failure}: ${label} secrets specified in parameters but value of either namespace or name is empty`,
    );
  }
  return { name: nameTemplate, namespace: namespaceTemplate };
}

function readHalf(
  label: string,
  key: string,
  deprecatedKey: string | undefined,
  parameters: Record<string, string>,
  logger: Logger,
  failure: string,
): string | undefined {
  const deprecated = deprecatedKey === undefined ? undefined : own(parameters, deprecatedKey);
  const current = own(parameters, key);
  if (deprecatedKey !== undefined && deprecated !== undefined) {
    warnDeprecated(logger, deprecatedKey, key);
    if (current !== undefined) {
      throw new Error(
        `${failure}: ${label} secrets specified in parameters with both "csi" and "${reservedPrefix}" keys`,
      );
    }
  }
  return current ?? deprecated;
}

function own(parameters: Record<string, string>, key: string): string | undefined {
  return Object.hasOwn(parameters, key) ? parameters[key] : undefined;
}

function resolve(
  template: string,
  values: ReadonlyMap<string, string>,
  isValid: (text: string) => boolean,
  what: string,
): string {
  let value: string;
  try {
    value = expandTemplate(template, values);
  } catch (error) {
    throw new Error(`error resolving value ${goQuote(shortValue(template))}: ${errorMessage(error)}`, { cause: error });
  }
  if (isValid(value)) return value;
  throw new Error(
    value === template
      ? `${goQuote(shortValue(template))} is not a valid ${what} name`
      : `${goQuote(shortValue(template))} resolved to ${goQuote(shortValue(value))} which is not a valid ${what} name`,
  );
}

/** A template names tokens that have no value here. */
class TemplateError extends Error {
  override readonly name = 'TemplateError';
}

/**
 * Expands `${token}` and `$token` in a template by the rules of Go's `os.Expand`, which class authors know. Values are
 * not expanded again.
 *
 * @throws {TemplateError} `invalid tokens: ["a" "b"]` with every token that `values` lacks.
 */
export function expandTemplate(template: string, values: Pick<ReadonlyMap<string, string>, 'get'>): string {
  const unknown = new Set<string>();
  let expanded = '';
  let at = 0;
  while (at < template.length) {
    const dollar = template.indexOf('$', at);
    if (dollar === -1 || dollar === template.length - 1) break;
    expanded += template.slice(at, dollar);
    const { token, length } = readToken(template, dollar + 1);
    if (token === undefined) {
      // Malformed braces vanish; a dollar sign before anything else stays.
      if (length === 0) expanded += '$';
    } else {
      const value = values.get(token);
      if (value === undefined) unknown.add(token);
      expanded += value ?? '';
    }
    at = dollar + 1 + length;
  }
  if (unknown.size > 0) {
    const tokens = [...unknown].sort(compareBytes).map((token) => goQuote(shortValue(token)));
    throw new TemplateError(`invalid tokens: [${tokens.join(' ')}]`);
  }
  return expanded + template.slice(at);
}

/** Reads what follows a dollar sign: the token, if any, and how many characters belong to it. */
function readToken(template: string, start: number): { token?: string; length: number } {
  const first = template.charAt(start);
  if (first === '{') {
    const end = template.indexOf('}', start);
    if (end === -1) return { length: 1 };
    if (end === start + 1) return { length: 2 };
    return { token: template.slice(start + 1, end), length: end - start + 1 };
  }
  if (/[*#$@!?\-0-9]/.test(first)) return { token: first, length: 1 };
  const word = /^\w+/.exec(template.slice(start))?.[0];
  return word === undefined ? { length: 0 } : { token: word, length: word.length };
}

const annotationToken = /^pvc\.annotations\['(.*)'\]$/s;

/**
 * The keys of the claim annotations that templates in the parameters of a class refer to, such as
 * `${pvc.annotations['team']}`.
 */
export function templateAnnotations(parameters: Record<string, string>): string[] {
  const keys: string[] = [];
  const values = {
    get: (token: string): string => {
      const key = annotationToken.exec(token)?.[1];
      if (key !== undefined) keys.push(key);
      return '';
    },
  };
  for (const template of Object.values(parameters)) expandTemplate(template, values);
  return keys;
}
