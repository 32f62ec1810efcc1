import { chmod, cp, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { npmConfig } from './npm-settings.ts';
import { runTool } from './run-tool.ts';

/** A root file system to make a base image of, and that image's settings. */
export interface BaseImage {
  readonly folder: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly user: string;
}

/** Of this machine, as Debian names it. */
export const ownArchitecture = process.arch === 'x64' ? 'amd64' : process.arch;
const authorities = '/etc/ssl/certs/ca-certificates.crt';

/**
 * Stands for `node:24-bookworm-slim`: Node.js, npm and a shell where that image has them, all from this machine.
 *
 * @throws when not run by npm, which says where npm lies.
 */
export async function buildBase(parent: string): Promise<BaseImage> {
  const npmProgram = process.env['npm_execpath'];
  if (npmProgram === undefined) throw new Error('run it as `npm run image:test`: the build stage takes that npm');
  const folder = await emptyRoot(parent);
  await addProgram(folder, process.execPath, '/usr/local/bin/node');
  for (const program of ['/bin/sh', '/usr/bin/env']) await addProgram(folder, program, program);
  const npm = '/usr/local/lib/node_modules/npm';
  await cp(path.dirname(path.dirname(npmProgram)), path.join(folder, npm), { recursive: true, dereference: true });
  await symlink(`${npm}/bin/npm-cli.js`, path.join(folder, '/usr/local/bin/npm'));
  return {
    folder,
    user: '0',
    environment: {
      PATH: '/usr/local/bin:/usr/bin:/bin',
      HOME: '/root',
      npm_config_registry: await npmConfig('registry'),
      npm_config_prefer_offline: 'true',
      ...(existsSync(authorities) && { NODE_EXTRA_CA_CERTS: authorities }),
    },
  };
}

/**
 * Stands for `gcr.io/distroless/nodejs24-debian12`: Node.js with its libraries, nothing else.
 *
 * @param architecture - default: this machine's own.
 */
export async function runtimeBase(parent: string, architecture = ownArchitecture): Promise<BaseImage> {
  const folder = await emptyRoot(parent);
  if (architecture === ownArchitecture) await addProgram(folder, process.execPath, '/nodejs/bin/node');
  else await addForeignNode(folder, { architecture, destination: '/nodejs/bin/node', parent });
  return { folder, user: '0', environment: { PATH: '/usr/bin:/bin', SSL_CERT_FILE: authorities } };
}

/** Stands for `node:24-bookworm-slim` where Debian's packages are installed into it: a Debian, and this machine's Node.js. */
export async function debianBase(parent: string, architecture = ownArchitecture): Promise<BaseImage> {
  const folder = await mkdtemp(path.join(parent, 'debian-'));
  await chmod(folder, 0o755);
  await runTool('mmdebstrap', ['--quiet', '--variant=apt', `--architectures=${architecture}`, 'bookworm', folder]);
  const node = architecture === ownArchitecture ? process.execPath : await foreignNode(architecture, parent);
  await add(folder, node, '/usr/local/bin/node'); // its libraries came with apt
  return { folder, user: '0', environment: { PATH: '/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' } };
}

/** Node.js of the version of this process for another architecture, from the npm registry. */
async function foreignNode(architecture: string, parent: string): Promise<string> {
  const folder = await mkdtemp(path.join(parent, 'node-'));
  const name = `node-linux-${architecture}@${process.versions.node}`;
  const packed = await runTool('npm', ['pack', name, '--silent', '--pack-destination', folder]);
  await runTool('tar', ['-xf', path.join(folder, packed.trim()), '-C', folder, 'package/bin/node']);
  return path.join(folder, 'package/bin/node');
}

/** Node.js for another architecture, and its libraries as Debian has them. */
async function addForeignNode(
  folder: string,
  { architecture, destination, parent }: { architecture: string; destination: string; parent: string },
): Promise<void> {
  const libraries = await mkdtemp(path.join(parent, 'libraries-'));
  const wanted = '--include=libc6,libstdc++6,libgcc-s1';
  const architectures = `--architectures=${architecture}`;
  await runTool('mmdebstrap', ['--quiet', '--variant=extract', architectures, wanted, 'bookworm', libraries]);
  for (const name of ['lib', 'usr/lib']) {
    await cp(path.join(libraries, name), path.join(folder, name), { recursive: true, verbatimSymlinks: true });
  }
  await rm(libraries, { recursive: true });
  await add(folder, await foreignNode(architecture, parent), destination);
}

async function emptyRoot(parent: string): Promise<string> {
  const folder = await mkdtemp(path.join(parent, 'root-'));
  await chmod(folder, 0o755);
  for (const name of ['dev', 'etc/ssl/certs', 'proc', 'root', 'sys', 'tmp']) {
    await mkdir(path.join(folder, name), { recursive: true });
  }
  await chmod(path.join(folder, 'tmp'), 0o1777);
  const users = ['root:x:0:0:root:/root:/bin/sh', 'nonroot:x:65532:65532:nonroot:/home/nonroot:/bin/false'];
  await writeFile(path.join(folder, 'etc/passwd'), `${users.join('\n')}\n`);
  await writeFile(path.join(folder, 'etc/group'), 'root:x:0:\nnonroot:x:65532:\n');
  if (existsSync(authorities)) await cp(authorities, path.join(folder, authorities), { dereference: true });
  return folder;
}

/** Copies a program, and the libraries it links to where its loader looks for them. */
async function addProgram(folder: string, program: string, destination: string): Promise<void> {
  await add(folder, program, destination);
  const listed = await runTool('ldd', [await realpath(program)]);
  for (const [library] of listed.matchAll(/\/\S+(?= \(0x)/g)) await add(folder, library, library);
}

async function add(folder: string, file: string, destination: string): Promise<void> {
  const target = path.join(folder, destination);
  await mkdir(path.dirname(target), { recursive: true });
  await cp(await realpath(file), target, { dereference: true });
}

/** Removes what was made below `parent`. */
export async function removeBase({ folder }: BaseImage): Promise<void> {
  await rm(folder, { recursive: true, force: true });
}
