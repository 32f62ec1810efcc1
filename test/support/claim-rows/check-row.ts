/** What `why` says against what a row expects. */
import assert from 'node:assert/strict';
import type { Explanation } from '../../../src/explain/explanation.ts';
import type { Row, World } from './row.ts';

/** As for `why`, without the namespace of a claim. */
export function objectOf({ object = 'c' }: Row, world: World): string {
  return typeof object === 'string' ? object : object(world);
}

export function checkRow(explanation: Explanation, row: Row): void {
  const all = JSON.stringify(explanation, undefined, 1);
  if ('healthy' in row) {
    const { cause, verdict } = explanation;
    assert.ok(cause !== null && row.healthy.includes(cause), all);
    assert.ok(verdict === 'bound' || verdict === 'waiting' || cause === 'not-found', all);
    if (cause === 'bound') assert.equal(explanation.cure, '', all);
    return;
  }
  assert.equal(explanation.cause, row.cause, all);
  assert.equal(explanation.verdict, row.verdict, all);
  assert.match(explanation.message, row.says);
  assert.match(explanation.cure, row.advises);
}
