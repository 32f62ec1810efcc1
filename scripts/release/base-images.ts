import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { BuildahStorage } from '../image/buildah-storage.ts';
import { buildBase, debianBase, ownArchitecture, runtimeBase } from '../image/local-base.ts';
import { runTool } from '../image/run-tool.ts';
import { RefusedRelease, root } from './release-of.ts';

/** The base images of the Dockerfile. */
export interface Bases {
  /** Options of `buildah build`. */
  readonly flags: readonly string[];
  /** Build arguments that name the base images of a target of the Dockerfile for an architecture. */
  for(target: string, architecture: string): Promise<Readonly<Record<string, string>>>;
  /** The images that were taken, by build argument. */
  used(): Readonly<Record<string, string>>;
}

/** Base images as the Dockerfile names them, each by the digest that its registry has now, so that all builds take the same. */
export function registryBases(storage: BuildahStorage): Bases {
  let pinned: Record<string, string> | undefined;
  return {
    flags: ['--pull'],
    async for() {
      pinned ??= await pinnedBases(storage);
      return pinned;
    },
    used: () => pinned ?? {},
  };
}

async function pinnedBases(storage: BuildahStorage): Promise<Record<string, string>> {
  const dockerfile = await readFile(path.join(root, 'Dockerfile'), 'utf8');
  const pinned: Record<string, string> = {};
  for (const [, argument = '', image = ''] of dockerfile.matchAll(/^ARG (\w+_IMAGE)=(\S+)$/gm)) {
    pinned[argument] = /@sha256:[0-9a-f]{64}$/.test(image) ? image : await byDigest(storage, image);
  }
  return pinned;
}

/** @throws {RefusedRelease} when the registry is out of reach. */
async function byDigest(storage: BuildahStorage, image: string): Promise<string> {
  try {
    const inspected = await runTool('skopeo', ['inspect', '--format', '{{.Digest}}', `docker://${image}`]);
    return `${image.replace(/:[\w.-]+$/, '')}@${inspected.trim()}`;
  } catch (cause) {
    const message = `the digest of ${image} cannot be read; where no registry is, give --local-bases: ${String(cause)}`;
    throw new RefusedRelease(message, { cause });
  }
}

/** Stand-ins for the base images, made of this machine's Node.js, of the one in the npm registry, and of Debian packages. */
export function localBases(storage: BuildahStorage, parent: string, epoch: number): Bases {
  const made = new Map<string, string>();
  const make = async (kind: keyof typeof makers, architecture: string): Promise<string> => {
    const name = `localhost/stand-in/${kind}-${architecture}`;
    if (made.has(name)) return name;
    process.env['SOURCE_DATE_EPOCH'] = String(epoch); // which mmdebstrap honours
    const base = await makers[kind](parent, architecture);
    await storage.makeBase(name, base, { config: ['--arch', architecture], commit: ['--timestamp', String(epoch)] });
    made.set(name, kind);
    return name;
  };
  return {
    flags: ['--pull-never'],
    for: async (target, architecture) => ({
      BUILD_IMAGE: await make('build', ownArchitecture),
      ...(target === debianTarget
        ? { DEBIAN_IMAGE: await make('debian', architecture) }
        : { RUNTIME_IMAGE: await make('runtime', architecture) }),
    }),
    used: () => Object.fromEntries([...made].map(([name]) => [name, 'made here'])),
  };
}

/** The target that stands on Debian; making one takes minutes. */
const debianTarget = 'nfs-provisioner';

const makers = {
  build: (parent: string) => buildBase(parent),
  runtime: (parent: string, architecture: string) => runtimeBase(parent, architecture),
  debian: (parent: string, architecture: string) => debianBase(parent, architecture),
};
