/** Volume attributes with keys in lower case, for drivers that take them in any. Of several spellings the last counts. */
export function attributesInLowerCase(attributes: Record<string, string> = {}): ReadonlyMap<string, string> {
  return new Map(Object.entries(attributes).map(([key, value]) => [key.toLowerCase(), value]));
}
