/** The objects in files, folders and standard input, as `kubectl apply -f` takes them. */
import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { boolYaml11Tag, CORE_SCHEMA, loadAll, mergeTag, YAMLException } from 'js-yaml';
import { shellWord } from '../../base/shell-word.ts';
import { shortValue } from '../../base/short-value.ts';
import type { TextInput } from '../subcommand-call.ts';
import { Fields, isMap, type Manifest, ManifestError, type ManifestPlace } from './manifest.ts';

/** A larger file is hardly a driver's manifest, in bytes. */
const maxBytes = 256 * 1024 * 1024;
const suffixes = ['.yaml', '.yml', '.json'];

export interface ReadManifests {
  /** Of two objects of one name the later one alone: the one that kubectl leaves in the cluster. */
  manifests: Manifest[];
  /** What was left out, and why. */
  notes: string[];
}

interface ReadOptions {
  /** Whether folders are searched with all that are in them. */
  recursive: boolean;
  stdin: TextInput;
}

interface GivenFile {
  name: string;
  /** It was found in a folder: it may be something else than a manifest. */
  isFound: boolean;
}

/** @param names - files, folders, and `-` for standard input. @throws {ManifestError} for one that cannot be read. */
export async function readManifests(names: readonly string[], options: ReadOptions): Promise<ReadManifests> {
  const notes: string[] = [];
  const manifests: Manifest[] = [];
  for (const file of await allFiles(names, options)) {
    if (file.isFound && isKustomization(file.name)) {
      notes.push(`${file.name} is not applied here. To check what it makes: ${renderCommand(path.dirname(file.name))}`);
      continue;
    }
    const text = file.name === '-' ? await inputText(options.stdin) : await fileText(file.name);
    manifests.push(...objectsIn(text, file, notes));
  }
  return { manifests: lastOfEachName(manifests, notes), notes };
}

async function allFiles(names: readonly string[], options: ReadOptions): Promise<GivenFile[]> {
  const files: GivenFile[] = [];
  for (const name of names) {
    if (name === '-' || !(await isFolder(name))) files.push({ name, isFound: false });
    else files.push(...(await filesIn(name, options)).map((found) => ({ name: found, isFound: true })));
  }
  return [...new Map(files.map((file) => [file.name, file])).values()];
}

async function isFolder(name: string): Promise<boolean> {
  try {
    return (await stat(name)).isDirectory();
  } catch (error) {
    throw fileError(name, error);
  }
}

/** In the order of their names, as kubectl takes them. */
async function filesIn(folder: string, { recursive }: ReadOptions): Promise<string[]> {
  const entries = await readdir(folder, { recursive, withFileTypes: true }).catch((error: unknown) => {
    throw fileError(folder, error);
  });
  const found = entries
    .filter((entry) => !entry.isDirectory() && suffixes.includes(path.extname(entry.name)))
    .map((entry) => path.join(entry.parentPath, entry.name))
    .toSorted();
  if (found.length > 0) return found;
  const cure = recursive ? '' : '. Folders in it are searched with --recursive';
  throw new ManifestError(`${folder}: the folder has no file that ends in ${suffixes.join(', ')}${cure}`);
}

async function fileText(name: string): Promise<string> {
  try {
    const { size } = await stat(name);
    if (size > maxBytes)
      throw new ManifestError(`${name}: larger than ${maxBytes / 1024 / 1024} MiB: give fewer objects`);
    return decoded(await readFile(name), name);
  } catch (error) {
    throw error instanceof ManifestError ? error : fileError(name, error);
  }
}

async function inputText(stdin: TextInput): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stdin) {
    const bytes = Buffer.from(chunk);
    size += bytes.length;
    if (size > maxBytes) throw new ManifestError(`standard input: larger than ${maxBytes / 1024 / 1024} MiB`);
    chunks.push(bytes);
  }
  return decoded(Buffer.concat(chunks), '-');
}

function decoded(bytes: Buffer, name: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new ManifestError(`${shownName(name)}: it is not a text in UTF-8`);
  }
}

function objectsIn(text: string, { name, isFound }: GivenFile, notes: string[]): Manifest[] {
  const file = shownName(name);
  const manifests: Manifest[] = [];
  for (const [index, value] of parseDocuments(text, file).entries()) {
    if (value === null || value === undefined) continue;
    const place = { file, document: index + 1 };
    if (isFound && !isObject(value)) notes.push(`${placeText(place)} is no Kubernetes object, and is not read`);
    else manifests.push(...listed(value, place));
  }
  return manifests;
}

function isObject(value: unknown): boolean {
  return isMap(value) && typeof value['kind'] === 'string' && typeof value['apiVersion'] === 'string';
}

/** The object, or those of a list; lists may be in lists. */
function listed(value: unknown, place: ManifestPlace): Manifest[] {
  const fields = new Fields(value, { object: placeText(place) });
  const kind = fields.text('kind');
  const apiVersion = fields.text('apiVersion');
  if (kind === undefined || apiVersion === undefined) {
    const missing = kind === undefined ? 'kind' : 'apiVersion';
    throw fields.problem(missing, `is missing, so it is no Kubernetes object. Give manifests as for kubectl apply -f`);
  }
  if (kind === 'Kustomization' && apiVersion.startsWith('kustomize.config.k8s.io/')) {
    throw new ManifestError(
      `${placeText(place)}: it is a kustomization. Render it: ${renderCommand(path.dirname(place.file))}`,
    );
  }
  if (isMap(value) && kind.endsWith('List') && Array.isArray(value['items'])) {
    return value['items'].flatMap((item: unknown) => listed(withKind(item, { kind, apiVersion }), place));
  }
  return [manifestOf(value, { kind, apiVersion, place })];
}

/** In lists of one kind the items may be without theirs. */
function withKind(item: unknown, { kind, apiVersion }: { kind: string; apiVersion: string }): unknown {
  const own = kind.slice(0, -'List'.length);
  return isMap(item) && own !== '' ? { kind: own, apiVersion, ...item } : item;
}

function manifestOf(
  value: unknown,
  { kind, apiVersion, place }: { kind: string; apiVersion: string; place: ManifestPlace },
): Manifest {
  const plain = new Fields(value, { object: `${placeText(place)} (${kind})` });
  const metadata = plain.part('metadata');
  const name = metadata?.text('name') ?? metadata?.text('generateName') ?? '';
  const namespace = metadata?.text('namespace') || undefined;
  const named = namespace === undefined ? name : `${namespace}/${name}`;
  const fields = new Fields(value, { object: `${placeText(place)} (${kind} ${shortValue(named)})` });
  const slash = apiVersion.indexOf('/');
  return { place, kind, group: slash < 0 ? '' : apiVersion.slice(0, slash), name, namespace, fields };
}

function lastOfEachName(manifests: readonly Manifest[], notes: string[]): Manifest[] {
  const last = new Map<string, Manifest>();
  for (const manifest of manifests) {
    const { kind, group, name, namespace = '' } = manifest;
    const key = JSON.stringify([group, kind, namespace, name]);
    const earlier = last.get(key);
    if (earlier !== undefined && name !== '') {
      notes.push(
        `${kind} ${name} is in ${placeText(earlier.place)} and in ${placeText(manifest.place)}: the latter counts`,
      );
    }
    last.set(name === '' ? JSON.stringify([key, last.size]) : key, manifest);
  }
  return [...last.values()];
}

function isKustomization(name: string): boolean {
  return /^kustomization\.ya?ml$/.test(path.basename(name));
}

function renderCommand(folder: string): string {
  return `kubectl kustomize ${shellWord(folder) ?? 'FOLDER'} | csi-provisioner preflight -`;
}

function shownName(name: string): string {
  return name === '-' ? 'standard input' : name;
}

function placeText({ file, document }: ManifestPlace): string {
  return `${file}, document ${document}`;
}

function fileError(name: string, error: unknown): ManifestError {
  const { code = '', message } = error as NodeJS.ErrnoException;
  const reasons: Readonly<Record<string, string>> = {
    ENOENT: 'there is no such file or folder',
    EACCES: 'there is no permission to read it',
  };
  return new ManifestError(`${name}: ${reasons[code] ?? message}`, { cause: error });
}

/** YAML 1.2 with what the YAML of Kubernetes has besides: merged maps, and yes and no. */
const schema = CORE_SCHEMA.withTags(mergeTag, boolYaml11Tag);

/** A template that happens to be YAML. */
const ofChart = /\{\{-?[^}]*\.(?:Values|Release)\b/;
const template = /\{\{[^}]*\}\}/;

/**
 * The documents of a text in YAML or JSON, as kubectl reads them; null for an empty one.
 *
 * @param file - its name, for errors.
 * @throws {ManifestError} which never shows the text itself: it may hold a secret.
 */
export function parseDocuments(text: string, file: string): unknown[] {
  if (ofChart.test(text)) throw templateError(file);
  const json = text.trimStart().startsWith('{') ? parsedJson(text) : undefined;
  if (json !== undefined) return [json];
  try {
    return loadTolerantly(text);
  } catch (error) {
    throw unreadable(text, file, error);
  }
}

/** Max number of lines that are indented further. */
const maxMended = 200;

/**
 * YAML wants the lines of a map or list in brackets further to the right than what they belong to; kubectl does not, and drivers
 * have published such lines.
 */
function loadTolerantly(text: string): unknown[] {
  const lines = text.split('\n');
  let first: unknown;
  for (let mended = 0; ; mended += 1) {
    try {
      return loadAll(lines.join('\n'), { schema });
    } catch (error) {
      first ??= error;
      const line = shallowLine(error);
      if (line === undefined || lines[line] === undefined || mended === maxMended) throw first;
      lines[line] = `${' '.repeat(80)}${lines[line]}`;
    }
  }
}

function shallowLine(error: unknown): number | undefined {
  const isShallow = error instanceof YAMLException && error.reason === 'deficient indentation';
  return isShallow ? error.mark?.line : undefined;
}

/** JSON may be indented with tabs, and hold characters that YAML forbids. */
function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function unreadable(text: string, file: string, error: unknown): ManifestError {
  if (template.test(text)) return templateError(file);
  if (!(error instanceof YAMLException)) {
    const why = error instanceof RangeError ? 'it is nested too deeply' : 'its structure cannot be followed';
    return new ManifestError(`${file}: it cannot be read as YAML: ${why}. Correct the file`);
  }
  const line = error.mark?.line;
  const place = line === undefined ? '' : `, line ${line + 1}, document ${documentAt(text, line)}`;
  const cure = 'Correct the file; kubectl apply --dry-run=client -f FILE reads it, too';
  return new ManifestError(`${file}${place}: it is neither YAML nor JSON: ${reasonOf(error)}. ${cure}`);
}

/** What the parser says, without words of the text: one could be a secret. The error has the whole text, so it is no cause of ours. */
function reasonOf({ reason }: YAMLException): string {
  return reason.replaceAll(/"[^"]*"|'[^']*'|<[^>]*>/g, '…');
}

function templateError(file: string): ManifestError {
  return new ManifestError(
    `${file}: it is a template of a Helm chart, not a manifest. Render the chart: helm template NAME CHART | csi-provisioner preflight -`,
  );
}

/** Number of the document that a line is in, from 1. */
function documentAt(text: string, line: number): number {
  const before = text.split('\n').slice(0, line + 1);
  const starts = before.flatMap((each, index) => (/^---(\s|$)/.test(each) ? [index] : []));
  const [first] = starts;
  const isExplicit = first !== undefined && before.slice(0, first).every((each) => /^\s*(#|$)/.test(each));
  return Math.max(1, starts.length + (isExplicit ? 0 : 1));
}
