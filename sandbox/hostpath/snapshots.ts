/** The controller's calls on snapshots: copies of a volume at one moment. */
import { randomUUID } from 'node:crypto';
import { required, requiredName } from './arguments.ts';
import { CallError } from './call-error.ts';
import type { HostpathDriver } from './hostpath-driver.ts';
import { knownVolume, needController } from './hostpath-driver.ts';
import type { SnapshotRecord } from './hostpath-state.ts';
import type { Page } from './list-page.ts';
import { listPage } from './list-page.ts';
import type { CreateSnapshotRequest, ListSnapshotsRequest, Snapshot, SnapshotIdRequest } from './messages.ts';
import { copyContent } from './volume-content.ts';

function snapshotMessage(snapshot: SnapshotRecord): Snapshot {
  const createdMs = Date.parse(snapshot.createdAt);
  return {
    snapshot_id: snapshot.id,
    source_volume_id: snapshot.sourceVolumeId,
    size_bytes: snapshot.sizeBytes,
    creation_time: { seconds: String(Math.floor(createdMs / 1000)), nanos: (createdMs % 1000) * 1_000_000 },
    ready_to_use: true,
  };
}

/** CreateSnapshot. Repeatable by name for the same volume. */
export async function createSnapshot(
  driver: HostpathDriver,
  request: CreateSnapshotRequest,
): Promise<{ snapshot: Snapshot }> {
  needController(driver, 'CREATE_DELETE_SNAPSHOT');
  const name = requiredName(request.name);
  const sourceVolumeId = required(request.source_volume_id, 'source_volume_id');
  return driver.pending.run(`snapshot name ${name}`, async () => {
    const existing = driver.state.snapshots.getByName(name);
    if (existing !== undefined) {
      if (existing.sourceVolumeId === sourceVolumeId) return { snapshot: snapshotMessage(existing) };
      throw new CallError('ALREADY_EXISTS', `snapshot ${name} exists of volume ${existing.sourceVolumeId}`);
    }
    const volume = knownVolume(driver, sourceVolumeId);
    const fields: Omit<SnapshotRecord, 'serial'> = {
      id: randomUUID(),
      name,
      sourceVolumeId,
      sizeBytes: volume.capacityBytes,
      accessType: volume.accessType,
      createdAt: new Date().toISOString(),
    };
    const snapshot = await driver.state.snapshots.add(fields, (contentPath) =>
      copyContent(driver.state.volumes.contentPath(sourceVolumeId), contentPath),
    );
    return { snapshot: snapshotMessage(snapshot) };
  });
}

/** DeleteSnapshot: unknown ids are a success. */
export async function deleteSnapshot(driver: HostpathDriver, request: SnapshotIdRequest): Promise<object> {
  needController(driver, 'CREATE_DELETE_SNAPSHOT');
  const id = required(request.snapshot_id, 'snapshot_id');
  await driver.pending.run(`snapshot ${id}`, () => driver.state.snapshots.remove(id));
  return {};
}

/** ListSnapshots, oldest first; an unknown snapshot or volume gives an empty page. */
export function listSnapshots(driver: HostpathDriver, request: ListSnapshotsRequest): Page<{ snapshot: Snapshot }> {
  needController(driver, 'LIST_SNAPSHOTS');
  const { snapshot_id: id = '', source_volume_id: volumeId = '' } = request;
  const wanted = driver.state.snapshots
    .all()
    .filter(
      (snapshot) => (id === '' || snapshot.id === id) && (volumeId === '' || snapshot.sourceVolumeId === volumeId),
    );
  const page = listPage(wanted, request);
  return { ...page, entries: page.entries.map((snapshot) => ({ snapshot: snapshotMessage(snapshot) })) };
}

/** GetSnapshot. */
export function getSnapshot(driver: HostpathDriver, request: SnapshotIdRequest): { snapshot: Snapshot } {
  needController(driver, 'GET_SNAPSHOT');
  const id = required(request.snapshot_id, 'snapshot_id');
  const snapshot = driver.state.snapshots.get(id);
  if (snapshot === undefined) throw new CallError('NOT_FOUND', `snapshot ${id} does not exist`);
  return { snapshot: snapshotMessage(snapshot) };
}
