/** An explanation as text: what holds it and what to do, then a line per step. */
import { printable } from '../base/printable.ts';
import { wrappedText } from '../base/wrapped-text.ts';
import type { Explanation, Step, Verdict } from './explanation.ts';

const marks: Readonly<Record<Step['state'], string>> = { ok: '✓', waiting: '…', stuck: '✗', unknown: '?' };
/** Of a terminal: green, yellow, red, magenta. */
const colours: Readonly<Record<Step['state'], number>> = { ok: 32, waiting: 33, stuck: 31, unknown: 35 };
const stateOf: Readonly<Record<Verdict, Step['state']>> = {
  bound: 'ok',
  waiting: 'waiting',
  stuck: 'stuck',
  unknown: 'unknown',
};

export interface TextOptions {
  /** Marks and verdict in the colours of a terminal. */
  colour: boolean;
  /** Max characters in a line. Default 100. */
  columns?: number | undefined;
}

/** One screen of text, ending in a line break. */
export function explanationText(explanation: Explanation, { colour, columns = 100 }: TextOptions): string {
  const { object, verdict, cause, message, cure, steps } = explanation;
  const paint = (text: string, state: Step['state']): string =>
    colour ? `\u001b[${colours[state]}m${text}\u001b[0m` : text;
  const width = Math.max(0, ...steps.map(({ step }) => step.length)) + 2;
  const last = steps.at(-1);
  const lines = steps.map((each) => {
    const detail = each === last && cause !== null ? '' : singleLine(each.detail);
    const name = detail === '' ? each.step : each.step.padEnd(width);
    return `  ${paint(marks[each.state], each.state)} ${name}${shortened(detail, columns - width - 4)}`;
  });
  const label = cause === null ? verdict : `${verdict}: ${cause}`;
  return [
    `${singleLine(object)}: ${paint(cause === verdict ? verdict : label, stateOf[verdict])}`,
    ...wrappedText(singleLine(message), columns),
    ...(cure === '' ? [] : cureLines(singleLine(cure), columns)),
    ...(lines.length === 0 ? [] : ['', ...lines]),
    '',
  ].join('\n');
}

/** A command stands alone, so that it can be copied. */
function cureLines(cure: string, columns: number): string[] {
  const [, text, command] = /^(.*): ((?:kubectl|csi-provisioner) .*)$/.exec(cure) ?? [];
  if (text === undefined || command === undefined) return wrappedText(`What to do: ${cure}.`, columns);
  return [...wrappedText(`What to do: ${text}:`, columns), `  ${command}`];
}

/** One line, for where the same text is not drawn again. */
export function explanationLine({ object, verdict, cause, message }: Explanation): string {
  const label = cause === null || cause === verdict ? verdict : `${verdict} (${cause})`;
  return `${singleLine(object)}: ${label}: ${singleLine(message)}`;
}

/** Text from the cluster must neither break lines, nor move the cursor of a terminal, nor change its text direction. */
function singleLine(text: string): string {
  return printable(text.replaceAll(/\s+/g, ' ').trim());
}

function shortened(text: string, room: number): string {
  return text.length <= Math.max(room, 20) ? text : `${text.slice(0, Math.max(room, 20) - 1)}…`;
}
