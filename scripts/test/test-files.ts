import { glob } from 'node:fs/promises';

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
