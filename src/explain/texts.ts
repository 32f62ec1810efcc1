/** How explanations say things: times, errors, and what to do. */
import { shellCommand } from '../base/shell-word.ts';
import type { KubeObject } from '../kube/kube-object.ts';

/** `45 s`, `12 min`, `3 h`, `5 d`: how long something takes or took, rounded down. */
export function durationText(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 120) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h` : `${Math.floor(hours / 24)} d`;
}

/** When an object was last changed by anybody, in milliseconds since the Unix epoch: its content is no older than that. */
export function lastChangeMs({ metadata }: KubeObject): number {
  const times = [metadata.creationTimestamp, ...(metadata.managedFields ?? []).map(({ time }) => time)];
  return Math.max(...times.flatMap((time) => Date.parse(time ?? '') || []));
}

/** How many characters of each end are quoted. */
const headChars = 160;
const tailChars = 400;

/** On one line. */
export function quotedError(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').trim();
  const leftOut = line.length - headChars - tailChars;
  if (leftOut <= 40) return line;
  const head = line.slice(0, headChars).replace(/\S*$/, '').trimEnd();
  const tail = line.slice(-tailChars).replace(/^\S*/, '').trimStart();
  const [named] = namedError.exec(line.slice(headChars, -tailChars)) ?? [];
  const middle = named === undefined ? '' : `${named.trim()} … `;
  return `${head || line.slice(0, headChars)} … ${middle}${tail || line.slice(-tailChars)}`.toWellFormed();
}

/** Storages name what is wrong in a field of such a name; the rest is often a description of the request. */
const namedError =
  /\b(?:error[ _-]?)?(?:code|reason|message|status)\b["']? ?[:=] ?["']?(?=[^"',;{}]*[a-z]{3})[^"',;{}]{3,160}/i;

/** More of an error than this is not searched for words, as that would take long; in characters. */
const readChars = 4096;

/** What is read of an error to find out what it means: both ends of a very long one. */
export function readPart(text: string): string {
  return text.length <= readChars ? text : `${text.slice(0, readChars / 2)} … ${text.slice(-readChars / 2)}`;
}

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
  /** Whether it rests on words that storages use for several problems: then it begins with `Unless the error says otherwise`. */
  byWords?: boolean | undefined;
}

/** @param known.log - a sentence that says where the log of the driver is, without its full stop. */
export function cureText(
  { cure, late, log: isLogged, byWords }: LastingCure,
  { isLate, log }: { isLate: boolean; log: string },
): string {
  if (late !== undefined && !isLate) return lasting(cure, late);
  const known = isLate ? (late ?? cure) : cure;
  const text = byWords === true ? unlessSaid(known) : known;
  if (isLogged !== true) return text;
  return text === '' ? log : `${text}. ${log}`;
}

/** A cure that is usual for such an error, and no more than that. Without its full stop. */
export function unlessSaid(cure: string): string {
  return `Unless the error says otherwise: ${lowerFirst(cure)}`;
}

/** What to do about something that usually passes by itself. All without full stops. */
export function lasting(now: string, later: string): string {
  return `${now}. If it lasts: ${lowerFirst(later)}`;
}

/** A sentence that goes on after a colon. */
export function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}
