/** Control characters, and those that turn the direction of a text or join lines: a terminal would act on them. */
const unprintable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

/** A foreign text in one line for a terminal: what is no printable character is escaped as in JSON. */
export function printable(text: string): string {
  return text.replaceAll(unprintable, (character) =>
    [...Array(character.length).keys()]
      .map((index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`)
      .join(''),
  );
}
