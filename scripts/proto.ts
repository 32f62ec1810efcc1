/**
 * Makes src/csi/generated from proto/csi.proto.
 *
 *   node scripts/proto.ts           rewrites the folder
 *   node scripts/proto.ts --check   changes nothing; exits 1 and names the files that are stale, missing or left over
 */
import { execFile } from 'node:child_process';
import { cp, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs, promisify } from 'node:util';

const root = path.join(import.meta.dirname, '..');
const generated = path.join(root, 'src/csi/generated');
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

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { check: { type: 'boolean', default: false } } });
  const fresh = await mkdtemp(path.join(tmpdir(), 'csi-proto-'));
  try {
    await generate(fresh);
    if (!values.check) {
      await rm(generated, { recursive: true, force: true });
      await cp(fresh, generated, { recursive: true });
      return;
    }
    const want = await readTree(fresh);
    const have = await readTree(generated);
    const stale = [...new Set([...want.keys(), ...have.keys()])].filter((file) => want.get(file) !== have.get(file));
    for (const file of stale.sort()) console.error(`stale: src/csi/generated/${file}`);
    if (stale.length > 0) {
      console.error('Run: node scripts/proto.ts');
      process.exitCode = 1;
    }
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
}

await main();
