/** Bytes that are no protobuf message, or another one than expected. */
export class MalformedMessageError extends Error {
  override readonly name = 'MalformedMessageError';
}

/** How a field's value is written (Protocol Buffers, "Encoding"); groups do not occur in the Kubernetes API. */
export const wireType = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const;

/** A part of the bytes. */
export interface Span {
  start: number;
  end: number;
}

/** Walks through the wire format of protobuf. Every method throws `MalformedMessageError` at the end of the bytes. */
export class WireReader {
  readonly bytes: Buffer;
  position: number;

  constructor(bytes: Buffer, position = 0) {
    this.bytes = bytes;
    this.position = position;
  }

  /** A tag, a length or an unsigned number; exact up to 2^53. */
  unsigned(): number {
    let byte = this.#next();
    if (byte < 0x80) return byte;
    let value = byte & 0x7f;
    for (let factor = 0x80; factor < 2 ** 70; factor *= 0x80) {
      byte = this.#next();
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
    }
    throw new MalformedMessageError('a number has more than ten bytes');
  }

  /** An int32 or int64; rounded beyond 2^53 as `JSON.parse` does. */
  signed(): number {
    const start = this.position;
    const value = this.unsigned();
    if (this.position - start < 8) return value;
    let exact = 0n;
    for (let at = this.position - 1; at >= start; at--) exact = (exact << 7n) | BigInt((this.bytes[at] ?? 0) & 0x7f);
    return Number(BigInt.asIntN(64, exact));
  }

  /** Reads a length. @returns the position after as many bytes. */
  end(): number {
    const end = this.unsigned() + this.position;
    if (end > this.bytes.length) throw new MalformedMessageError('a value is longer than its message');
    return end;
  }

  /** Passes over bytes. @returns where they are: a Buffer of them would cost more than all that is read of a small object. */
  span(): Span {
    const end = this.end();
    const start = this.position;
    this.position = end;
    return { start, end };
  }

  text(): string {
    const end = this.end();
    const start = this.position;
    this.position = end;
    return start === end ? '' : this.bytes.toString('utf8', start, end);
  }

  /** Passes over the value of a field that is not read. */
  skip(type: number): void {
    if (type === wireType.bytes) this.position = this.end();
    else if (type === wireType.varint) this.unsigned();
    else if (type === wireType.fixed64) this.position += 8;
    else if (type === wireType.fixed32) this.position += 4;
    else throw new MalformedMessageError(`there is no wire type ${type}`);
  }

  #next(): number {
    const byte = this.bytes[this.position++];
    if (byte === undefined) throw new MalformedMessageError('a message ends early');
    return byte;
  }
}
