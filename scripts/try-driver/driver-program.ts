/** Finds or compiles a driver, and starts it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtempDisposable, writeFile } from 'node:fs/promises';
import { constants, tmpdir } from 'node:os';
import path from 'node:path';
import { eventually } from '../../test/support/eventually.ts';
import { type StartedProcess, startProcess } from '../../test/support/started-process.ts';
import { compileProgram } from '../go-module.ts';
import { CsiClient } from './csi-proxy.ts';
import type { DriverPlace, DriverProfile } from './drivers.ts';

const sandboxDriver = path.join(import.meta.dirname, '../../sandbox/hostpath/main.ts');
const mock = {
  name: 'mock',
  module: path.join(import.meta.dirname, 'mock'),
  target: '.',
  files: ['go.sum', 'main.go'],
  cache: 'try-driver',
};

/** The words of the command that starts a driver; compiles it when that is needed. */
export async function driverCommand(profile: DriverProfile, given: string | undefined): Promise<string[]> {
  if (given !== undefined) return given.split(' ').filter((word) => word !== '');
  if (profile.program === 'sandbox') return [process.execPath, sandboxDriver];
  return [await compileProgram(mock)];
}

/** Starts a driver and waits until it answers. @throws when it ends before. */
export async function startTriedDriver(
  profile: DriverProfile,
  command: readonly string[],
  place: DriverPlace,
): Promise<StartedProcess> {
  const faked = profile.fakeMounts === undefined ? undefined : await fakeMounts(profile.fakeMounts, place);
  const words = [...(faked?.words ?? []), ...command, ...profile.args(place)];
  const driver = await startProcess({
    program: words[0] ?? '',
    args: words.slice(1),
    ...(faked && { env: faked.env }),
  });
  try {
    using client = new CsiClient(place.socket);
    const hopeless = (): string | undefined => (driver.running() ? undefined : `the driver ended:\n${driver.log()}`);
    await eventually(() => client.call('GetPluginInfo'), { hopeless });
    return driver;
  } catch (error) {
    await driver.stop('SIGKILL');
    throw error;
  }
}

/**
 * Lets a driver run in a mount namespace of its own, whose mounts go with it, and with a `mount` that binds a local folder
 * in place of a share.
 */
async function fakeMounts(
  type: string,
  { folder }: DriverPlace,
): Promise<{ words: string[]; env: Record<string, string> }> {
  const [bin, share] = [path.join(folder, 'bin'), path.join(folder, 'share')];
  for (const each of [bin, share, path.join(folder, 'mounts')]) await mkdir(each);
  await writeFile(path.join(bin, 'mount'), bindMount(type, share), { mode: 0o755 });
  return {
    words: ['unshare', '--mount', '--propagation', 'private'],
    env: { PATH: `${bin}:${process.env['PATH'] ?? ''}` },
  };
}

/** The mount point is the last argument, as Kubernetes' mount library has it. */
function bindMount(type: string, share: string): string {
  return `#!/bin/sh
PATH=\${PATH#*:}
case " $* " in
  *" -t ${type} "*)
    for target; do :; done
    exec mount --bind '${share}' "$target"
    ;;
esac
exec mount "$@"
`;
}

const sandbox = path.join(import.meta.dirname, '../../sandbox/csi-sandbox.js');

/** Starts the driver and checks it; the findings are printed. @returns the exit code of the check. */
export async function checkTried(
  profile: DriverProfile,
  command: readonly string[],
  { logFolder }: { logFolder: string | undefined },
): Promise<number> {
  await using root = await mkdtempDisposable(path.join(tmpdir(), 'check-driver-'));
  const socket = path.join(root.path, 'driver.sock');
  const folder = path.join(root.path, 'driver');
  await mkdir(folder);
  const driver = await startTriedDriver(profile, command, { socket, folder, driverName: 'tried.csi.example.com' });
  const check = spawn(process.execPath, [sandbox, 'check', `--csi-address=${socket}`, ...flags(profile, logFolder)], {
    stdio: 'inherit',
  });
  const pass = (signal: NodeJS.Signals): void => void check.kill(signal);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, pass);
  try {
    const [code, signal] = (await once(check, 'exit')) as [number | null, NodeJS.Signals | null];
    return code ?? 128 + constants.signals[signal ?? 'SIGKILL'];
  } finally {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, pass);
    await driver.stop();
  }
}

function flags({ parameters, secret = {} }: DriverProfile, logFolder: string | undefined): string[] {
  return [
    ...Object.entries(parameters).map(([key, value]) => `--class-parameter=${key}=${value}`),
    ...Object.entries(secret).map(([key, value]) => `--secret=${key}=${value}`),
    ...(logFolder === undefined ? [] : [`--log=${logFolder}`]),
  ];
}
