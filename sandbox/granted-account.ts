/** The rights of a program, as the manifest of its deployment grants them. */
import { readFile } from 'node:fs/promises';
import type { SandboxClient, SandboxObject } from './api/client.ts';
import { serviceAccountUser } from './api/authentication.ts';
import { StatusError } from './api/status-error.ts';

/** A service account. */
export interface Account {
  readonly namespace: string;
  readonly name: string;
}

/** What counts of a manifest, in the order in which it is created. */
const kinds = ['ServiceAccount', 'ClusterRole', 'Role', 'ClusterRoleBinding', 'RoleBinding'];
const inNamespaces = ['ServiceAccount', 'Role', 'RoleBinding'];
const rbac = 'rbac.authorization.k8s.io';
/** Where a manifest has no bindings. */
const ownAccount = 'provisioner';

/**
 * Creates the service account of a manifest with its roles and bindings; everything else in there is ignored. What has no namespace
 * goes to `default`. Roles without any binding are bound to an account of their own. Safe to repeat: what is there is replaced.
 *
 * @param file - path of the manifest, YAML.
 * @returns the account.
 * @throws when there is nothing that grants a right, or more than one account.
 */
export async function grantManifest(client: SandboxClient, file: string): Promise<Account> {
  const text = await readFile(file, 'utf8');
  try {
    return await grantObjects(client, text);
  } catch (error) {
    throw new Error(`the manifest ${file}: ${(error as Error).message}`, { cause: error });
  }
}

/** As `grantManifest`, with the text of the manifest. */
export async function grantObjects(client: SandboxClient, yaml: string): Promise<Account> {
  const objects = withBindings((await parseManifest(yaml)).map(placed));
  const account = accountOf(objects);
  const namespaces = [account, ...objects.map(({ metadata }) => metadata)].map(({ namespace }) => namespace);
  for (const name of new Set(namespaces)) if (name !== undefined) createNamespace(client, name);
  put(client, { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { ...account } });
  for (const kind of kinds) for (const object of objects) if (object.kind === kind) put(client, object);
  return account;
}

/** The name under which the API server knows it. */
export function userOf({ namespace, name }: Account): string {
  return serviceAccountUser(namespace, name).name;
}

/** Helm puts out documents that are empty. */
async function parseManifest(yaml: string): Promise<SandboxObject[]> {
  const { boolYaml11Tag, CORE_SCHEMA, loadAll, mergeTag } = await import('js-yaml'); // only where it is needed
  const schema = CORE_SCHEMA.withTags(boolYaml11Tag, mergeTag); // as kubectl reads it
  const documents = loadAll(yaml, { schema }) as (SandboxObject | null | undefined)[];
  const listed = documents.flatMap((each) => (each?.kind === 'List' ? (each['items'] as SandboxObject[]) : [each]));
  return listed.filter((each) => each != null).filter(({ kind = '' }) => kinds.includes(kind));
}

function placed(object: SandboxObject): SandboxObject {
  if (!inNamespaces.includes(object.kind ?? '')) return object;
  return { ...object, metadata: { ...object.metadata, namespace: object.metadata.namespace ?? 'default' } };
}

function withBindings(objects: readonly SandboxObject[]): readonly SandboxObject[] {
  if (objects.some(({ kind }) => kind?.endsWith('Binding') === true)) return objects;
  const roles = objects.filter(({ kind }) => kind?.endsWith('Role') === true);
  if (roles.length === 0) throw new Error('it has no Role, ClusterRole or binding, so it grants nothing');
  const subject = { kind: 'ServiceAccount', ...accountFor(objects) };
  return [
    ...objects,
    ...roles.map(({ kind = '', metadata: { name, namespace } }) => ({
      apiVersion: `${rbac}/v1`,
      kind: `${kind}Binding`,
      metadata: { name, ...(namespace !== undefined && { namespace }) },
      roleRef: { apiGroup: rbac, kind, name },
      subjects: [subject],
    })),
  ];
}

/** For roles without bindings: the account that is beside them, or one of its own. */
function accountFor(objects: readonly SandboxObject[]): Account {
  const [first] = objects.filter(({ kind }) => kind === 'ServiceAccount');
  const [role] = objects.filter(({ kind }) => kind === 'Role');
  const { namespace, name } = first?.metadata ?? { name: ownAccount, namespace: role?.metadata.namespace };
  return { namespace: namespace ?? 'default', name };
}

/** @throws when the bindings are not for exactly one account. */
function accountOf(objects: readonly SandboxObject[]): Account {
  const subjects = objects.flatMap(
    ({ subjects: of = [] }) => of as { kind?: string; namespace?: string; name: string }[],
  );
  const accounts = subjects
    .filter(({ kind }) => kind === 'ServiceAccount')
    .map(({ namespace, name }) => {
      if (namespace === undefined) throw new Error(`a binding names the service account ${name} without its namespace`);
      return { namespace, name };
    });
  const [first] = accounts;
  if (first === undefined) throw new Error('none of its bindings is for a service account');
  const names = new Set(accounts.map(({ namespace, name }) => `${namespace}/${name}`));
  if (names.size > 1) throw new Error(`its bindings are for several service accounts: ${[...names].join(', ')}`);
  return first;
}

function createNamespace(client: SandboxClient, name: string): void {
  const resource = { group: '', version: 'v1', plural: 'namespaces' };
  if (client.get(resource, { name }) === undefined) client.create(resource, { metadata: { name } });
}

function put(client: SandboxClient, object: SandboxObject): void {
  const { apiVersion = '', kind = '' } = object;
  const [version = '', group = ''] = apiVersion.split('/').reverse();
  const resource = { group, version, plural: `${kind.toLowerCase()}s` };
  try {
    client.create(resource, object);
  } catch (error) {
    if (!(error instanceof StatusError) || error.reason !== 'AlreadyExists') throw error;
    client.update(resource, object);
  }
}
