/** Kubeconfig files, one or several that are merged (Kubernetes page "Organizing Cluster Access Using kubeconfig Files"). */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { KubeConfig } from '@kubernetes/client-node';
import { boolYaml11Tag, CORE_SCHEMA, load, mergeTag } from 'js-yaml';
import { KubeConfigError } from './kube-config-error.ts';

/** A cluster or user as it is written: client-node ignores some of the fields. */
export interface RawEntry<Fields> {
  readonly fields: Partial<Fields>;
  /** The file that it is in; its relative paths start at the folder of that file. */
  readonly file: string;
}

/** What the files say together: of each name, the first file that has it. */
export interface KubeconfigFiles {
  readonly config: KubeConfig;
  /** The files that exist, for messages. */
  readonly names: string;
  /** The entry of `config` with that name; empty where there is none. */
  readonly raw: <Fields>(list: 'clusters' | 'users', name: string | undefined) => RawEntry<Fields>;
}

interface ParsedFile {
  readonly file: string;
  readonly config: KubeConfig;
  readonly text: { clusters?: RawItem[]; users?: RawItem[] } | null | undefined;
}

/** YAML as Go programs read it: with merged maps, yes and no; of a key that is there twice the last one counts. */
const yamlOfGo = { schema: CORE_SCHEMA.withTags(mergeTag, boolYaml11Tag), json: true };

interface RawItem {
  name?: string;
  cluster?: object | null;
  user?: object | null;
}

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
  const config = new KubeConfig();
  config.loadFromOptions({
    clusters: firstOfEachName(parsed.flatMap((file) => file.config.clusters)),
    contexts: firstOfEachName(parsed.flatMap((file) => file.config.contexts)),
    users: firstOfEachName(parsed.flatMap((file) => file.config.users)),
    currentContext: parsed.map((file) => file.config.currentContext).find(Boolean),
  });
  return {
    config,
    names: parsed.map(({ file }) => file).join(path.delimiter),
    raw: (list, name) => rawEntry(parsed, list, name),
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
  const config = new KubeConfig();
  config.loadFromOptions({ clusters: [], contexts: [], users: [] });
  try {
    if (text.trim() === '') return { file, config, text: undefined };
    const parsed = load(text, yamlOfGo) as ParsedFile['text'];
    config.loadFromString(JSON.stringify(parsed));
    config.makePathsAbsolute(path.dirname(file));
    return { file, config, text: parsed };
  } catch (error) {
    throw new KubeConfigError(`error loading config file ${JSON.stringify(file)}: ${(error as Error).message}`, {
      cure: 'Correct the file: "kubectl config view --kubeconfig FILE" reads it, too',
      cause: error,
    });
  }
}

function firstOfEachName<Item extends { name: string }>(items: readonly Item[]): Item[] {
  return [...new Map(items.toReversed().map((item) => [item.name, item])).values()].toReversed();
}

function rawEntry<Fields>(
  parsed: readonly ParsedFile[],
  list: 'clusters' | 'users',
  name: string | undefined,
): RawEntry<Fields> {
  for (const { file, text } of parsed) {
    const item = text?.[list]?.find((entry) => entry.name === name);
    if (item !== undefined) return { file, fields: (list === 'users' ? item.user : item.cluster) ?? {} };
  }
  return { file: parsed[0]?.file ?? '', fields: {} };
}
