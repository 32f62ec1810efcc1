import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';

/** A certificate and its private key, as PEM texts. */
interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

const dayMs = 86_400_000;
const ecdsaWithSha256 = sequence(oid('1.2.840.10045.4.3.2'));

/**
 * A certificate authority for the life of a process: Node checks certificates but makes none. P-256 keys, valid from
 * yesterday for ten days.
 *
 * @see RFC 5280, "Certificate and Certificate Extensions Profile".
 */
export class CertificateAuthority {
  /** PEM text of its own certificate, for clients to trust. */
  readonly cert: string;
  readonly #key: KeyObject;
  readonly #name: Buffer;
  readonly #nowMs: number;

  constructor(options: { nowMs: number }) {
    this.#nowMs = options.nowMs;
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    this.#key = privateKey;
    this.#name = distinguishedName('sandbox-ca', []);
    this.cert = this.#certificate(this.#name, publicKey, [
      extension('2.5.29.19', true, sequence(bool(true))),
      extension('2.5.29.15', true, bitString(Buffer.from([0x86]), 1)), // digital signature, signs certificates and lists
    ]);
  }

  /** A certificate for a server on this machine: `localhost`, `127.0.0.1`, `::1`. */
  server(): KeyPair {
    const loopback6 = Buffer.alloc(16);
    loopback6[15] = 1;
    const names = [der(0x82, Buffer.from('localhost')), der(0x87, Buffer.from([127, 0, 0, 1])), der(0x87, loopback6)];
    return this.#issue(distinguishedName('sandbox', []), '1.3.6.1.5.5.7.3.1', [
      extension('2.5.29.17', false, sequence(...names)),
    ]);
  }

  /** A certificate that makes its holder the user `name` in `groups`. */
  client(name: string, groups: readonly string[] = []): KeyPair {
    return this.#issue(distinguishedName(name, groups), '1.3.6.1.5.5.7.3.2', []);
  }

  #issue(subject: Buffer, usage: string, extensions: Buffer[]): KeyPair {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const cert = this.#certificate(subject, publicKey, [
      extension('2.5.29.15', true, bitString(Buffer.from([0x80]), 7)), // digital signature
      extension('2.5.29.37', false, sequence(oid(usage))),
      ...extensions,
    ]);
    return { cert, key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() };
  }

  #certificate(subject: Buffer, publicKey: KeyObject, extensions: Buffer[]): string {
    const serial = randomBytes(16);
    serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x40;
    const body = sequence(
      explicit(0, integer(Buffer.from([2]))),
      integer(serial),
      ecdsaWithSha256,
      this.#name,
      sequence(utcTime(this.#nowMs - dayMs), utcTime(this.#nowMs + 9 * dayMs)),
      subject,
      publicKey.export({ type: 'spki', format: 'der' }),
      explicit(3, sequence(...extensions)),
    );
    const signed = sequence(body, ecdsaWithSha256, bitString(sign('sha256', body, this.#key)));
    const lines = signed.toString('base64').match(/.{1,64}/g) ?? [];
    return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
  }
}

function distinguishedName(commonName: string, organisations: readonly string[]): Buffer {
  const parts = [...organisations.map((name) => attribute('2.5.4.10', name)), attribute('2.5.4.3', commonName)];
  return sequence(...parts);
}

function attribute(type: string, value: string): Buffer {
  return set(sequence(oid(type), utf8(value)));
}

function extension(type: string, critical: boolean, value: Buffer): Buffer {
  return sequence(oid(type), ...(critical ? [bool(true)] : []), octetString(value));
}

/** One value in Distinguished encoding (ITU-T X.690): tag, length, content. */
function der(tag: number, ...contents: Buffer[]): Buffer {
  const content = Buffer.concat(contents);
  const length: number[] = [];
  for (let rest = content.length; rest > 0; rest >>>= 8) length.unshift(rest & 0xff);
  const head = content.length < 0x80 ? [tag, content.length] : [tag, 0x80 | length.length, ...length];
  return Buffer.concat([Buffer.from(head), content]);
}

function sequence(...items: Buffer[]): Buffer {
  return der(0x30, ...items);
}

export function set(...items: Buffer[]): Buffer {
  return der(0x31, ...items);
}

/** A non-negative integer from its big-endian bytes. */
function integer(bytes: Buffer): Buffer {
  const first = bytes[0] ?? 0;
  return der(0x02, first < 0x80 ? bytes : Buffer.concat([Buffer.from([0]), bytes]));
}

function bool(value: boolean): Buffer {
  return der(0x01, Buffer.from([value ? 0xff : 0]));
}

function bitString(bytes: Buffer, unusedBits = 0): Buffer {
  return der(0x03, Buffer.from([unusedBits]), bytes);
}

function octetString(bytes: Buffer): Buffer {
  return der(0x04, bytes);
}

export function utf8(text: string): Buffer {
  return der(0x0c, Buffer.from(text));
}

/** A UTC time of the years 1950 to 2049. */
function utcTime(wallMs: number): Buffer {
  const digits = new Date(wallMs).toISOString().replaceAll(/[-:T]/g, '');
  return der(0x17, Buffer.from(`${digits.slice(2, 14)}Z`));
}

/** An object identifier such as `2.5.29.19`. */
function oid(dotted: string): Buffer {
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
function explicit(number: number, content: Buffer): Buffer {
  return der(0xa0 | number, content);
}
