/** What is printed of a comparison. */
import type { Difference, Results } from './compare.ts';
import { intendedAs } from './intended.ts';

/** A line for each step and aspect, with its differences below; those that are not meant have a mark. */
export function tableText(ours: Results, peer: Results, found: readonly Difference[]): string {
  const steps = [...new Set([...ours.keys(), ...peer.keys()])];
  const lines = steps.map((step) => {
    const aspects = [...new Set([ours, peer].flatMap((results) => Object.keys(results.get(step) ?? {})))];
    const own = found.filter((each) => each.step === step);
    const words = aspects.map((aspect) => `${aspect} ${verdict(own.filter((each) => each.aspect === aspect))}`);
    return [`${step.padEnd(32)}${words.join(', ')}`, ...own.map((each) => `    ${differenceText(each)}`)].join('\n');
  });
  return lines.join('\n');
}

function verdict(found: readonly Difference[]): string {
  if (found.length === 0) return 'same';
  return found.every((each) => intendedAs(each) !== undefined) ? 'differs as meant' : 'DIFFERS';
}

function differenceText(difference: Difference): string {
  const { aspect, path, ours, peer } = difference;
  const meant = intendedAs(difference);
  const mark = meant === undefined ? '! ' : '  ';
  const why = meant === undefined ? '' : ` (${meant.row === undefined ? '' : `X${meant.row}: `}${meant.what})`;
  return `${mark}${[aspect, path].filter(Boolean).join(' ')}: ours ${text(ours)}, peer ${text(peer)}${why}`;
}

function text(value: unknown): string {
  return value === undefined ? 'none' : JSON.stringify(value);
}

/** The differences that nothing explains. */
export function unexplained(found: readonly Difference[]): Difference[] {
  return found.filter((each) => intendedAs(each) === undefined);
}
