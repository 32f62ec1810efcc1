/** The configuration cannot be used; the message names the file, the variable or the field. */
export class KubeConfigError extends Error {
  override readonly name = 'KubeConfigError';
  /** What to do about it, as a sentence. */
  readonly cure: string;

  constructor(message: string, options: { cure: string; cause?: unknown }) {
    super(message, { cause: options.cause });
    this.cure = options.cure;
  }

  /** The same error with the cure in its message, for where only the message is shown. */
  withCure(): KubeConfigError {
    return new KubeConfigError(`${this.message}. ${this.cure}`, { cure: this.cure, cause: this });
  }
}
