/** What to do, with a command that can be copied. */
import { shellCommand } from '../base/shell-word.ts';

/** A sentence without its full stop, and a command; the sentence alone where words of the command cannot be copied. */
export function withCommand(text: string, words: readonly string[] | undefined): string {
  const command = words && shellCommand(words);
  const plain = text.trim().replace(/\.$/, '');
  return command === undefined ? plain : `${plain}: ${command}`;
}

/** What to do about something that has failed, and once it has lasted too long. */
export interface LastingCure {
  /** Without a full stop. */
  cure: string;
  /** Of what passes by itself: what to do once it has lasted too long. */
  late?: string | undefined;
  /** Whether the log of the driver says more. */
  log?: boolean | undefined;
}

/** @param known.log - a sentence that says where the log of the driver is, without its full stop. */
export function cureText(
  { cure, late, log: isLogged }: LastingCure,
  { isLate, log }: { isLate: boolean; log: string },
): string {
  if (late !== undefined && !isLate) return lasting(cure, late);
  const text = isLate ? (late ?? cure) : cure;
  if (isLogged !== true) return text;
  return text === '' ? log : `${text}. ${log}`;
}

/** What to do about something that usually passes by itself. All without full stops. */
export function lasting(now: string, later: string): string {
  return `${now}. If it lasts: ${later.charAt(0).toLowerCase()}${later.slice(1)}`;
}
