/** An attempt for a claim ended without a volume and is not retried until something changes. Counted as failed, as in the original. */
export class Stopped {
  readonly reason: string;

  constructor(reason: string) {
    this.reason = reason;
  }
}
