import type { KubeObject, Resource } from '../kube/kube-object.ts';

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
 * Whether this grant, in the namespace of the source, allows claims of another namespace to use the source: its `from` and its
 * `to` must both match (Gateway API, "ReferenceGrant").
 */
export function allowsSource(
  { spec }: ReferenceGrant,
  claimNamespace: string,
  source: { apiGroup: string; kind: string; name: string },
): boolean {
  const from = (spec?.from ?? []).some(
    ({ group = '', kind, namespace }) =>
      group === '' && kind === 'PersistentVolumeClaim' && namespace === claimNamespace,
  );
  const to = (spec?.to ?? []).some(
    ({ group = '', kind, name }) =>
      group === source.apiGroup && kind === source.kind && (name === source.name || (name ?? '') === ''),
  );
  return from && to;
}
