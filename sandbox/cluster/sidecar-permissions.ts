import type { SandboxClient } from '../api/client.ts';
import { grantObjects } from '../granted-account.ts';
import { sidecarManifests } from './sidecar-manifests.ts';

/** The account that `deploy/base/rbac.yaml` makes for the sidecar. */
export const sidecarAccount = { namespace: 'default', name: 'csi-provisioner' } as const;

/** Grants the sidecar the permissions that our manifests grant it in a cluster. Safe to repeat. */
export async function grantSidecarPermissions(client: SandboxClient): Promise<void> {
  await grantObjects(client, sidecarManifests());
}
