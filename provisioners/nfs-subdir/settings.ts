/** What the environment says. Names, defaults and texts are those of nfs-subdir-external-provisioner. */
import path from 'node:path';
import { parseGoBool } from '../../src/index.ts';

/** The environment is not as it should be; the message names the variable. */
export class SettingsError extends Error {
  override readonly name = 'SettingsError';
}

export interface Settings {
  /** Server of every volume, as it is written into PersistentVolumes. */
  readonly server: string;
  /** The exported folder on the server: absolute, without a slash at its end unless it is `/`. */
  readonly sharePath: string;
  readonly provisionerName: string;
  /** Where the export is mounted here. */
  readonly mountPoint: string;
  /** Where metrics and health are served, such as `:8080`; undefined: nowhere. */
  readonly httpEndpoint: string | undefined;
  /** Namespace of the lock; undefined: the pod's own. */
  readonly namespace: string | undefined;
}

type Environment = Record<string, string | undefined>;

/** An empty variable counts as absent. @throws {SettingsError} */
export function readSettings(environment: Environment): Settings {
  const text = (name: string): string | undefined => environment[name] || undefined;
  const server = text('NFS_SERVER') ?? missing('NFS_SERVER not set');
  const sharePath = normalised(text('NFS_PATH') ?? missing('NFS_PATH not set'));
  const provisionerName =
    text('PROVISIONER_NAME') ?? missing('environment variable PROVISIONER_NAME is not set! Please set it.');
  return {
    server,
    sharePath,
    provisionerName,
    mountPoint: text('MOUNT_POINT') ?? '/persistentvolumes',
    httpEndpoint: text('HTTP_ENDPOINT'),
    namespace: text('POD_NAMESPACE'),
  };
}

/** The name that the original has for its lock, of whichever kind. */
export function lockNameOf({ provisionerName }: Pick<Settings, 'provisionerName'>): string {
  return provisionerName.replaceAll('/', '-');
}

/** Whether several instances elect a leader. Default true. @throws {SettingsError} */
export function readLeaderElection(environment: Environment): boolean {
  const text = environment['ENABLE_LEADER_ELECTION'] ?? '';
  if (text === '') return true;
  try {
    return parseGoBool(text);
  } catch (error) {
    throw new SettingsError(`Unable to parse ENABLE_LEADER_ELECTION env var: ${(error as Error).message}`);
  }
}

function normalised(sharePath: string): string {
  if (!sharePath.startsWith('/')) {
    throw new SettingsError(`NFS_PATH must be an absolute path, not ${JSON.stringify(sharePath)}`);
  }
  const clean = path.posix.normalize(sharePath);
  return clean === '/' ? clean : clean.replace(/\/$/, '');
}

function missing(message: string): never {
  throw new SettingsError(message);
}
