import type { Lister } from '../../kube/lister.ts';
import type { KubeObject, Resource } from '../../kube/kube-object.ts';
import type { DataSource } from './data-source.ts';

/** gateway.networking.k8s.io/v1beta1 ReferenceGrant: the owner of a namespace lets others refer into it. */
export interface ReferenceGrant extends KubeObject {
  spec?: {
    from?: { group?: string; kind?: string; namespace?: string }[];
    to?: { group?: string; kind?: string; name?: string | null }[];
  };
}

export const referenceGrants: Resource = {
  group: 'gateway.networking.k8s.io',
  version: 'v1beta1',
  plural: 'referencegrants',
  kind: 'ReferenceGrant',
  namespaced: true,
};

/**
 * Whether claims of a namespace may take their content from a source in another. One grant must allow both ends;
 * several grants are alternatives. Sources of the own namespace need none (Gateway API, "ReferenceGrant").
 */
export function isGranted(grants: Lister<ReferenceGrant>, claimNamespace: string, source: DataSource): boolean {
  if (source.namespace === claimNamespace) return true;
  for (const { metadata, spec } of grants.list()) {
    if (metadata.namespace !== source.namespace) continue;
    const from = (spec?.from ?? []).some(
      ({ group = '', kind, namespace }) =>
        group === '' && kind === 'PersistentVolumeClaim' && namespace === claimNamespace,
    );
    const to = (spec?.to ?? []).some(
      ({ group = '', kind, name }) =>
        group === source.apiGroup && kind === source.kind && (name === source.name || (name ?? '') === ''),
    );
    if (from && to) return true;
  }
  return false;
}
