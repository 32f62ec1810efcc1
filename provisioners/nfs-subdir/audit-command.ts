/** The call of `audit` with the settings of the provisioner. */
import { notedOnLock, ownNamespace } from '../shared-audit/lock.ts';
import { CannotReadError, runStorageAudit, type SubcommandCall } from '../shared-audit/storage-audit-command.ts';
import { SubdirAudit } from './audit.ts';
import { lockNameOf, readLeaderElection, readSettings, type Settings } from './settings.ts';
import { Share } from './share.ts';
import { shareKey } from './share-guard.ts';
import { identityFile, readIdentity } from './share-identity.ts';

const description =
  'Compares the directories of the export with PersistentVolumes and the journal. Changes nothing by itself.';
const notes = `Environment variables: as for the provisioner. Run it where the export is mounted, such as in its Pod:
NFS_SERVER, NFS_PATH, PROVISIONER_NAME, MOUNT_POINT, POD_NAMESPACE, KUBECONFIG.

States: unclaimed (a directory that no PersistentVolume has), lost (a PersistentVolume whose
directory is gone), archive.`;

/** @throws {SettingsError} for the environment, and as `runStorageAudit`. */
export async function auditExport(call: SubcommandCall): Promise<number> {
  return await runStorageAudit(call, {
    description,
    notes,
    open: ({ client }) => {
      const settings = readSettings(call.environment);
      const lock = { namespace: settings.namespace ?? ownNamespace(), name: lockNameOf(settings) };
      const hasLock = readLeaderElection(call.environment);
      const noted: Noted = async (signal) => (hasLock ? await notedOnLock(shareKey, { client, ...lock }, signal) : []);
      const share = shareToLookAt(settings, noted);
      return new SubdirAudit({ settings, lock: hasLock ? lock : undefined, client, share });
    },
  });
}

/** The identities that the provisioner has seen. */
type Noted = (signal: AbortSignal) => Promise<string[]>;

/** The share, to which the audit never writes an identity: if the provisioner has seen another one, nothing is concluded. */
function shareToLookAt({ mountPoint }: Settings, noted: Noted): Share {
  return new Share(mountPoint, {
    check: async (root, signal) => {
      const remembered = await noted(signal);
      const seen = await readIdentity(root);
      if (remembered.length === 0 || (seen !== undefined && remembered.includes(seen))) return;
      const found = `its ${identityFile} is ${seen ?? 'missing'}, the provisioner has seen ${remembered.join(', ')}`;
      throw new CannotReadError(`the export at ${mountPoint} is not the share of the volumes: ${found}`);
    },
  });
}
