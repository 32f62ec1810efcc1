const factors: Record<string, bigint> = {
  '': 1n,
  k: 10n ** 3n,
  M: 10n ** 6n,
  G: 10n ** 9n,
  T: 10n ** 12n,
  P: 10n ** 15n,
  Ki: 1n << 10n,
  Mi: 1n << 20n,
  Gi: 1n << 30n,
  Ti: 1n << 40n,
  Pi: 1n << 50n,
};

/** The largest value of an int64. */
export const maxInt64 = (1n << 63n) - 1n;

/**
 * Reads whole bytes, plain or with one of the suffixes k, M, G, T, P, Ki, Mi, Gi, Ti, Pi: `10Gi`, `5000`.
 *
 * @returns undefined when the text is anything else, or more than an int64 holds.
 */
export function parseByteSize(text: string): bigint | undefined {
  const match = /^([0-9]{1,19})(k|[MGTP]|[KMGTP]i)?$/.exec(text);
  if (match === null) return undefined;
  const bytes = BigInt(match[1] ?? '') * (factors[match[2] ?? ''] ?? 1n);
  return bytes <= maxInt64 ? bytes : undefined;
}
