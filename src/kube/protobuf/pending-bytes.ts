import { MalformedMessageError } from './wire-reader.ts';

/** No object of the API is larger; a garbled length must not have us wait for gigabytes. */
const maxElementBytes = 64 * 1024 * 1024;

/** Splits chunks into elements that may lie in several of them. */
export class PendingBytes {
  readonly #take: (data: Buffer, at: number) => number;
  #pieces: Buffer[] = [];
  #length = 0;
  #needed = 1;

  /**
   * @param take - takes the element at a position. Returns the position after it, or, negative, how many bytes from its
   * start are needed at least.
   */
  constructor(take: (data: Buffer, at: number) => number) {
    this.#take = take;
  }

  /** Bytes of an element that is not complete. */
  get length(): number {
    return this.#length;
  }

  /** Takes the elements that are complete with this chunk. @throws {MalformedMessageError} for one that is too long. */
  push(chunk: Buffer): void {
    this.#pieces.push(chunk);
    this.#length += chunk.length;
    if (this.#length < this.#needed) return;
    const data = this.#pieces.length === 1 ? chunk : Buffer.concat(this.#pieces, this.#length);
    let at = 0;
    this.#needed = 1;
    while (at < data.length) {
      const next = this.#take(data, at);
      if (next < 0) {
        this.#needed = -next;
        break;
      }
      at = next;
    }
    if (this.#needed > maxElementBytes) throw new MalformedMessageError(`an element has ${this.#needed} bytes`);
    this.#pieces = at === data.length ? [] : [data.subarray(at)];
    this.#length = data.length - at;
  }
}
