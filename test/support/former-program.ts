/** The sidecar from which users upgrade: the bundle of the last release. */
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';

const root = path.join(import.meta.dirname, '../..');
/** Bundles of releases: `dist/csi-provisioner.bundle.cjs` as `csi-provisioner-v1.2.3.cjs.gz`. */
const kept = path.join(root, 'test/releases');

export interface FormerProgram extends AsyncDisposable {
  /** Its words are separated by blanks. */
  command: string;
  /** What it is, for the output of a test. */
  title: string;
}

/**
 * `UPGRADE_FROM` names the command of another one. Until there is a release it is the bundle of these sources.
 *
 * @param current - the command of these sources.
 */
export async function formerProgram(current: string): Promise<FormerProgram> {
  const named = process.env['UPGRADE_FROM'];
  if (named !== undefined) return { command: named, title: named, [Symbol.asyncDispose]: () => Promise.resolve() };
  const file = await newest();
  if (file === undefined) {
    return {
      command: current,
      title: 'these sources, as there is no release yet',
      [Symbol.asyncDispose]: () => Promise.resolve(),
    };
  }
  const folder = await mkdtemp(path.join(tmpdir(), 'former-'));
  const program = path.join(folder, 'main.cjs');
  await writeFile(path.join(folder, 'bundle.cjs'), gunzipSync(await readFile(path.join(kept, file))));
  await writeFile(program, "void require('./bundle.cjs').main();\n");
  return {
    command: `${process.execPath} ${program}`,
    title: file,
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

async function newest(): Promise<string | undefined> {
  const files = await readdir(kept).catch(() => []);
  const order = new Intl.Collator('en', { numeric: true });
  return files
    .filter((name) => /^csi-provisioner-v[\d.]+\.cjs\.gz$/.test(name))
    .toSorted(order.compare)
    .at(-1);
}
