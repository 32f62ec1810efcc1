import type { Recorder } from '../../src/index.ts';

/** A claim, as far as an event needs it. */
export interface ClaimNames {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** Events on claims that wait because as many volumes exist as may: one for each claim and limit. */
export class LimitEvents {
  readonly #recorder: Recorder;
  /** What was recorded, by the UID of the claim. */
  readonly #recorded = new Map<string, string>();

  constructor(recorder: Recorder) {
    this.#recorder = recorder;
  }

  /** The claim was refused. Safe to repeat: it is refused again whenever a volume was deleted and others came first. */
  record({ namespace, name, uid }: ClaimNames, limit: { max: number; className?: string }): void {
    const { max, className } = limit;
    const limited =
      className === undefined
        ? `-max-exports=${max}`
        : `maxExports=${max} of StorageClass ${JSON.stringify(className)}`;
    const message = `Waiting: all volumes that ${limited} allows exist. The claim is provisioned once one of them is deleted`;
    if (this.#recorded.get(uid) === message) return;
    this.#recorded.set(uid, message);
    const about = { kind: 'PersistentVolumeClaim', apiVersion: 'v1', namespace, name, uid };
    this.#recorder.event(about, 'Normal', 'ProvisioningWaiting', message, { once: true });
  }

  /** The claim is gone, or has its volume. */
  forget(uid: string): void {
    this.#recorded.delete(uid);
  }
}
