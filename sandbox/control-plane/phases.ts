import { isDeepStrictEqual } from 'node:util';
import type { BinderContext } from './binder-context.ts';
import { updateObjectStatus } from './object-access.ts';
import { resources, type Claim, type Volume } from './objects.ts';

/** An event that goes with a phase change. */
export interface PhaseEvent {
  reason: string;
  message: string;
}

/**
 * Sets the volume's phase; nothing is written if it has it already. The warning is recorded, and kept as the volume's
 * message, only when the phase changes.
 * @throws {StatusError} if the write fails.
 */
export function setVolumePhase(context: BinderContext, volume: Volume, phase: string, warning?: PhaseEvent): Volume {
  if (volume.status?.phase === phase) return volume;
  const stored = updateObjectStatus(context.client, resources.volumes, volume, (copy) => {
    copy.status = { ...copy.status, phase };
    if (warning === undefined) delete copy.status.message;
    else copy.status.message = warning.message;
  });
  if (warning !== undefined) context.events.warning(stored, warning.reason, warning.message);
  return stored;
}

/**
 * Sets the phase of a claim that has no volume (`Pending`, `Lost`) and clears what it had from one; nothing is written
 * if all is so already. The warning is recorded only when the phase changes.
 * @throws {StatusError} if the write fails.
 */
export function setUnboundPhase(context: BinderContext, claim: Claim, phase: string, warning?: PhaseEvent): void {
  const { status = {} } = claim;
  if (status.phase === phase && status.accessModes === undefined && status.capacity === undefined) return;
  const stored = updateObjectStatus(context.client, resources.claims, claim, (copy) => {
    copy.status = { ...copy.status, phase };
    delete copy.status.accessModes;
    delete copy.status.capacity;
  });
  if (warning !== undefined && status.phase !== phase) context.events.warning(stored, warning.reason, warning.message);
}

/**
 * Sets the claim's phase `Bound` with the volume's access modes; the volume's capacity is taken over at the change of
 * the phase only, since an expansion changes it later (step 4).
 * @throws {StatusError} if the write fails.
 */
export function setBoundPhase(context: BinderContext, claim: Claim, volume: Volume): void {
  const { status = {} } = claim;
  const { accessModes = [], capacity, volumeAttributesClassName } = volume.spec;
  if (status.phase === 'Bound' && isDeepStrictEqual(status.accessModes ?? [], accessModes)) return;
  updateObjectStatus(context.client, resources.claims, claim, (copy) => {
    copy.status = { ...copy.status, phase: 'Bound', accessModes };
    if (status.phase === 'Bound') return;
    if (capacity !== undefined) copy.status.capacity = { ...capacity };
    if (volumeAttributesClassName) copy.status.currentVolumeAttributesClassName = volumeAttributesClassName;
  });
}
