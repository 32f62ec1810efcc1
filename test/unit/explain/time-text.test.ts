import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { durationText, lastChangeMs } from '../../../src/explain/texts.ts';

const second = 1000;

describe('durationText', () => {
  for (const { ms, text } of [
    { ms: -5 * second, text: '0 s' },
    { ms: 119 * second, text: '119 s' },
    { ms: 120 * second, text: '2 min' },
    { ms: 119 * 60 * second, text: '119 min' },
    { ms: 120 * 60 * second, text: '2 h' },
    { ms: 49 * 3600 * second, text: '2 d' },
  ]) {
    test(`${ms} ms are ${text}`, () => assert.equal(durationText(ms), text));
  }
});

describe('lastChangeMs', () => {
  const creationTimestamp = '2026-03-01T08:00:00Z';

  test('is when somebody changed the object, such as the scheduler that chose a node', () => {
    const managedFields = [{ time: '2026-03-01T08:00:00Z' }, { time: '2026-03-01T11:30:00Z' }, {}];
    const changedMs = lastChangeMs({ metadata: { name: 'c', creationTimestamp, managedFields } });
    assert.equal(changedMs, Date.parse('2026-03-01T11:30:00Z'));
  });

  test('is when it was created, where nothing says who changed it', () => {
    assert.equal(lastChangeMs({ metadata: { name: 'c', creationTimestamp } }), Date.parse(creationTimestamp));
  });
});
