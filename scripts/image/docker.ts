/** Images by a Docker engine, on the Dockerfile's own base images. */
import { startProcess } from '../../test/support/started-process.ts';
import type { ContainerOptions, Engine, Image, ImageConfig } from './engine.ts';
import { npmSettings } from './npm-settings.ts';
import { runTool } from './run-tool.ts';

/** What of `docker image inspect` is read. */
interface Inspected {
  Config: {
    User?: string;
    Entrypoint?: string[] | null;
    Env?: string[] | null;
    Labels?: Record<string, string> | null;
    Healthcheck?: unknown;
  };
}

/** @param base - the runtime stage's base image, as the Dockerfile names it. */
export function startDocker(root: string, base: string): Engine {
  const docker = (args: string[]): Promise<string> =>
    runTool('docker', args, { environment: { DOCKER_BUILDKIT: '1' } }); // the Dockerfile mounts a secret
  const names: string[] = [];
  return {
    name: 'Docker',
    limitsMemory: true,
    async baseFiles() {
      const present = await docker(['image', 'ls', '--quiet', base]);
      if (present === '') await docker(['pull', '--quiet', base]);
      return filesOf(base);
    },
    obstacle: () => Promise.resolve(undefined),
    async build(target) {
      const name = `csi-provisioner-image-test:${target}`;
      await docker(['build', '--quiet', ...(await npmSettings()), '--target', target, '--tag', name, root]);
      names.push(name);
      const [inspected] = JSON.parse(await docker(['image', 'inspect', name])) as Inspected[];
      return {
        config: configOf(inspected),
        files: () => filesOf(name),
        start: (options) => startProcess({ program: 'docker', args: runArguments(name, options) }),
      } satisfies Image;
    },
    async [Symbol.asyncDispose]() {
      for (const name of names) await docker(['image', 'rm', '--force', name]);
    },
  };
}

function configOf(inspected: Inspected | undefined): ImageConfig {
  const { User, Entrypoint, Env, Labels, Healthcheck } = inspected?.Config ?? {};
  return {
    user: User ?? '',
    entrypoint: Entrypoint ?? [],
    environment: Env ?? [],
    labels: Labels ?? {},
    hasHealthcheck: Healthcheck !== undefined,
  };
}

/** `docker run` hands signals on and ends with the program's exit code. */
function runArguments(name: string, options: ContainerOptions): string[] {
  const { args, capabilities = [], environment, memoryBytes, mounts, user } = options;
  const kept = capabilities.map((each) => `--cap-add=${each}`);
  const hardened = ['--read-only', '--cap-drop=ALL', '--security-opt=no-new-privileges', '--network=host'];
  const variables = Object.entries(environment).map(([key, value]) => `--env=${key}=${value}`);
  const volumes = Object.entries(mounts).map(([inside, outside]) => `--volume=${outside}:${inside}`);
  const limit = memoryBytes === undefined ? [] : [`--memory=${memoryBytes}`];
  return ['run', '--rm', `--user=${user}`, ...limit, ...hardened, ...kept, ...variables, ...volumes, name, ...args];
}

async function filesOf(name: string): Promise<Map<string, number>> {
  const container = (await runTool('docker', ['create', name, '-'])).trim();
  try {
    const listing = await runTool('sh', ['-c', `docker export ${container} | tar --list --verbose`]);
    const files = new Map<string, number>();
    for (const line of listing.split('\n')) {
      const [, kind, size, file] = /^(.)\S+\s+\S+\s+(\d+)\s+\S+\s+\S+\s+(.*?)( -> .*)?$/.exec(line) ?? [];
      if (file !== undefined && kind !== 'd') files.set(`/${file}`, Number(size));
    }
    return files;
  } finally {
    await runTool('docker', ['rm', container]);
  }
}
