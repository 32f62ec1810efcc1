import { shortValue } from '../../base/short-value.ts';
import type { PersistentVolumeClaim } from '../../provision/objects.ts';
import { ProvisionError } from '../../provision/provisioner.ts';

export const snapshotGroup = 'snapshot.storage.k8s.io';

/** Where a new volume takes its content from, with every default filled in. */
export interface DataSource {
  kind: string;
  name: string;
  /** Empty for the core group. */
  apiGroup: string;
  namespace: string;
}

/** `populator`: an external volume populator provisions and fills the volume. */
export type SourceHandling = 'snapshot' | 'clone' | 'populator';

/** A data source that the driver copies from. */
export interface ContentSource extends DataSource {
  handling: Exclude<SourceHandling, 'populator'>;
}

/**
 * The claim's data source: `dataSource`, else `dataSourceRef` (Kubernetes, "Volume Cloning", "Cross namespace data
 * sources").
 *
 * @throws {ProvisionError} state `finished` when a namespace is named although the gate is off.
 */
export function dataSourceOf(
  claim: PersistentVolumeClaim,
  options: { crossNamespace: boolean },
): DataSource | undefined {
  const { dataSource, dataSourceRef } = claim.spec;
  const ownNamespace = claim.metadata.namespace ?? '';
  const source = dataSource ?? dataSourceRef;
  if (source === undefined) return undefined;
  const named = (dataSource === undefined ? dataSourceRef?.namespace : undefined) ?? '';
  if (named !== '' && !options.crossNamespace) {
    throw new ProvisionError(
      'dataSourceRef namespace specified but the CrossNamespaceVolumeDataSource feature is disabled',
      { state: 'finished' },
    );
  }
  return {
    kind: source.kind,
    name: source.name,
    apiGroup: source.apiGroup ?? '',
    namespace: named === '' ? ownNamespace : named,
  };
}

/**
 * What handles a data source.
 *
 * @throws {ProvisionError} state `finished` for an empty name, or a snapshot of another group.
 */
export function sourceHandling(source: DataSource, claimName: string): SourceHandling {
  if (source.name === '') {
    throw new ProvisionError(`the PVC source not found for PVC ${claimName}`, { state: 'finished' });
  }
  if (source.kind === 'PersistentVolumeClaim') return 'clone';
  if (source.kind !== 'VolumeSnapshot') return 'populator';
  if (source.apiGroup === snapshotGroup) return 'snapshot';
  throw new ProvisionError(
    `the PVC source does not belong to the right APIGroup. Expected ${snapshotGroup}, Got ${shortValue(source.apiGroup)}`,
    { state: 'finished' },
  );
}
