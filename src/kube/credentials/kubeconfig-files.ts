/** Kubeconfig files, one or several that are merged (Kubernetes page "Organizing Cluster Access Using kubeconfig Files"). */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { boolYaml11Tag, CORE_SCHEMA, load, mergeTag } from 'js-yaml';

/** `clusters[].cluster` of a kubeconfig. Paths are absolute. */
export interface Cluster {
  server: string;
  'certificate-authority'?: string;
  'certificate-authority-data'?: string;
  'insecure-skip-tls-verify'?: boolean;
  'tls-server-name'?: string;
  'proxy-url'?: string;
  'disable-compression'?: boolean;
}

/** `users[].user` of a kubeconfig. Paths are absolute. */
export interface User {
  token?: string;
  tokenFile?: string;
  username?: string;
  password?: string;
  'client-certificate'?: string;
  'client-certificate-data'?: string;
  'client-key'?: string;
  'client-key-data'?: string;
  as?: string;
  'as-groups'?: string[];
  'as-uid'?: string;
  'as-user-extra'?: Record<string, string[]>;
  exec?: ExecPluginConfig | null;
  'auth-provider'?: AuthProvider | null;
}

/** `users[].user.exec` of a kubeconfig. */
export interface ExecPluginConfig {
  apiVersion?: string | null;
  /** A name looked up in the path, or a file; a relative file is already made absolute. */
  command?: string | null;
  args?: string[] | null;
  env?: { name: string; value: string }[] | null;
  interactiveMode?: string | null;
  provideClusterInfo?: boolean | null;
  /** Shown when the program is not installed. */
  installHint?: string | null;
}

interface AuthProvider {
  name?: string;
  config?: Record<string, string> | null;
}

/** `contexts[].context` of a kubeconfig. */
interface Context {
  cluster: string;
  user?: string;
  namespace?: string;
}

/** An entry of a list, with the file that it is in. */
export interface Entry<Fields> {
  readonly name: string;
  readonly fields: Fields;
  readonly file: string;
}

/** What the files say together: of each name, the first file that has it. */
interface KubeconfigFiles {
  readonly clusters: ReadonlyMap<string, Entry<Cluster>>;
  readonly users: ReadonlyMap<string, Entry<User>>;
  readonly contexts: ReadonlyMap<string, Entry<Context>>;
  readonly currentContext: string | undefined;
  /** The files that exist, for messages. */
  readonly names: string;
}

type ParsedFile = Pick<KubeconfigFiles, 'clusters' | 'users' | 'contexts' | 'currentContext'> & { file: string };

/** YAML as Go programs read it: with merged maps, yes and no; of a key that is there twice the last one counts. */
const yamlOfGo = { schema: CORE_SCHEMA.withTags(mergeTag, boolYaml11Tag), json: true };

/** The paths in a variable like `KUBECONFIG`, each once; none where it is empty. */
export function listedFiles(variable: string | undefined): string[] {
  return [...new Set((variable ?? '').split(path.delimiter).filter((file) => file !== ''))];
}

/**
 * Reads and merges the files as kubectl does: missing ones are skipped, and the first that has a name or a current context
 * decides.
 *
 * @throws {KubeConfigError} when none exists, or one cannot be read.
 */
export function readKubeconfig(files: readonly string[]): KubeconfigFiles {
  const parsed = files.map(parse).filter((file) => file !== undefined);
  if (parsed.length === 0) {
    const cure = 'Correct the path of the kubeconfig file';
    throw new KubeConfigError(`stat ${files.join(path.delimiter)}: no such file or directory`, { cure });
  }
  return {
    clusters: firstOfEachName(parsed.flatMap(({ clusters }) => [...clusters.values()])),
    users: firstOfEachName(parsed.flatMap(({ users }) => [...users.values()])),
    contexts: firstOfEachName(parsed.flatMap(({ contexts }) => [...contexts.values()])),
    currentContext: parsed.map(({ currentContext }) => currentContext).find(Boolean),
    names: parsed.map(({ file }) => file).join(path.delimiter),
  };
}

/** Undefined where the file does not exist. */
function parse(file: string): ParsedFile | undefined {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    throw new KubeConfigError(`stat ${file}: ${message}`, {
      cure: 'Correct the path of the kubeconfig file, or the permissions to read it',
      cause: error,
    });
  }
  try {
    const content = (text.trim() === '' ? null : load(text, yamlOfGo)) as Record<string, unknown> | null;
    const folder = path.dirname(file);
    const clusters = entries<Cluster>(file, 'clusters', 'cluster', content?.['clusters'], ['server']);
    const users = entries<User>(file, 'users', 'user', content?.['users']);
    const contexts = entries<Context>(file, 'contexts', 'context', content?.['contexts'], ['cluster']);
    for (const { fields } of clusters.values()) {
      fields.server = fields.server.replace(/\/$/, '');
      resolvePaths(folder, fields, ['certificate-authority']);
    }
    for (const { fields } of users.values()) {
      resolvePaths(folder, fields, ['client-certificate', 'client-key', 'tokenFile']);
      if (fields.exec?.command?.includes('/') === true) resolvePaths(folder, fields.exec, ['command']);
    }
    return { file, clusters, users, contexts, currentContext: content?.['current-context'] as string | undefined };
  } catch (error) {
    throw new KubeConfigError(`error loading config file ${JSON.stringify(file)}: ${(error as Error).message}`, {
      cure: 'Correct the file: "kubectl config view --kubeconfig FILE" reads it, too',
      cause: error,
    });
  }
}

/** @throws {Error} when an entry has no name, or not the fields that it must have. */
function entries<Fields extends object>(
  file: string,
  list: string,
  field: string,
  value: unknown,
  needed: readonly (keyof Fields & string)[] = [],
): Map<string, Entry<Fields>> {
  const items = Array.isArray(value) ? (value as Record<string, unknown>[]) : [];
  const found = items.map((item, index): Entry<Fields> => {
    const { name } = item as { name?: string };
    const fields = (item[field] ?? {}) as Fields;
    if (!name) throw new Error(`${list}[${index}].name is missing`);
    for (const key of needed) if (!fields[key]) throw new Error(`${list}[${index}].${field}.${key} is missing`);
    return { name, fields: { ...fields }, file };
  });
  return firstOfEachName(found);
}

function firstOfEachName<Item extends { name: string }>(items: readonly Item[]): Map<string, Item> {
  const found = new Map<string, Item>();
  for (const item of items) if (!found.has(item.name)) found.set(item.name, item);
  return found;
}

function resolvePaths<Fields extends object>(
  folder: string,
  fields: Fields,
  keys: readonly (keyof Fields & string)[],
): void {
  for (const key of keys) if (fields[key]) Object.assign(fields, { [key]: path.resolve(folder, String(fields[key])) });
}

/** The configuration cannot be used; the message names the file, the variable or the field. */
export class KubeConfigError extends Error {
  override readonly name = 'KubeConfigError';
  /** What to do about it, as a sentence. */
  readonly cure: string;

  constructor(message: string, options: { cure: string; cause?: unknown }) {
    super(message, { cause: options.cause });
    this.cure = options.cure;
  }

  /** The same error with the cure in its message, for where only the message is shown. */
  withCure(): KubeConfigError {
    return new KubeConfigError(`${this.message}. ${this.cure}`, { cure: this.cure, cause: this });
  }
}
