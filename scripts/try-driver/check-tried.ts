/** What `csi-sandbox check` says of a driver of the list. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtempDisposable } from 'node:fs/promises';
import { constants, tmpdir } from 'node:os';
import path from 'node:path';
import { startTriedDriver } from './driver-program.ts';
import type { DriverProfile } from './drivers.ts';

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
