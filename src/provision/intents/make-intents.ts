/** The open intents, and the history of the PersistentVolumes that decides about them: each refers to the other. */
import type { ControllerBase } from '../controller-base.ts';
import type { IntentJournal } from '../intent-journal/intent-journal.ts';
import { VolumeLog } from '../revoke/volume-log.ts';
import { VolumeLogReader } from '../revoke/volume-log-reader.ts';
import { isRecoverable } from '../recoverable.ts';
import { Intents } from './intents.ts';

export interface IntentParts {
  intents: Intents;
  log: VolumeLog;
  reader: VolumeLogReader;
}

export function makeIntents(
  base: Pick<ControllerBase, 'provisioner' | 'transport' | 'abort' | 'journalMetrics' | 'clock' | 'logger'>,
  { journal, maxCallMs, onNameFree }: { journal: IntentJournal; maxCallMs: number; onNameFree: (name: string) => void },
): IntentParts {
  const { provisioner, journalMetrics: metrics } = base;
  const progress = isRecoverable(provisioner) ? provisioner.progress : undefined;
  const log: VolumeLog = new VolumeLog({
    storageKeys: (volume) => provisioner.storageKeys?.(volume) ?? [],
    oldestNeeded: () => minOf(intents.neededVersions()),
    oldestStorageNeeded: () => minOf(intents.neededStorageVersions()),
    onHole: () => reader.fill(),
    onRewound: () => intents.lostHistory(),
  });
  const intents: Intents = new Intents({ ...base, journal, volumeLog: log, maxCallMs, progress, metrics, onNameFree });
  const reader = new VolumeLogReader({ ...base, log, neededVersions: () => intents.neededVersions() });
  return { intents, log, reader };
}

function minOf(numbers: readonly number[]): number | undefined {
  return numbers.length === 0 ? undefined : numbers.reduce((min, each) => Math.min(min, each));
}
