import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { runTool } from '../image/run-tool.ts';
import { type Manifest, readManifest, repositoryPage } from '../package/repository.ts';

/** The folder of the repository. */
export const root = path.join(import.meta.dirname, '../..');

/** What is released. */
export interface Release {
  /** Such as `v0.1.0`. */
  readonly version: string;
  readonly commit: string;
  /** The time that all files get, in seconds since 1970: `SOURCE_DATE_EPOCH`, else when the commit was made. */
  readonly epoch: number;
  /** The section of CHANGELOG.md. */
  readonly notes: string;
  /** The address of the repository for a browser. */
  readonly home: string;
  /** Folder of what is made. */
  readonly output: string;
  /** What could not be made here, and why. */
  readonly missing: string[];
}

/** A release that must not be made; the message says what to do. */
export class RefusedRelease extends Error {
  override readonly name = 'RefusedRelease';
}

export interface ReleaseOptions {
  readonly version?: string;
  readonly unreleased?: true;
  readonly output: string;
}

/**
 * @param folder - of the repository.
 * @throws {RefusedRelease} when the tree is not what the version says.
 */
export async function releaseOf(options: ReleaseOptions, folder = root): Promise<Release> {
  const git = async (...args: string[]): Promise<string> => (await runTool('git', ['-C', folder, ...args])).trim();
  const changes = await git('status', '--porcelain');
  if (changes !== '') throw new RefusedRelease(`the tree has changes that are not committed:\n${changes}`);
  const manifest = await readManifest(folder);
  const version =
    options.unreleased === true
      ? `v${manifest.version}`
      : (options.version ?? tagOf(await git('tag', '--points-at', 'HEAD')));
  checkVersion(version, manifest);
  const changelog = await readFile(path.join(folder, 'CHANGELOG.md'), 'utf8');
  return {
    version,
    commit: await git('rev-parse', 'HEAD'),
    epoch: Number(process.env['SOURCE_DATE_EPOCH'] ?? (await git('log', '-1', '--format=%ct'))),
    notes: notesOf(changelog, options.unreleased === true ? 'Unreleased' : version.slice(1)),
    home: repositoryPage(manifest),
    output: path.resolve(options.output),
    missing: [],
  };
}

/** @param listed - the tags of a commit, a line each. */
function tagOf(listed: string): string {
  const tags = listed.split('\n').filter((tag) => /^v\d/.test(tag));
  const [tag, ...others] = tags;
  if (tag === undefined)
    throw new RefusedRelease('this commit has no tag such as v1.2.3: give --version or --unreleased');
  if (others.length > 0) throw new RefusedRelease(`this commit has several tags, ${tags.join(', ')}: give --version`);
  return tag;
}

/** @throws {RefusedRelease} when it is no version, or not that of package.json. */
function checkVersion(version: string, manifest: Pick<Manifest, 'version'>): void {
  if (!/^v\d+\.\d+\.\d+(-[\w.]+)?$/.test(version)) throw new RefusedRelease(`${version} is no version such as v1.2.3`);
  if (version === `v${manifest.version}`) return;
  throw new RefusedRelease(`the version is ${version}, and package.json has ${manifest.version}`);
}

/**
 * The section of a version.
 *
 * @throws {RefusedRelease} when there is none, or nothing in it.
 */
export function notesOf(changelog: string, title: string): string {
  const sections = changelog.split(/^## /m).slice(1);
  const section = sections.find((text) => /^\[?([^\]\s]+)/.exec(text)?.[1] === title);
  if (section === undefined) throw new RefusedRelease(`CHANGELOG.md has no section "## ${title}"`);
  const notes = section.slice(section.indexOf('\n')).trim();
  if (notes === '') throw new RefusedRelease(`CHANGELOG.md has nothing under "## ${title}"`);
  return `${notes}\n`;
}
