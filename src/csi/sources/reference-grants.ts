import type { Lister } from '../../kube/cache/lister.ts';
import { allowsSource, type ReferenceGrant } from '../../provision/reference-grant.ts';
import type { DataSource } from './data-source.ts';

/**
 * Whether claims of a namespace may take their content from a source in another. Several grants are alternatives. Sources of
 * the own namespace need none (Gateway API, "ReferenceGrant").
 */
export function isGranted(grants: Lister<ReferenceGrant>, claimNamespace: string, source: DataSource): boolean {
  if (source.namespace === claimNamespace) return true;
  for (const grant of grants.list())
    if (grant.metadata.namespace === source.namespace && allowsSource(grant, claimNamespace, source)) return true;
  return false;
}
