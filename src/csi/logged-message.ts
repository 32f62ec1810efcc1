import { inspect } from 'node:util';
import { strippedText } from '../base/secret-string.ts';

/**
 * A CSI message as a log field: prints without its secret fields, in JSON and in `util.inspect`. The copy without them
 * is made when it is printed, so a message whose level is off costs nothing (CSI spec, "Secrets Requirements").
 */
export class LoggedMessage {
  readonly #message: object;
  readonly #secretFields: ReadonlySet<string> | undefined;

  /** @param secretFields - names of the fields marked `csi_secret`; undefined when the message has none. */
  constructor(message: object, secretFields: ReadonlySet<string> | undefined) {
    this.#message = message;
    this.#secretFields = secretFields;
  }

  toJSON(): object {
    const secret = this.#secretFields;
    if (secret === undefined) return this.#message;
    return Object.fromEntries(
      Object.entries(this.#message).map(([key, value]) => [key, secret.has(key) ? strippedText : (value as unknown)]),
    );
  }

  [inspect.custom](): object {
    return this.toJSON();
  }
}
