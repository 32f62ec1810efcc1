import type { CreateVolumeRequest, Volume } from './csi-messages.ts';

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
    this.uncertain.delete(request.name);
    const id = volume.volume_id ?? '';
    if (id === '') return;
    this.volumes.add(id);
    this.everMade.add(id);
  }
}
