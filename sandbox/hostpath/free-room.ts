import { isDeepStrictEqual } from 'node:util';
import type { HostpathDriver } from './hostpath-driver.ts';
import { readCapabilities } from './arguments.ts';
import { maxInt64 } from './byte-size.ts';
import { needController } from './hostpath-driver.ts';
import type { GetCapacityRequest, StringMap } from './messages.ts';
import { segmentsWithin } from './segments.ts';

/** Bytes left in one segment; never below zero. */
export function freeRoom(driver: HostpathDriver, segments: StringMap | undefined): bigint {
  let used = 0n;
  for (const volume of driver.state.volumes.all()) {
    if (isDeepStrictEqual(volume.segments, segments)) used += BigInt(volume.capacityBytes);
  }
  for (const reservation of driver.reservations) {
    if (isDeepStrictEqual(reservation.segments, segments)) used += reservation.bytes;
  }
  return used < driver.capacityBytes ? driver.capacityBytes - used : 0n;
}

/** GetCapacity: the room of all segments within the one asked for; none where the driver does not serve. */
export function getCapacity(
  driver: HostpathDriver,
  request: GetCapacityRequest,
): { available_capacity: string; maximum_volume_size: { value: string } } {
  needController(driver, 'GET_CAPACITY');
  if ((request.volume_capabilities ?? []).length > 0) {
    readCapabilities(request.volume_capabilities, driver.capabilities.controller.has('SINGLE_NODE_MULTI_WRITER'));
  }
  const places = segmentsWithin(driver.topology, request.accessible_topology?.segments ?? {});
  let sum = 0n;
  let most = 0n;
  for (const free of places.map((segments) => freeRoom(driver, segments))) {
    sum += free;
    if (free > most) most = free;
  }
  if (sum > maxInt64) sum = maxInt64;
  return { available_capacity: String(sum), maximum_volume_size: { value: String(most) } };
}
