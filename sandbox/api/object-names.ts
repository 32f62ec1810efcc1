const suffixLetters = 'bcdfghjklmnpqrstvwxz2456789';
const suffixLength = 5;
const baseLength = 58;

/** A number in [0,1), as `Math.random`. */
export type RandomSource = () => number;

/** A name made of `generateName`, cut to 58 characters, and five random characters. */
export function generatedName(base: string, random: RandomSource): string {
  let suffix = '';
  for (let index = 0; index < suffixLength; index++) {
    suffix += suffixLetters.charAt(Math.floor(random() * suffixLetters.length));
  }
  return base.slice(0, baseLength) + suffix;
}

/** A UUID of version 4 from a source that tests may seed. */
export function randomUid(random: RandomSource): string {
  let digits = '';
  for (let index = 0; index < 32; index++) digits += Math.floor(random() * 16).toString(16);
  const variant = (8 + Math.floor(random() * 4)).toString(16);
  return [
    digits.slice(0, 8),
    digits.slice(8, 12),
    `4${digits.slice(13, 16)}`,
    variant + digits.slice(17, 20),
    digits.slice(20),
  ].join('-');
}
