import { shortValue } from '../../base/short-value.ts';
import type { Lister } from '../../kube/cache/store.ts';
import { allowsSource, type ReferenceGrant } from '../../provision/objects.ts';
import { type DataSource, snapshotGroup } from './data-source.ts';
import type { PlannedSource } from './open-source.ts';

/** Whether claims of a namespace may take their content from a source in another. Several grants are alternatives (Gateway API, "ReferenceGrant"). */
export function isGranted(grants: Lister<ReferenceGrant>, claimNamespace: string, source: DataSource): boolean {
  for (const grant of grants.list())
    if (grant.metadata.namespace === source.namespace && allowsSource(grant, claimNamespace, source)) return true;
  return false;
}

/**
 * Why a claim may not use a source; undefined where it may.
 *
 * @param grants - undefined where the gate is off: then nothing of another namespace may be used.
 */
export function whyNotGranted(
  grants: Lister<ReferenceGrant> | undefined,
  claim: { namespace: string; name: string },
  source: DataSource,
): string | undefined {
  const { namespace, name } = claim;
  if (source.namespace === namespace || (grants !== undefined && isGranted(grants, namespace, source)))
    return undefined;
  return `accessing ${shortValue(source.namespace)}/${shortValue(source.name)} of ${shortValue(source.kind)} dataSource from ${namespace}/${name} isn't allowed`;
}

/** The source of a plan as its claim names it. */
export function plannedDataSource({ handling, namespace, name }: PlannedSource): DataSource {
  return handling === 'clone'
    ? { kind: 'PersistentVolumeClaim', apiGroup: '', namespace, name }
    : { kind: 'VolumeSnapshot', apiGroup: snapshotGroup, namespace, name };
}
