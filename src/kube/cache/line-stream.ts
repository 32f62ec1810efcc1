const newline = 0x0a;

/**
 * Splits a body into lines. Bytes are joined before they are decoded, so a character split between two
 * chunks stays whole. A last line without its end is dropped.
 *
 * @param onChunk - called for each chunk before its lines.
 */
export async function* lines(body: AsyncIterable<Uint8Array>, onChunk?: () => void): AsyncGenerator<string> {
  let pending: Buffer[] = [];
  for await (const chunk of body) {
    onChunk?.();
    const buffer = asBuffer(chunk);
    let start = 0;
    for (let end = buffer.indexOf(newline); end !== -1; end = buffer.indexOf(newline, start)) {
      const rest = buffer.subarray(start, end);
      start = end + 1;
      if (pending.length === 0) {
        if (rest.length > 0) yield rest.toString('utf8');
        continue;
      }
      pending.push(rest);
      const line = Buffer.concat(pending).toString('utf8');
      pending = [];
      yield line;
    }
    if (start < buffer.length) pending.push(buffer.subarray(start));
  }
}

export function asBuffer(chunk: Uint8Array): Buffer {
  return Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
}
