/**
 * Several test files in one process, each a suite of its own: what they import is loaded once, and hooks of a file are those of
 * its suite. They are loaded by `require`, since only what runs while a suite is made becomes part of it.
 */
import { createRequire } from 'node:module';
import path from 'node:path';
import { describe, test } from 'node:test';
import { withCpuReported } from './file-cpu.ts';

const root = path.join(import.meta.dirname, '../..');
const require = createRequire(import.meta.url);

/** @param files - relative to the root; none of them may await at its top level. */
export function runTogether(files: readonly string[]): void {
  for (const file of files) describe(file, () => withCpuReported(file, () => load(path.join(root, file))));
}

/** A suite that throws is no failed test, so that it would not count. */
function load(file: string): void {
  try {
    require(file);
  } catch (error) {
    test('can be loaded', () => {
      throw error;
    });
  }
}
