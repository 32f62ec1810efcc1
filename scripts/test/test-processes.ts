import { createHash } from 'node:crypto';
import { glob, mkdir, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { ownProcess, takeLong } from './own-process.ts';

/** How many files share a process: so few that the last processes of a run end at about the same time. */
const groupSize = 15;

const groupsFolder = '.cache/test-groups';

/**
 * The processes of a run, in the order of their start: first those that take long, so that none is left alone at the end.
 *
 * @param files - relative to `root`.
 * @returns the file that each process is to run: a test file, or one that runs a group of them.
 */
export async function planProcesses(root: string, files: readonly string[]): Promise<string[]> {
  const folder = path.join(root, groupsFolder);
  await mkdir(folder, { recursive: true });
  const long = takeLong.filter((file) => files.includes(file));
  const alone = files.filter((file) => !takeLong.includes(file) && needsOwnProcess(file));
  const together = files.filter((file) => !takeLong.includes(file) && !needsOwnProcess(file));
  const groups = chunks(together).map(async (group) => await writeGroup(folder, group));
  return [...long, ...(await Promise.all(groups)), ...alone].map((file) => path.join(root, file));
}

function needsOwnProcess(file: string): boolean {
  return file.startsWith('test/e2e/') || Object.hasOwn(ownProcess, file);
}

function chunks(files: readonly string[]): string[][] {
  const count = Math.ceil(files.length / groupSize);
  return Array.from({ length: count }, (_, index) => files.slice(index * groupSize, (index + 1) * groupSize));
}

/** @returns the path relative to the root; named for its content, since several runs may write at the same time. */
async function writeGroup(folder: string, files: readonly string[]): Promise<string> {
  const text = `import { runTogether } from '../../test/support/test-group.ts';\nrunTogether(${JSON.stringify(files, undefined, 2)});\n`;
  const name = `${createHash('sha256').update(text).digest('hex').slice(0, 16)}.mjs`;
  const draft = path.join(folder, `${process.pid}-${name}`);
  await writeFile(draft, text);
  await rename(draft, path.join(folder, name));
  return path.join(groupsFolder, name);
}

/** What `npm test` runs without arguments. */
export const defaultFolders: readonly string[] = ['test/unit', 'test/integration', 'test/sandbox'];

/**
 * @param paths - of folders and test files, relative to `root`.
 * @returns paths relative to `root`, sorted.
 * @throws when there is no test file in one of them.
 */
export async function testsOf(root: string, paths: readonly string[]): Promise<string[]> {
  const files = await Promise.all(
    paths.map((each) => matching(root, each.endsWith('.test.ts') ? each : `${each}/**/*.test.ts`)),
  );
  const empty = paths.find((_, index) => files[index]?.length === 0);
  if (empty !== undefined) throw new Error(`no test files (*.test.ts) in ${empty}`);
  return [...new Set(files.flat())].toSorted();
}

/** Without the model check, which takes longer than all others together. */
export async function quickUnitTests(root: string): Promise<string[]> {
  const files = await matching(root, 'test/unit/**/*.test.ts');
  return files.filter((file) => !/\/model(-guards)?\.test\.ts$/.test(file));
}

async function matching(root: string, pattern: string): Promise<string[]> {
  const files: string[] = [];
  for await (const file of glob(pattern, { cwd: root })) files.push(file);
  return files.toSorted();
}
