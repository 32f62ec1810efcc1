import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { isOlderVersion, orderOf } from '../../../../src/kube/client/resource-version.ts';

describe('isOlderVersion', () => {
  const cases = [
    { version: '99', than: '100', older: true },
    { version: '100', than: '100', older: false },
    { version: '101', than: '100', older: false },
    { version: '9007199254740992', than: '9007199254740993', older: true },
    { version: undefined, than: '100', older: false },
    { version: 'a', than: 'b', older: false },
  ];
  for (const { version, than, older } of cases) {
    test(`${version} is ${older ? '' : 'not '}older than ${than}`, () =>
      assert.equal(isOlderVersion(version, than), older));
  }
});

describe('the order of versions', () => {
  test('is that of numbers', () => assert.equal(orderOf('42'), 42));

  // an empty version and 0 ask for any state, and what is no number, or not exactly one, cannot be compared
  for (const version of [undefined, '', '0', '007', '-1', 'a', '1.5', '9007199254740993']) {
    test(`does not know ${JSON.stringify(version)}`, () => assert.ok(Number.isNaN(orderOf(version))));
  }
});
