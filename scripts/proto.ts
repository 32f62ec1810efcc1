/**
 * Makes src/csi/generated from proto/csi.proto: the types that the sources and tests import, and those that they need; and
 * src/kube/protobuf/kubernetes-messages.ts from proto/kubernetes.proto.
 *
 *   node scripts/proto.ts           rewrites both
 *   node scripts/proto.ts --check   changes nothing; exits 1 and names the files that are stale, missing or imported by nobody
 */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs, promisify } from 'node:util';
import '@grpc/proto-loader'; // makes google/protobuf/*.proto known to protobufjs, so that imports need no files
import { format, resolveConfig } from 'prettier';
import protobuf from 'protobufjs';

const root = path.join(import.meta.dirname, '..');
const generated = path.join(root, 'src/csi/generated');
const messagesFile = path.join(root, 'src/kube/protobuf/kubernetes-messages.ts');
const generator = path.join(root, 'node_modules/@grpc/proto-loader/build/bin/proto-loader-gen-types.js');

/** The same choices as `csiMessageOptions`, in the generator's words; `defaults: false` is its default. */
const messageOptions = ['--keepCase', '--longs=String', '--enums=String', '--oneofs'];

async function generate(folder: string): Promise<void> {
  await promisify(execFile)(
    process.execPath,
    [
      generator,
      ...messageOptions,
      '--grpcLib=@grpc/grpc-js',
      '--importFileExtension=.ts',
      '--includeDirs=proto',
      `--outDir=${folder}`,
      'csi.proto',
    ],
    { cwd: root }, // the generator writes the proto's path relative to this into each file
  );
}

/** Text by path of every file below `folder`; empty when there is no such folder. */
async function readTree(folder: string): Promise<Map<string, string>> {
  const texts = new Map<string, string>();
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  });
  for (const entry of entries.filter((entry) => entry.isFile())) {
    const file = path.join(entry.parentPath, entry.name);
    texts.set(path.relative(folder, file), await readFile(file, 'utf8'));
  }
  return texts;
}

/** Folders whose files may import generated types. */
const importers = ['src', 'sandbox', 'test', 'bench', 'scripts', 'provisioners'];

/** Files below `generated` that somebody imports, as paths relative to it. */
async function importedFiles(): Promise<string[]> {
  const found = new Set<string>();
  for (const folder of importers) {
    for (const [file, text] of await readTree(path.join(root, folder))) {
      if (!file.endsWith('.ts') || path.join(root, folder, file).startsWith(generated + path.sep)) continue;
      for (const [, imported] of text.matchAll(/from '[./]+(?:\/[\w-]+)*\/generated\/([^']+)'/g))
        found.add(imported ?? '');
    }
  }
  return [...found];
}

/** The files of `all` that are named, and those that they import. */
function withImports(all: ReadonlyMap<string, string>, names: readonly string[]): Map<string, string> {
  const kept = new Map<string, string>();
  const open = [...names];
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    const text = all.get(name);
    if (text === undefined || kept.has(name)) continue;
    kept.set(name, text);
    for (const [, imported] of text.matchAll(/from '(\.[^']+)'/g))
      open.push(path.join(path.dirname(name), imported ?? ''));
  }
  return kept;
}

/** Replaces the contents of `folder`. */
async function writeTree(folder: string, files: ReadonlyMap<string, string>): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  for (const [name, text] of files) {
    await mkdir(path.dirname(path.join(folder, name)), { recursive: true });
    await writeFile(path.join(folder, name), text);
  }
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { check: { type: 'boolean', default: false } } });
  const fresh = await mkdtemp(path.join(tmpdir(), 'csi-proto-'));
  try {
    await generate(fresh);
    const want = withImports(await readTree(fresh), await importedFiles());
    const messages = await kubernetesMessages(messagesFile);
    if (!values.check) {
      await writeTree(generated, want);
      await writeFile(messagesFile, messages);
      return;
    }
    const have = await readTree(generated);
    const stale = [...new Set([...want.keys(), ...have.keys()])].filter((file) => want.get(file) !== have.get(file));
    const found = stale.sort().map((file) => path.join('src/csi/generated', file));
    if ((await readFile(messagesFile, 'utf8')) !== messages) found.push(path.relative(root, messagesFile));
    for (const file of found) console.error(`stale: ${file}`);
    if (found.length > 0) {
      console.error('Run: node scripts/proto.ts');
      process.exitCode = 1;
    }
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
}

/** The table of messages in proto/kubernetes.proto, as the text of the source file `file`. */
async function kubernetesMessages(file: string): Promise<string> {
  const root = new protobuf.Root();
  root.loadSync(path.join(import.meta.dirname, '../proto/kubernetes.proto'), { keepCase: true });
  root.resolveAll();
  const messages = (root.lookup('k8s') as protobuf.Namespace).nestedArray
    .filter((object) => object instanceof protobuf.Type)
    .map(({ name, fieldsArray }) => `${name}: ${JSON.stringify(fieldsArray.map(row))},`);
  const text = `// Generated from proto/kubernetes.proto: node scripts/proto.ts

/** Messages of the Kubernetes API by name, each field as number, name in JSON, type, and when it is there. */
export const kubernetesMessages = {
  ${messages.join('\n  ')}
} as const;
`;
  return await format(text, { ...(await resolveConfig(file)), filepath: file });
}

function row(field: protobuf.Field): [id: number, name: string, type: string, fill: string] {
  return [field.id, field.name, field.type, fill(field)];
}

function fill({ map, repeated, options }: protobuf.Field): string {
  if (map) return 'map';
  if (options?.['(json_inline)'] === true) return 'inline';
  const nullable = options?.['(json_null)'] === true;
  if (repeated) return nullable ? 'nullable list' : 'list';
  if (nullable) return 'nullable';
  return options?.['proto3_optional'] === true ? 'sent' : 'nonempty';
}

await main();
