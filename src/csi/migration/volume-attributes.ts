/** Volume attributes with keys in lower case, for drivers that take them in any. Of several spellings one that is not empty counts. */
export function attributesInLowerCase(attributes: Record<string, string> = {}): ReadonlyMap<string, string> {
  const lowered = new Map<string, string>();
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== '' || !lowered.has(key.toLowerCase())) lowered.set(key.toLowerCase(), value);
  }
  return lowered;
}
