import { required } from './arguments.ts';
import { CallError } from './call-error.ts';
import type { HostpathDriver } from './hostpath-driver.ts';
import { changeVolume, needController } from './hostpath-driver.ts';
import type { ControllerModifyVolumeRequest, StringMap } from './messages.ts';

/** @throws {CallError} `INVALID_ARGUMENT` for a key the driver does not know, or any without MODIFY_VOLUME. */
export function checkMutableParameters(driver: HostpathDriver, parameters: StringMap): void {
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
