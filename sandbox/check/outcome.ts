/** Ends a check with one failure. */
export class CheckFailed extends Error {
  override readonly name = 'CheckFailed';
  readonly section: string | undefined;

  constructor(message: string, section?: string) {
    super(message);
    this.section = section;
  }
}

/** Ends a check that does not apply; the message says why. */
export class CheckSkipped extends Error {
  override readonly name = 'CheckSkipped';
}
