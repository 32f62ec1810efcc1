import { ProvisionError } from '../provisioner.ts';

/** This process sends nothing for the volume any more: its record is closed or another process's, or its claim is served or gone. */
export class VolumeAbandonedError extends ProvisionError {
  constructor(volumeName: string, why: string) {
    super(`volume ${JSON.stringify(volumeName)} is not worked on here any more: ${why}`, { state: 'no-change' });
  }
}
