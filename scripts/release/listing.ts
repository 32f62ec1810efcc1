import { createHash } from 'node:crypto';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
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

/** The step of the workflow that runs this script: what makes the files, wherever it runs. */
const workflow = '.github/workflows/release.yml';

/**
 * Who made the files, of what: an in-toto statement with SLSA provenance (https://slsa.dev/spec/v1.0/provenance), unsigned. It names no
 * builder, since only a signature shows who it was.
 */
export function provenanceStatement(release: Release, files: readonly ReleasedFile[]): object {
  const { home, version, commit } = release;
  return {
    _type: 'https://in-toto.io/Statement/v1',
    subject: files.map(({ name, sha256 }) => ({ name, digest: { sha256 } })),
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: `${home}/blob/${version}/docs/releasing.md`,
        externalParameters: { workflow, ref: `refs/tags/${version}` },
        resolvedDependencies: [{ uri: `git+${home}@refs/tags/${version}`, digest: { gitCommit: commit } }],
      },
    },
  };
}
