const spellings: Readonly<Record<string, boolean>> = {
  ...Object.fromEntries(['1', 't', 'T', 'TRUE', 'true', 'True'].map((text) => [text, true])),
  ...Object.fromEntries(['0', 'f', 'F', 'FALSE', 'false', 'False'].map((text) => [text, false])),
};

/** A boolean as Go's `strconv.ParseBool` reads it; undefined for any other text, such as `yes` or an empty one. */
export function goBoolean(text: string): boolean | undefined {
  return Object.hasOwn(spellings, text) ? spellings[text] : undefined;
}
