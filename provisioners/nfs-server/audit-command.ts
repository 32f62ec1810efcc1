/** The call of `audit` with the settings of the provisioner. */
import { runStorageAudit, type SubcommandCall } from '../shared-audit/storage-audit-command.ts';
import { ExportAudit } from './export-audit.ts';
import type { Settings } from './settings.ts';

const description =
  'Compares directories of volumes and exports with PersistentVolumes and the journal. Changes nothing by itself.';
const notes = `Run it in the Pod of the provisioner, with all flags of the provisioner before the word audit, such as:
nfs-provisioner -provisioner=example.com/nfs audit --output=json

States: unclaimed (a directory that no PersistentVolume has), lost (a PersistentVolume whose
directory is gone), export (an export whose directory or PersistentVolume is gone).`;

/** @throws as `runStorageAudit`. */
export async function auditExports(call: SubcommandCall, settings: Settings): Promise<number> {
  const { kubeconfig, master } = settings;
  const connection = { ...(kubeconfig !== '' && { kubeconfig }), ...(master !== '' && { master }) };
  const open = ({ client }: { client: ConstructorParameters<typeof ExportAudit>[0]['client'] }): ExportAudit =>
    new ExportAudit({ settings, client });
  const deletes = 'the finding with this id: a directory with all data in it, or an export without the data';
  return await runStorageAudit(call, { description, notes, deletes, connection, open });
}
