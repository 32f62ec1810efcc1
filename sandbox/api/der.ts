/** Distinguished encoding (ITU-T X.690) of the few types a certificate is made of. */

/** One value: tag, length, content. */
export function der(tag: number, ...contents: Buffer[]): Buffer {
  const content = Buffer.concat(contents);
  const length: number[] = [];
  for (let rest = content.length; rest > 0; rest >>>= 8) length.unshift(rest & 0xff);
  const head = content.length < 0x80 ? [tag, content.length] : [tag, 0x80 | length.length, ...length];
  return Buffer.concat([Buffer.from(head), content]);
}

export function sequence(...items: Buffer[]): Buffer {
  return der(0x30, ...items);
}

export function set(...items: Buffer[]): Buffer {
  return der(0x31, ...items);
}

/** A non-negative integer from its big-endian bytes. */
export function integer(bytes: Buffer): Buffer {
  const first = bytes[0] ?? 0;
  return der(0x02, first < 0x80 ? bytes : Buffer.concat([Buffer.from([0]), bytes]));
}

export function bool(value: boolean): Buffer {
  return der(0x01, Buffer.from([value ? 0xff : 0]));
}

export function bitString(bytes: Buffer, unusedBits = 0): Buffer {
  return der(0x03, Buffer.from([unusedBits]), bytes);
}

export function octetString(bytes: Buffer): Buffer {
  return der(0x04, bytes);
}

export function utf8(text: string): Buffer {
  return der(0x0c, Buffer.from(text));
}

/** A UTC time of the years 1950 to 2049. */
export function utcTime(wallMs: number): Buffer {
  const digits = new Date(wallMs).toISOString().replaceAll(/[-:T]/g, '');
  return der(0x17, Buffer.from(`${digits.slice(2, 14)}Z`));
}

/** An object identifier such as `2.5.29.19`. */
export function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  const bytes = [first * 40 + second];
  for (const arc of rest) {
    const groups = [arc & 0x7f];
    for (let left = arc >>> 7; left > 0; left >>>= 7) groups.unshift((left & 0x7f) | 0x80);
    bytes.push(...groups);
  }
  return der(0x06, Buffer.from(bytes));
}

/** A value under an explicit context tag. */
export function explicit(number: number, content: Buffer): Buffer {
  return der(0xa0 | number, content);
}
