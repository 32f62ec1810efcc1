import { once } from 'node:events';
import { createInterface } from 'node:readline/promises';
import { printable } from '../base/printable.ts';
import type { SubcommandCall } from './subcommand-call.ts';

/**
 * Asks the operator for a "yes".
 *
 * @param heading - one line, without a line break.
 * @param items - what it is about, a line each.
 * @returns false for any other answer, and at the end of the input.
 */
export async function isAgreedTo(
  { stdin, stderr, signal }: SubcommandCall,
  { heading, items, question }: { heading: string; items: readonly string[]; question: string },
): Promise<boolean> {
  stderr.write(`${heading}\n`);
  for (const item of items) stderr.write(`  ${printable(item)}\n`);
  const lines = createInterface({ input: stdin });
  try {
    stderr.write(`${question} Type "yes": `);
    const ended = once(lines, 'close', { signal }).then(() => '');
    const answer = await Promise.race([lines.question('', { signal }), ended]);
    return answer.trim().toLowerCase() === 'yes';
  } finally {
    lines.close();
  }
}
