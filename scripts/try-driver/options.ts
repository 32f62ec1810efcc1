import { Option } from 'commander';
import { existsSync } from 'node:fs';
import { bundle, bundled } from '../../test/support/program-file.ts';
import { goHelp, goWord } from '../../test/support/go-sidecar/go-sidecar.ts';
import { programSource } from '../../test/support/program-file.ts';
import { scriptCommand } from '../script-command.ts';
import { driverProfile, drivers, type DriverProfile } from './drivers.ts';

export interface TryOptions {
  profile: DriverProfile;
  /** Command of the driver; undefined: it is there, or is compiled. */
  driver: string | undefined;
  /** Command of the sidecar under test. */
  program: string;
  /** Command of the other sidecar, or `go`. */
  peer: string;
  target: 'sandbox' | 'kubernetes';
  /** Where logs are kept. */
  logFolder: string | undefined;
  /** All observations go to this file, as JSON. */
  dump: string | undefined;
  /** Only checks the driver. */
  check: boolean;
}

interface Values {
  driver?: string;
  program: string;
  peer: string;
  cluster: TryOptions['target'];
  logs?: string;
  dump?: string;
  check?: true;
}

/** Reads the command line; an invalid one ends the process. */
export function parseOptions(argv: readonly string[]): TryOptions {
  const command = scriptCommand(
    'npm run try-driver --',
    `Runs a driver with this sidecar and then with another one, each on a cluster of its own, does the same with both, and
compares PersistentVolumes, claims, events, the driver's calls, Leases and CSIStorageCapacity objects. Exit code 1 on a
difference that docs/differences.md does not list.`,
  )
    .usage('NAME [flags]')
    .argument('<NAME>', 'the driver, see below')
    .option('--peer <CMD>', `the command of the other sidecar; ${goHelp}`, goWord)
    .option('--driver <CMD>', 'the command of the driver, where it is not compiled here')
    .option(
      '--program <CMD>',
      'the command of this sidecar; default: the bundle if it is built, else the sources',
      ours(),
    )
    .addOption(new Option('--cluster <NAME>', 'cluster').choices(['kubernetes', 'sandbox']).default('kubernetes'))
    .option('--logs <DIR>', 'folder to keep the logs of sidecars and drivers in')
    .option('--dump <FILE>', 'file for all that was compared, as JSON')
    .option('--check', 'runs csi-sandbox check with the driver instead, and prints its findings')
    .addHelpText('after', `\nDrivers:\n${drivers.map(driverLine).join('\n')}`)
    .parse(argv, { from: 'user' });
  const values = command.opts<Values>();
  const profile = driverProfile(command.args[0] ?? '');
  const refuse = (message: string): never => command.error(`error: ${message}`, { exitCode: 2 });
  if (profile === undefined) return refuse(`driver '${command.args[0] ?? ''}' is not one of ${names()}.`);
  if (profile.program === 'given' && values.driver === undefined)
    return refuse(`--driver is needed: the command of ${profile.about}.`);
  const { driver, program, peer, cluster, logs, dump, check = false } = values;
  return { profile, driver, program, peer, target: cluster, logFolder: logs, dump, check };
}

function ours(): string {
  return existsSync(bundle) ? bundled : `${process.execPath} ${programSource('csi-provisioner')}`;
}

function names(): string {
  return drivers.map(({ name }) => name).join(', ');
}

function driverLine({ name, about, program }: DriverProfile): string {
  return `  ${name.padEnd(10)}${about}${program === 'given' ? '; needs --driver' : ''}`;
}
