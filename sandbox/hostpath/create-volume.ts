import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { readCapabilities, readCapacityRange, required, requiredName } from './arguments.ts';
import { CallError } from './call-error.ts';
import { freeRoom } from './free-room.ts';
import { changeVolume, type HostpathDriver, knownVolume, needController } from './hostpath-driver.ts';
import type { AccessType, VolumeRecord } from './hostpath-state.ts';
import type {
  ControllerModifyVolumeRequest,
  CreateVolumeRequest,
  StringMap,
  Volume,
  VolumeContentSource,
} from './messages.ts';
import { fulfils, placesFor } from './segments.ts';
import { copyContent, makeContent, resizeBlockContent } from './volume-content.ts';
import { volumeMessage } from './volume-message.ts';

const defaultBytes = 1n << 30n;

/** Class parameters for the sidecar's own use that it must not pass on, and those it may add. */
const reservedPrefix = 'csi.storage.k8s.io/';
const passedOn = new Set(['pvc/name', 'pvc/namespace', 'pv/name'].map((key) => reservedPrefix + key));

interface Source {
  record: NonNullable<VolumeRecord['source']>;
  bytes: bigint;
  accessType: AccessType;
  contentPath: string;
}

/**
 * CreateVolume (CSI spec, "CreateVolume"). Repeatable: the name finds the volume of an earlier call, which must fit
 * what is asked for now. Takes exactly the size that is required, 1 GiB where none is.
 *
 * The class parameter `requireSecret` names a key that the secrets must have.
 */
export async function createVolume(driver: HostpathDriver, request: CreateVolumeRequest): Promise<{ volume: Volume }> {
  needController(driver, 'CREATE_DELETE_VOLUME');
  const name = requiredName(request.name);
  const accessType = readCapabilities(
    request.volume_capabilities,
    driver.capabilities.controller.has('SINGLE_NODE_MULTI_WRITER'),
  );
  readCapacityRange(request.capacity_range);
  checkParameters(request);
  checkMutableParameters(driver, request.mutable_parameters ?? {});
  return driver.pending.run(`volume name ${name}`, async () => {
    const existing = driver.state.volumes.getByName(name);
    if (existing !== undefined) {
      checkCompatible(existing, accessType, request);
      return { volume: volumeMessage(existing) };
    }
    return { volume: volumeMessage(await makeVolume(driver, name, accessType, request)) };
  });
}

function checkParameters({ parameters = {}, secrets = {} }: CreateVolumeRequest): void {
  const reserved = Object.keys(parameters).find((key) => key.startsWith(reservedPrefix) && !passedOn.has(key));
  if (reserved !== undefined) throw new CallError('INVALID_ARGUMENT', `parameter ${reserved} is not known`);
  const { requireSecret } = parameters as { requireSecret?: string };
  if (requireSecret !== undefined && !Object.hasOwn(secrets, requireSecret)) {
    throw new CallError('INVALID_ARGUMENT', `secrets must have the key ${requireSecret}`);
  }
}

function checkCompatible(existing: VolumeRecord, accessType: AccessType, request: CreateVolumeRequest): void {
  const { requiredBytes, limitBytes } = readCapacityRange(request.capacity_range);
  const bytes = BigInt(existing.capacityBytes);
  const differs = [
    bytes < requiredBytes || (limitBytes !== undefined && bytes > limitBytes) ? 'capacity' : undefined,
    existing.accessType !== accessType ? 'access type' : undefined,
    !isDeepStrictEqual(existing.source, sourceRecord(request.volume_content_source)) ? 'content source' : undefined,
    !isDeepStrictEqual(existing.parameters, { ...request.parameters }) ? 'parameters' : undefined,
    existing.segments !== undefined && !fulfils(existing.segments, request.accessibility_requirements)
      ? 'topology'
      : undefined,
  ].filter((part) => part !== undefined);
  if (differs.length === 0) return;
  throw new CallError('ALREADY_EXISTS', `volume ${existing.name} exists with a different ${differs.join(' and ')}`);
}

async function makeVolume(
  driver: HostpathDriver,
  name: string,
  accessType: AccessType,
  request: CreateVolumeRequest,
): Promise<VolumeRecord> {
  const source = findSource(driver, request.volume_content_source, accessType);
  const bytes = chooseSize(driver, request, source);
  const segments = choosePlace(driver, request, bytes);
  const fields: Omit<VolumeRecord, 'serial'> = {
    id: driver.namedIds && isPlain(name) ? `${name}#${randomUUID()}` : randomUUID(),
    name,
    capacityBytes: String(bytes),
    accessType,
    parameters: { ...request.parameters },
    mutableParameters: { ...request.mutable_parameters },
    ...(segments === undefined ? {} : { segments }),
    ...(source === undefined ? {} : { source: source.record }),
    attached: {},
    stagingPaths: [],
    published: {},
  };
  const reservation = { bytes, segments };
  driver.reservations.add(reservation);
  try {
    return await driver.state.volumes.add(fields, async (contentPath) => {
      if (source === undefined) return makeContent(contentPath, accessType, bytes);
      await copyContent(source.contentPath, contentPath);
      if (accessType === 'block') await resizeBlockContent(contentPath, bytes);
    });
  } finally {
    driver.reservations.delete(reservation);
  }
}

function chooseSize(driver: HostpathDriver, request: CreateVolumeRequest, source: Source | undefined): bigint {
  const { requiredBytes, limitBytes } = readCapacityRange(request.capacity_range);
  const least = source !== undefined && source.bytes > requiredBytes ? source.bytes : requiredBytes;
  if (limitBytes !== undefined && least > limitBytes) {
    throw new CallError('OUT_OF_RANGE', `the source has ${least} bytes, limit_bytes is ${limitBytes}`);
  }
  if (least > driver.capacityBytes) {
    throw new CallError('OUT_OF_RANGE', `${least} bytes are more than the ${driver.capacityBytes} a volume can have`);
  }
  if (least > 0n) return least;
  return limitBytes !== undefined && limitBytes < defaultBytes ? limitBytes : defaultBytes;
}

function choosePlace(driver: HostpathDriver, request: CreateVolumeRequest, bytes: bigint): StringMap | undefined {
  const places: (StringMap | undefined)[] = placesFor(driver.topology, request.accessibility_requirements) ?? [
    undefined,
  ];
  const free = places.map((segments) => freeRoom(driver, segments));
  const index = free.findIndex((room) => room >= bytes);
  if (index >= 0) return places[index];
  const most = free.reduce((a, b) => (a > b ? a : b), 0n);
  throw new CallError('RESOURCE_EXHAUSTED', `${bytes} bytes asked for, at most ${most} are free`);
}

function sourceRecord(source: VolumeContentSource | null | undefined): VolumeRecord['source'] {
  if (source?.snapshot !== undefined) return { snapshotId: source.snapshot.snapshot_id ?? '' };
  if (source?.volume !== undefined) return { volumeId: source.volume.volume_id ?? '' };
  return undefined;
}

function findSource(
  driver: HostpathDriver,
  source: VolumeContentSource | null | undefined,
  accessType: AccessType,
): Source | undefined {
  if (source === undefined || source === null) return undefined;
  const record = sourceRecord(source);
  if (record === undefined) throw new CallError('INVALID_ARGUMENT', 'volume_content_source.type is required');
  const found = 'snapshotId' in record ? snapshotSource(driver, record) : volumeSource(driver, record);
  if (found.accessType !== accessType) {
    throw new CallError('INVALID_ARGUMENT', `the source is a ${found.accessType} volume, not a ${accessType} volume`);
  }
  return found;
}

function snapshotSource(driver: HostpathDriver, record: { snapshotId: string }): Source {
  if (!driver.capabilities.controller.has('CREATE_DELETE_SNAPSHOT')) {
    throw new CallError('INVALID_ARGUMENT', 'a snapshot as content source is not supported');
  }
  const snapshot = driver.state.snapshots.get(required(record.snapshotId, 'snapshot_id'));
  if (snapshot === undefined) throw new CallError('NOT_FOUND', `snapshot ${record.snapshotId} does not exist`);
  return {
    record,
    bytes: BigInt(snapshot.sizeBytes),
    accessType: snapshot.accessType,
    contentPath: driver.state.snapshots.contentPath(snapshot.id),
  };
}

function volumeSource(driver: HostpathDriver, record: { volumeId: string }): Source {
  if (!driver.capabilities.controller.has('CLONE_VOLUME')) {
    throw new CallError('INVALID_ARGUMENT', 'a volume as content source is not supported');
  }
  const volume = knownVolume(driver, required(record.volumeId, 'volume_id'));
  return {
    record,
    bytes: BigInt(volume.capacityBytes),
    accessType: volume.accessType,
    contentPath: driver.state.volumes.contentPath(volume.id),
  };
}

/** Whether a name can be part of an id, which is a folder's name, too, and has at most 128 bytes (CSI, "Size Limits"). */
function isPlain(name: string): boolean {
  return /^[\w.-]{1,80}$/.test(name);
}

/** @throws {CallError} `INVALID_ARGUMENT` for a key the driver does not know, or any without MODIFY_VOLUME. */
function checkMutableParameters(driver: HostpathDriver, parameters: StringMap): void {
  const known = driver.capabilities.controller.has('MODIFY_VOLUME') ? driver.mutableParameters : [];
  const unknown = Object.keys(parameters).find((key) => !known.includes(key));
  if (unknown !== undefined) throw new CallError('INVALID_ARGUMENT', `mutable parameter ${unknown} is not supported`);
}

/** ControllerModifyVolume: changes the given keys and keeps the others. Repeatable. */
export async function controllerModifyVolume(
  driver: HostpathDriver,
  request: ControllerModifyVolumeRequest,
): Promise<object> {
  needController(driver, 'MODIFY_VOLUME');
  const id = required(request.volume_id, 'volume_id');
  await changeVolume(driver, id, (volume) => {
    checkMutableParameters(driver, request.mutable_parameters ?? {});
    return { ...volume, mutableParameters: { ...volume.mutableParameters, ...request.mutable_parameters } };
  });
  return {};
}
