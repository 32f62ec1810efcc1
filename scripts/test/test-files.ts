import { glob } from 'node:fs/promises';

/** @returns paths relative to `root`, sorted. */
export async function allTests(root: string): Promise<string[]> {
  return await matching(root, 'test/{unit,integration,sandbox}/**/*.test.ts', 'test/e2e/*.test.ts');
}

/** Without the model check, which takes longer than all others together. */
export async function quickUnitTests(root: string): Promise<string[]> {
  const files = await matching(root, 'test/unit/**/*.test.ts');
  return files.filter((file) => !/\/model(-guards)?\.test\.ts$/.test(file));
}

async function matching(root: string, ...patterns: string[]): Promise<string[]> {
  const files: string[] = [];
  for await (const file of glob(patterns, { cwd: root })) files.push(file);
  return files.toSorted();
}
