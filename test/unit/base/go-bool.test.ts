import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseGoBool } from '../../../src/base/go-bool.ts';

describe('parseGoBool', () => {
  for (const word of ['1', 't', 'T', 'true', 'TRUE', 'True']) {
    test(`${word} is true`, () => assert.equal(parseGoBool(word), true));
  }
  for (const word of ['0', 'f', 'F', 'false', 'FALSE', 'False']) {
    test(`${word} is false`, () => assert.equal(parseGoBool(word), false));
  }
  for (const word of ['', 'yes', 'tRUE', ' true', '2']) {
    test(`"${word}" is neither`, () => {
      assert.throws(() => parseGoBool(word), {
        message: `strconv.ParseBool: parsing "${word}": invalid syntax`,
        outOfRange: false,
      });
    });
  }
});
