import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { durationText } from '../../../src/explain/time-text.ts';

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
