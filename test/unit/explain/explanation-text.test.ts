import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Explanation } from '../../../src/explain/explanation.ts';
import { explanationLine, explanationText } from '../../../src/explain/explanation-text.ts';

const explanation: Explanation = {
  object: 'ns/c',
  verdict: 'stuck',
  cause: 'driver-error',
  message: `Failed.\u001b[2J\nLast error: ${'word '.repeat(30)}`,
  cure: 'See its log',
  steps: [
    { step: 'class', state: 'ok', detail: `sc, ${'long '.repeat(30)}` },
    { step: 'hand-over', state: 'unknown', detail: 'not visible' },
    { step: 'attempt', state: 'stuck', detail: 'Failed.' },
  ],
};

describe('the text of an explanation', () => {
  const plain = explanationText(explanation, { colour: false, columns: 60 });

  test('has what holds it and what to do first, then a line for each step', () => {
    const lines = plain.split('\n');
    assert.equal(lines[0], 'ns/c: stuck: driver-error');
    assert.match(lines[1] ?? '', /^Failed\./);
    const cure = lines.indexOf('What to do: See its log.');
    assert.ok(cure > 1, plain);
    assert.equal(lines[cure + 1], '');
    assert.match(lines[cure + 2] ?? '', /^ {2}✓ class {6}sc, long .*…$/);
    assert.deepEqual(lines.slice(cure + 3), ['  ? hand-over  not visible', '  ✗ attempt', '']);
  });

  test('is no wider than the terminal', () => {
    for (const line of plain.split('\n')) assert.ok(line.length <= 60, line);
  });

  test('shows what would turn the direction of a terminal as an escape, as the audit does', () => {
    const turned = { ...explanation, message: 'pool \u202egnp.\u2066 is\u200b full\u2028!' };
    const text = explanationText(turned, { colour: false, columns: 200 });
    assert.ok(text.includes(String.raw`pool \u202egnp.\u2066 is\u200b full !`), text);
    assert.doesNotMatch(explanationLine(turned), /\p{Cf}/u);
  });

  test('has no control characters but line breaks, also in one line', () => {
    assert.doesNotMatch(plain.replaceAll('\n', ''), /\p{Cc}/u);
    assert.doesNotMatch(explanationLine(explanation), /\p{Cc}/u);
  });

  test('has colours only where they are asked for', () => {
    const coloured = explanationText(explanation, { colour: true, columns: 60 });
    assert.ok(coloured.includes('\u001b[31m✗\u001b[0m attempt'));
    // eslint-disable-next-line no-control-regex -- these are what is looked for
    assert.equal(coloured.replaceAll(/\u001b\[\d+m/g, ''), plain);
  });

  test('leaves out what to do where there is nothing to do', () => {
    const bound = { ...explanation, verdict: 'bound', cause: 'bound', message: 'Bound.', cure: '', steps: [] } as const;
    assert.equal(explanationText({ ...bound, steps: [] }, { colour: false }), 'ns/c: bound\nBound.\n');
    assert.equal(explanationLine({ ...bound, steps: [] }), 'ns/c: bound: Bound.');
  });
});
