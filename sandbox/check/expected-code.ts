import type { CodeName } from '../hostpath/call-error.ts';
import type { Bench } from './bench.ts';
import type { Findings } from './check.ts';
import type { Answer } from './csi-client.ts';

/** Finds fault with a call that does not fail as it must. @param what - after the method's name, such as `without a name`. */
export function expectCode(
  findings: Findings,
  answer: Answer<unknown>,
  codes: readonly CodeName[],
  what: string,
): void {
  if (!answer.ok && codes.includes(answer.code)) return;
  const wanted = codes.join(' or ');
  const got = answer.ok ? 'OK' : answer.stalled ? 'no response' : `${answer.code} (${answer.message})`;
  findings.fail(`${answer.method} ${what} returned ${got}, expected ${wanted}`);
}

/** Finds fault with a call that does not succeed. */
export function expectOk(bench: Bench, findings: Findings, answer: Answer<unknown>, what: string): void {
  if (!answer.ok) findings.fail(`${what}: ${bench.described(answer)}`);
}

/** Judges the deletion of an id that the driver never gave. It must be OK; one that cannot be an id may be refused as such. */
export function judgeUnknown(bench: Bench, findings: Findings, answer: Answer<unknown>): void {
  if (answer.ok) return;
  const text = `the deletion of an unknown id must be OK: ${bench.described(answer)}`;
  if (answer.code === 'NOT_FOUND') findings.fail(text);
  else findings.warn(text);
}
