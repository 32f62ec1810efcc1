import type { ReleasedFile } from './listing.ts';
import type { Release } from './release-of.ts';

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
