import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  readCapabilities,
  readCapability,
  readCapacityRange,
  required,
  requiredName,
} from '../../../sandbox/hostpath/arguments.ts';

const invalid = { codeName: 'INVALID_ARGUMENT' };
const mode = (name: string | number) => ({ mount: {}, access_mode: { mode: name } });

describe('required', () => {
  for (const value of [undefined, null, '', []]) {
    test(`${JSON.stringify(value)} is missing`, () => {
      assert.throws(() => required(value, 'field'), { ...invalid, message: 'field is required' });
    });
  }
  test('anything else is passed on', () => assert.equal(required('x', 'field'), 'x'));
});

describe('requiredName', () => {
  test('takes 128 bytes and no more', () => {
    assert.equal(requiredName('ä'.repeat(64)).length, 64);
    assert.throws(() => requiredName('ä'.repeat(64) + 'x'), invalid);
  });
});

describe('readCapability', () => {
  test('needs SINGLE_NODE_MULTI_WRITER for its two modes', () => {
    assert.deepEqual(readCapability(mode('SINGLE_NODE_SINGLE_WRITER'), true), {
      type: 'mount',
      mode: 'SINGLE_NODE_SINGLE_WRITER',
    });
    assert.throws(() => readCapability(mode('SINGLE_NODE_SINGLE_WRITER'), false), invalid);
  });
  for (const name of ['UNKNOWN', 'NEWER_MODE', 99]) {
    test(`refuses the mode ${name}`, () => assert.throws(() => readCapability(mode(name), true), invalid));
  }
});

test('capabilities share one access type', () => {
  assert.equal(readCapabilities([mode('SINGLE_NODE_WRITER'), mode('MULTI_NODE_READER_ONLY')], true), 'mount');
  const block = { block: {}, access_mode: { mode: 'SINGLE_NODE_WRITER' } };
  assert.equal(readCapabilities([block], true), 'block');
  assert.throws(() => readCapabilities([block, mode('SINGLE_NODE_WRITER')], true), invalid);
});

describe('readCapacityRange', () => {
  const cases = [
    { name: 'nothing', range: undefined, want: { requiredBytes: 0n, limitBytes: undefined } },
    {
      name: 'a zero limit is none',
      range: { required_bytes: '5', limit_bytes: '0' },
      want: { requiredBytes: 5n, limitBytes: undefined },
    },
    {
      name: 'the largest int64',
      range: { limit_bytes: '9223372036854775807' },
      want: { requiredBytes: 0n, limitBytes: 9_223_372_036_854_775_807n },
    },
  ];
  for (const { name, range, want } of cases) {
    test(name, () => assert.deepEqual(readCapacityRange(range), want));
  }
  test('below zero is INVALID_ARGUMENT', () => {
    assert.throws(() => readCapacityRange({ limit_bytes: '-1' }), invalid);
  });
  test('a limit below the required size is OUT_OF_RANGE', () => {
    assert.throws(() => readCapacityRange({ required_bytes: '2', limit_bytes: '1' }), { codeName: 'OUT_OF_RANGE' });
  });
});
