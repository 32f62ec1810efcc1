/** The node's calls that mount: stage, publish and their opposites. */
import { mkdirSync, rmdirSync, statSync, unlinkSync, writeFileSync } from 'node:fs';
import { readCapability, required } from './arguments.ts';
import type { Access } from './arguments.ts';
import { CallError } from './call-error.ts';
import type { HostpathDriver } from './hostpath-driver.ts';
import { changeVolume, needNode } from './hostpath-driver.ts';
import type { VolumeRecord } from './hostpath-state.ts';
import type {
  NodePublishVolumeRequest,
  NodeStageVolumeRequest,
  NodeUnpublishVolumeRequest,
  NodeUnstageVolumeRequest,
  VolumeCapability,
} from './messages.ts';
import { attachLoopDevice, bindMount, detachLoopDevice, isMountPoint, isSameFile, unmount } from './mounts.ts';

function checkAccess(driver: HostpathDriver, capability: VolumeCapability | undefined): Access {
  return readCapability(capability, driver.capabilities.node.has('SINGLE_NODE_MULTI_WRITER'));
}

function checkType(volume: VolumeRecord, access: Access): void {
  if (access.type === volume.accessType) return;
  throw new CallError('FAILED_PRECONDITION', `volume ${volume.id} is a ${volume.accessType} volume`);
}

/** NodeStageVolume: the directory is mounted at the staging path; a block volume gets its loop device. Repeatable. */
export async function nodeStageVolume(driver: HostpathDriver, request: NodeStageVolumeRequest): Promise<object> {
  needNode(driver, 'STAGE_UNSTAGE_VOLUME');
  const id = required(request.volume_id, 'volume_id');
  const stagingPath = required(request.staging_target_path, 'staging_target_path');
  const access = checkAccess(driver, request.volume_capability);
  await changeVolume(driver, id, async (volume) => {
    checkType(volume, access);
    const content = driver.state.volumes.contentPath(id);
    if (volume.accessType === 'block') await attachLoopDevice(content);
    else await mountOnce(content, stagingPath, []);
    return { ...volume, stagingPaths: [...new Set([...volume.stagingPaths, stagingPath])] };
  });
  return {};
}

/** NodeUnstageVolume: what is not staged is a success. */
export async function nodeUnstageVolume(driver: HostpathDriver, request: NodeUnstageVolumeRequest): Promise<object> {
  needNode(driver, 'STAGE_UNSTAGE_VOLUME');
  const id = required(request.volume_id, 'volume_id');
  const stagingPath = required(request.staging_target_path, 'staging_target_path');
  await changeVolume(driver, id, async (volume) => {
    const content = driver.state.volumes.contentPath(id);
    if (volume.accessType === 'mount' && isSameFile(content, stagingPath)) await unmount(stagingPath);
    const changed = { ...volume, stagingPaths: volume.stagingPaths.filter((other) => other !== stagingPath) };
    await releaseLoopDevice(changed, content);
    return changed;
  });
  return {};
}

/** NodePublishVolume: mounted at the target path, which is made here. Repeatable for the same path and arguments. */
export async function nodePublishVolume(driver: HostpathDriver, request: NodePublishVolumeRequest): Promise<object> {
  const id = required(request.volume_id, 'volume_id');
  const target = required(request.target_path, 'target_path');
  const access = checkAccess(driver, request.volume_capability);
  const readonly = request.readonly ?? false;
  await changeVolume(driver, id, async (volume) => {
    checkType(volume, access);
    checkStaged(driver, volume, request.staging_target_path ?? '');
    checkPublished(volume, target, { readonly, mode: access.mode });
    const content = driver.state.volumes.contentPath(id);
    const flags = [...(readonly ? ['ro'] : []), ...(request.volume_capability?.mount?.mount_flags ?? [])];
    const made = makeTarget(target, volume.accessType);
    try {
      const from = volume.accessType === 'block' ? await attachLoopDevice(content) : content;
      await mountOnce(from, target, flags);
    } catch (error) {
      if (made) removeTarget(target);
      throw error;
    }
    return { ...volume, published: { ...volume.published, [target]: { readonly, mode: access.mode } } };
  });
  return {};
}

/** NodeUnpublishVolume: unmounts and removes the target path; a path that is gone is a success. */
export async function nodeUnpublishVolume(
  driver: HostpathDriver,
  request: NodeUnpublishVolumeRequest,
): Promise<object> {
  const id = required(request.volume_id, 'volume_id');
  const target = required(request.target_path, 'target_path');
  await changeVolume(driver, id, async (volume) => {
    const content = driver.state.volumes.contentPath(id);
    if (volume.published[target] !== undefined) {
      await unmount(target);
      removeTarget(target);
    }
    const published = Object.entries(volume.published).filter(([other]) => other !== target);
    const changed = { ...volume, published: Object.fromEntries(published) };
    await releaseLoopDevice(changed, content);
    return changed;
  });
  return {};
}

function checkStaged(driver: HostpathDriver, volume: VolumeRecord, stagingPath: string): void {
  if (!driver.capabilities.node.has('STAGE_UNSTAGE_VOLUME')) return;
  if (stagingPath === '') throw new CallError('FAILED_PRECONDITION', 'staging_target_path is required');
  const mounted = volume.accessType === 'block' || isMountPoint(stagingPath);
  if (volume.stagingPaths.includes(stagingPath) && mounted) return;
  throw new CallError('FAILED_PRECONDITION', `volume ${volume.id} is not staged at ${stagingPath}`);
}

function checkPublished(volume: VolumeRecord, target: string, wanted: { readonly: boolean; mode: string }): void {
  for (const [other, { readonly, mode }] of Object.entries(volume.published)) {
    if (!isMountPoint(other)) continue; // the machine restarted since
    if (other === target) {
      if (readonly === wanted.readonly && mode === wanted.mode) continue;
      throw new CallError('ALREADY_EXISTS', `volume ${volume.id} is already published at ${target} in another way`);
    }
    if ([mode, wanted.mode].includes('SINGLE_NODE_SINGLE_WRITER')) {
      throw new CallError('FAILED_PRECONDITION', `volume ${volume.id} is already published at ${other}`);
    }
  }
}

async function mountOnce(from: string, to: string, flags: readonly string[]): Promise<void> {
  if (isMountPoint(to)) {
    if (isSameFile(from, to)) return;
    throw new CallError('ALREADY_EXISTS', `something else is mounted at ${to}`);
  }
  if (statSync(to, { throwIfNoEntry: false }) === undefined) {
    throw new CallError('INVALID_ARGUMENT', `${to} does not exist`);
  }
  await bindMount(from, to, flags);
}

/** @returns whether the path was made by this call. */
function makeTarget(target: string, accessType: VolumeRecord['accessType']): boolean {
  if (statSync(target, { throwIfNoEntry: false }) !== undefined) return false;
  try {
    if (accessType === 'block') writeFileSync(target, '', { flag: 'wx' });
    else mkdirSync(target);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    throw new CallError('INVALID_ARGUMENT', `the parent of ${target} does not exist`, { cause: error });
  }
  return true;
}

/** Never removes what is in a directory: should the unmount have missed, the volume's content must stay. */
function removeTarget(target: string): void {
  const found = statSync(target, { throwIfNoEntry: false });
  if (found?.isDirectory() === true) rmdirSync(target);
  else if (found !== undefined) unlinkSync(target);
}

async function releaseLoopDevice(volume: VolumeRecord, content: string): Promise<void> {
  const used = volume.stagingPaths.length > 0 || Object.keys(volume.published).length > 0;
  if (volume.accessType === 'block' && !used) await detachLoopDevice(content);
}
