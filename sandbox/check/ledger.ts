import type { CodeName } from '../hostpath/call-error.ts';
import type { CreateVolumeRequest, Volume } from './csi-messages.ts';

/** The codes of a CreateVolume that may still be in progress, or has failed halfway. */
const mayHaveMade: readonly CodeName[] = [
  'CANCELLED',
  'DEADLINE_EXCEEDED',
  'UNAVAILABLE',
  'ABORTED',
  'UNKNOWN',
  'INTERNAL',
];

/** A volume that a driver has answered with. */
export interface MadeVolume {
  readonly request: CreateVolumeRequest;
  readonly volume: Volume;
}

/** What the checks have made and must remove. */
export class Ledger {
  /** Every answer of CreateVolume, oldest first. */
  readonly made: MadeVolume[] = [];
  /** Ids of volumes that are there. */
  readonly volumes = new Set<string>();
  /** Ids of all volumes that there have ever been. */
  readonly everMade = new Set<string>();
  readonly snapshots = new Set<string>();
  /** Ids of all snapshots that there have ever been. */
  readonly everTaken = new Set<string>();
  /** Volume and node of each attachment, as JSON. */
  readonly attached = new Set<string>();
  /** Requests without an answer, by name: there may be a volume. */
  readonly uncertain = new Map<string, CreateVolumeRequest>();

  created(request: CreateVolumeRequest, volume: Volume): void {
    this.made.push({ request, volume });
    this.exists(request.name, volume);
  }

  /** Notes a volume that is not to be judged. */
  exists(name: string, { volume_id: id = '' }: Volume): void {
    this.uncertain.delete(name);
    if (id === '') return;
    this.volumes.add(id);
    this.everMade.add(id);
  }

  /** Notes a CreateVolume that failed: a volume may be there nevertheless. */
  failed(request: CreateVolumeRequest, code: CodeName): void {
    if (mayHaveMade.includes(code)) this.uncertain.set(request.name, request);
    else this.uncertain.delete(request.name);
  }
}
