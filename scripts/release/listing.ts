import { createHash } from 'node:crypto';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { provenanceStatement } from './provenance.ts';
import type { Release } from './release-of.ts';

/** A file of the release. */
export interface ReleasedFile {
  readonly name: string;
  readonly bytes: number;
  /** In hexadecimal. */
  readonly sha256: string;
}

/** Writes release notes, statement and checksums, and prints what there is. */
export async function finishRelease(release: Release): Promise<void> {
  const { output, notes, missing } = release;
  await writeFile(path.join(output, 'release-notes.md'), notes);
  const statement = provenanceStatement(release, await releasedFiles(output));
  await writeFile(path.join(output, 'provenance.json'), `${JSON.stringify(statement, null, 2)}\n`);
  const files = await releasedFiles(output);
  const sums = files.map(({ name, sha256 }) => `${sha256}  ${name}\n`);
  await writeFile(path.join(output, 'SHA256SUMS'), sums.join(''));
  printListing([...files, ...(await releasedFiles(output)).filter(({ name }) => name === 'SHA256SUMS')]);
  printMissing(missing);
}

async function releasedFiles(folder: string): Promise<ReleasedFile[]> {
  const names = (await readdir(folder)).toSorted();
  return await Promise.all(
    names.map(async (name) => {
      const content = await readFile(path.join(folder, name));
      return { name, bytes: content.length, sha256: createHash('sha256').update(content).digest('hex') };
    }),
  );
}

function printListing(files: readonly ReleasedFile[]): void {
  const width = Math.max(...files.map(({ name }) => name.length));
  console.log('\nMade:');
  for (const { name, bytes, sha256 } of files) {
    console.log(`  ${name.padEnd(width)} ${String(bytes).padStart(11)}  ${sha256}`);
  }
}

/** What the workflow does after this, which needs its identity: the same in every run. */
const whenPublishing = [
  'signatures of images and checksums (cosign keyless: the workflow’s identity)',
  'signed provenance (SLSA; provenance.json is its unsigned form), and npm’s own',
  'the scan for known vulnerabilities, whose database is downloaded',
  'publishing itself: images, npm, the release with its files',
];

function printMissing(missing: readonly string[]): void {
  console.log(missing.length === 0 ? '\nEverything could be made here.' : '\nNot made here, or not as published:');
  for (const each of missing) console.log(`  ${each}`);
  console.log('\nOnly when publishing, in .github/workflows/release.yml:');
  for (const each of whenPublishing) console.log(`  ${each}`);
}
