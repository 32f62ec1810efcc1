/** From class parameters to the name of a Secret (Kubernetes CSI documentation, "Secrets & Credentials"). */
import type { Logger } from '../../base/logger.ts';
import { isLabelName, isSubdomainName } from '../../kube/kube-object.ts';
import type { SecretReference } from '../../provision/objects.ts';
import { reservedPrefix, warnDeprecated } from '../create/class-parameters.ts';
import { errorMessage } from '../error-message.ts';
import { goQuote } from '../../base/go-quote.ts';
import { shortValue } from '../../base/short-value.ts';
import { expandTemplate } from './secret-template.ts';

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
export interface TemplateContext {
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
