import type { SandboxClient, SandboxObject } from '../api/client.ts';
import { parseObject } from '../api/request-body.ts';
import { StatusError } from '../api/status-error.ts';
import { sidecarManifests } from './sidecar-manifests.ts';

/** The account that `deploy/base/rbac.yaml` makes for the sidecar. */
export const sidecarAccount = { namespace: 'default', name: 'csi-provisioner' } as const;

/** Grants the sidecar the permissions that our manifests grant it in a cluster. Safe to repeat. */
export async function grantSidecarPermissions(client: SandboxClient): Promise<void> {
  for (const text of sidecarManifests().split(/^---$/m)) {
    const object = (await parseObject(Buffer.from(text), 'application/yaml', ['application/yaml'])) as SandboxObject;
    const { apiVersion = '', kind = '' } = object;
    const [group, version] = apiVersion.includes('/') ? apiVersion.split('/') : ['', apiVersion];
    try {
      client.create({ group: group ?? '', version: version ?? '', plural: `${kind.toLowerCase()}s` }, object);
    } catch (error) {
      if (!(error instanceof StatusError) || error.reason !== 'AlreadyExists') throw error; // kept from an earlier run
    }
  }
}
