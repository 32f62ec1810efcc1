/**
 * `npm run release -- --dry-run`: everything of a release but publishing it, into one folder: programs, images, charts, the npm package,
 * the kubectl plugin with its krew manifest, bills of materials, release notes, a provenance statement, checksums. It ends with a list of
 * them, and of what could not be made here, with the reason. Two runs of the same commit make the same bytes.
 *
 * .github/workflows/release.yml runs the very same and then signs and publishes what is in the folder: docs/releasing.md.
 */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { addBundles, addCharts, addKubectlPlugin, addNpmPackage } from './release/programs.ts';
import { addImages } from './release/images.ts';
import { finishRelease } from './release/listing.ts';
import { RefusedRelease, type Release, releaseOf } from './release/release-of.ts';
import { scriptCommand } from './script-command.ts';

const options = scriptCommand('npm run release --', 'Makes everything of a release but publishes nothing.')
  .option('--dry-run', 'needed: only the workflow publishes')
  .option('--version <vX.Y.Z>', 'default: the tag of this commit')
  .option(
    '--unreleased',
    'takes the version of package.json and the notes under "Unreleased", to try a release before it is due',
  )
  .option('--output <DIR>', 'default: dist/release; what is there is removed', 'dist/release')
  .option(
    '--local-bases',
    'images on base images made of this machine’s Node.js and of Debian packages, where no registry is',
  )
  .option('--architectures <LIST>', 'of the images', 'amd64,arm64')
  .option('--without-images', 'for a quick look at the rest')
  .parse()
  .opts<{
    dryRun?: true;
    version?: string;
    unreleased?: true;
    output: string;
    localBases?: true;
    architectures: string;
    withoutImages?: true;
  }>();

process.umask(0o022); // modes of files are in archives
try {
  if (options.dryRun !== true)
    throw new RefusedRelease('only .github/workflows/release.yml publishes, for a tag: give --dry-run');
  await make(await releaseOf(options));
} catch (error) {
  if (!(error instanceof RefusedRelease)) throw error;
  console.error(`No release: ${error.message}`);
  process.exitCode = 1;
}

async function make(release: Release): Promise<void> {
  await using cleanup = new AsyncDisposableStack();
  await rm(release.output, { recursive: true, force: true });
  await mkdir(release.output, { recursive: true });
  const folder = await mkdtemp(path.join(tmpdir(), 'release-'));
  cleanup.defer(() => rm(folder, { recursive: true, force: true }));
  console.log(`${release.version} of ${release.commit}, ${new Date(release.epoch * 1000).toISOString()}`);
  await addBundles(release);
  await addKubectlPlugin(release);
  await addNpmPackage(release);
  await addCharts(release, folder);
  if (options.withoutImages === true) release.missing.push('images: --without-images');
  else
    await addImages(release, folder, {
      local: options.localBases === true,
      architectures: options.architectures.split(','),
    });
  await finishRelease(release);
}
