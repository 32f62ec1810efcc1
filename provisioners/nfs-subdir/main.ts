/** nfs-subdir-external-provisioner: each claim gets a directory of an NFS export that is mounted already. */
import './thread-pool.ts'; // first: before a thread is started
import {
  compatibleElection,
  connect,
  KubeConfigError,
  type Logger,
  runProvisioner,
  type RunProvisionerOptions,
  systemClock,
  textLogger,
} from '../../src/index.ts';
import { SubcommandError } from '../shared-audit/storage-audit-command.ts';
import { logLevel, UsageError, usageText } from './logging-flags.ts';
import { auditExport } from './audit-command.ts';
import { makeProvisioner, maxCallMs } from './make-provisioner.ts';
import { ShareError } from './share-guard.ts';
import { PatientCalls } from './patient-calls.ts';
import { readLeaderElection, readSettings, SettingsError } from './settings.ts';

async function audit(args: readonly string[]): Promise<number> {
  const ending = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => ending.abort(new Error('it was interrupted')));
  }
  const { env: environment, stdin, stdout, stderr } = process;
  const program = 'nfs-subdir-external-provisioner audit';
  return await auditExport({ program, args, environment, stdin, stdout, stderr, signal: ending.signal });
}

async function main(): Promise<number> {
  const [first, ...rest] = process.argv.slice(2);
  if (first === 'audit') return await audit(rest);
  const level = logLevel(process.argv.slice(2));
  if (level === undefined) {
    process.stderr.write(usageText);
    return 0;
  }
  const logger = textLogger({ level });
  const settings = readSettings(process.env);
  await connect({ logger })[Symbol.asyncDispose](); // what is wrong with the way to the cluster is said before the rest
  const leaderElection = readLeaderElection(process.env);
  const { provisionerName, mountPoint, sharePath, httpEndpoint, namespace } = settings;
  logger.info(
    { server: settings.server, path: sharePath, mountPoint, provisionerName },
    'Serving directories of the export',
  );
  const running = new AbortController();
  const calls = new PatientCalls({ clock: systemClock, mountPoint });
  const options: RunProvisionerOptions = {
    provisionerName,
    provisioner: (parts) => makeProvisioner(settings, parts, { calls, running: running.signal }),
    volumeFields: { spec: ['nfs'] },
    leaderElection: leaderElection && compatibleElection(provisionerName, namespace),
    intentJournal: leaderElection ? 'lease' : 'off', // without an election there are no permissions on Leases
    maxCallMs, // of a process that lost the lock
    ...(httpEndpoint !== undefined && { http: { address: httpEndpoint } }),
    logger,
  };
  try {
    return await runProvisioner(options);
  } finally {
    running.abort(new Error('the provisioner has ended'));
    if (calls.abandoned > 0) endAtOnce(calls.abandoned, logger);
  }
}

function exitCodeOf(error: unknown): number {
  if (error instanceof SubcommandError) return error.exitCode;
  if (error instanceof ShareError) return 3; // only an audit throws it
  return error instanceof UsageError ? 2 : 1;
}

/** Node.js waits for threads that hang in the file system, even in `process.exit`. */
function endAtOnce(calls: number, logger: Logger): void {
  logger.error({ calls }, 'Calls of the file system hang: the process ends by SIGKILL');
  process.kill(process.pid, 'SIGKILL');
}

try {
  process.exitCode = await main();
} catch (error) {
  const isExpected = [SettingsError, ShareError, SubcommandError, UsageError, KubeConfigError].some(
    (expected) => error instanceof expected,
  );
  if (!isExpected) throw error;
  textLogger().error({}, (error as Error).message);
  process.exitCode = exitCodeOf(error);
}
