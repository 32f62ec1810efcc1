/** What to do, with a command that can be copied. */
import { shellCommand } from '../base/shell-word.ts';

/** A sentence without its full stop, and a command; the sentence alone where words of the command cannot be copied. */
export function withCommand(text: string, words: readonly string[] | undefined): string {
  const command = words && shellCommand(words);
  const plain = text.trim().replace(/\.$/, '');
  return command === undefined ? plain : `${plain}: ${command}`;
}
