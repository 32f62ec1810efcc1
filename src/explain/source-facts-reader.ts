/** Reads what a claim is to be made from: its data source with all that decides on it, and its VolumeAttributesClass. */
import type { KubeObject, Resource } from '../kube/kube-object.ts';
import {
  allowsSource,
  type PersistentVolume,
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  persistentVolumes,
  type ReferenceGrant,
  referenceGrants,
} from '../provision/objects.ts';
import {
  type AttributesClass,
  attributesClasses,
  olderAttributesClasses,
  type Snapshot,
  type SnapshotClass,
  snapshotClasses,
  type SnapshotContent,
  snapshotContents,
  snapshots,
  type VolumePopulator,
  volumePopulators,
} from './cluster-objects.ts';
import { type ClusterReader, found, type Reading } from './cluster-reader.ts';

/** The data source of a claim, with its defaults. */
export interface SourceReference {
  apiGroup: string;
  kind: string;
  namespace: string;
  name: string;
}

/** What was read; what the kind or the state of the source does not require is absent. */
export interface SourceFacts {
  source?: SourceReference | undefined;
  sourceClaim?: Reading<PersistentVolumeClaim> | undefined;
  /** Of a source claim that has one. */
  sourceVolume?: Reading<PersistentVolume> | undefined;
  snapshot?: Reading<Snapshot> | undefined;
  /** Of a claim that is being deleted, and kept for snapshots of it: those that are not ready. `snapshot` is the first. */
  unready?: Reading<Snapshot[]> | undefined;
  snapshotContent?: Reading<SnapshotContent> | undefined;
  /** Where the snapshot finds none for it. */
  snapshotClasses?: Reading<SnapshotClass[]> | undefined;
  /** Those of the namespace, where the snapshot that is wanted does not exist. */
  snapshotNames?: Reading<string[]> | undefined;
  /** The namespaces that have one of that name, where the source does not exist in its own. */
  otherNamespaces?: Reading<string[]> | undefined;
  /** For a source that neither is a claim nor a snapshot. */
  populators?: Reading<VolumePopulator[]> | undefined;
  /** In the namespace of the source, if that is another one. */
  grants?: Reading<ReferenceGrant[]> | undefined;
  /** In the namespace of the claim, where none of the others allows the source. */
  ownGrants?: Reading<ReferenceGrant[]> | undefined;
  attributesClass?: Reading<AttributesClass> | undefined;
  /** Where the one that is wanted does not exist. */
  attributesClassNames?: Reading<string[]> | undefined;
}

export function isClaim({ kind }: SourceReference): boolean {
  return kind === 'PersistentVolumeClaim';
}

export function isSnapshot({ kind, apiGroup }: SourceReference): boolean {
  return kind === 'VolumeSnapshot' && apiGroup === snapshots.group;
}

/** As the claim names it; undefined where it names none. */
export function sourceOf({ spec, metadata }: PersistentVolumeClaim): SourceReference | undefined {
  const source = spec.dataSource ?? spec.dataSourceRef;
  if (source === undefined) return undefined;
  const { apiGroup, kind, name } = source;
  const foreign = spec.dataSource === undefined ? (spec.dataSourceRef?.namespace ?? '') : '';
  return { apiGroup: apiGroup ?? '', kind, name, namespace: foreign || (metadata.namespace ?? '') };
}

/** At most six requests, and one for each further 2,000 snapshots of the namespace where the source is missing. */
export async function readSource(claim: PersistentVolumeClaim, reader: ClusterReader): Promise<SourceFacts> {
  const source = sourceOf(claim);
  if (source === undefined) return {};
  const [read, granted] = await Promise.all([readSourceObject(source, reader), readGrants(claim, source, reader)]);
  return { source, ...read, ...granted };
}

async function readGrants(
  { metadata: { namespace = '' } }: PersistentVolumeClaim,
  source: SourceReference,
  reader: ClusterReader,
): Promise<Pick<SourceFacts, 'grants' | 'ownGrants'>> {
  if (source.namespace === namespace) return {};
  const grants = await reader.list<ReferenceGrant>(referenceGrants, { namespace: source.namespace });
  const isAllowed = found(grants)?.some((grant) => allowsSource(grant, namespace, source)) ?? true;
  return {
    grants,
    ...(!isAllowed && { ownGrants: await reader.list<ReferenceGrant>(referenceGrants, { namespace }) }),
  };
}

async function readSourceObject(source: SourceReference, reader: ClusterReader): Promise<SourceFacts> {
  if (isSnapshot(source)) return await readSnapshot(source, reader);
  if (!isClaim(source)) return { populators: await reader.list<VolumePopulator>(volumePopulators) };
  const sourceClaim = await reader.get<PersistentVolumeClaim>(persistentVolumeClaims, source);
  if (sourceClaim.kind === 'missing')
    return { sourceClaim, otherNamespaces: await readNamespaces(persistentVolumeClaims, source, reader) };
  const name = found(sourceClaim)?.spec.volumeName ?? '';
  if (name === '') return { sourceClaim };
  return { sourceClaim, sourceVolume: await reader.get<PersistentVolume>(persistentVolumes, { name }) };
}

async function readSnapshot(source: SourceReference, reader: ClusterReader): Promise<SourceFacts> {
  const { namespace } = source;
  const snapshot = await reader.get<Snapshot>(snapshots, source);
  if (snapshot.kind === 'missing' && !snapshot.unserved) {
    const nameOf = ({ metadata }: KubeObject): string => metadata.name;
    const [snapshotNames, otherNamespaces] = await Promise.all([
      reader.pick<KubeObject, string>(snapshots, nameOf, { namespace }),
      readNamespaces(snapshots, source, reader),
    ]);
    return { snapshot, snapshotNames, otherNamespaces };
  }
  if (snapshot.kind !== 'found') return { snapshot };
  return { snapshot, ...(await readTaking(snapshot.value, reader)) };
}

async function readNamespaces(
  resource: Resource,
  { namespace, name }: SourceReference,
  reader: ClusterReader,
): Promise<Reading<string[]>> {
  const namespaceOf = ({ metadata }: KubeObject): string => metadata.namespace ?? '';
  const all = await reader.pick<KubeObject, string>(resource, namespaceOf, { fieldSelector: `metadata.name=${name}` });
  return all.kind === 'found' ? { kind: 'found', value: all.value.filter((each) => each !== namespace) } : all;
}

/** How far a snapshot is. */
async function readTaking(snapshot: Snapshot, reader: ClusterReader): Promise<SourceFacts> {
  const { readyToUse, error } = snapshot.status ?? {};
  const lacksClass = readyToUse !== true && (error?.message ?? '').includes('snapshot class');
  const [snapshotContent, classes] = await Promise.all([
    reader.get<SnapshotContent>(snapshotContents, { name: contentName(snapshot) }),
    lacksClass ? reader.list<SnapshotClass>(snapshotClasses) : undefined,
  ]);
  return { snapshotContent, snapshotClasses: classes };
}

/** The snapshots of a claim for which the snapshot-controller keeps it (its `isPVCBeingUsed`), and how far the first of them is. */
export async function readUnready(claim: PersistentVolumeClaim, reader: ClusterReader): Promise<SourceFacts> {
  const { namespace = '', name } = claim.metadata;
  const isUnready = ({ spec, status }: Snapshot): boolean =>
    spec?.source?.persistentVolumeClaimName === name && status?.readyToUse !== true;
  const unready = await reader.select<Snapshot>(snapshots, isUnready, { namespace });
  const first = found(unready)?.[0];
  if (first === undefined) return { unready };
  return { unready, snapshot: { kind: 'found', value: first }, ...(await readTaking(first, reader)) };
}

/** The VolumeSnapshotContent of a snapshot, by the name that the snapshot-controller gives it where none is recorded yet. */
export function contentName({ metadata, spec, status }: Snapshot): string {
  const recorded = status?.boundVolumeSnapshotContentName ?? spec?.source?.volumeSnapshotContentName ?? '';
  return recorded || `snapcontent-${metadata.uid ?? ''}`;
}

export async function readAttributesClass(
  claim: PersistentVolumeClaim,
  reader: ClusterReader,
): Promise<Pick<SourceFacts, 'attributesClass' | 'attributesClassNames'>> {
  const name = claim.spec.volumeAttributesClassName ?? '';
  if (name === '') return {};
  const current = await reader.get<AttributesClass>(attributesClasses, { name });
  if (current.kind !== 'missing') return { attributesClass: current };
  const resource = current.unserved ? olderAttributesClasses : attributesClasses;
  const attributesClass = current.unserved ? await reader.get<AttributesClass>(resource, { name }) : current;
  if (attributesClass.kind !== 'missing' || attributesClass.unserved) return { attributesClass };
  const nameOf = ({ metadata }: KubeObject): string => metadata.name;
  return { attributesClass, attributesClassNames: await reader.pick<KubeObject, string>(resource, nameOf) };
}
