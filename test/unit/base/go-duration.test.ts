import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import {
  formatGoDuration,
  GoDurationError,
  millisecondsOf,
  nanosecondsOf,
  parseGoDuration,
} from '../../../src/base/go-duration.ts';

const largest = (1n << 63n) - 1n;
const lowest = -(1n << 63n);

describe('parseGoDuration', () => {
  const accepted: [string, bigint][] = [
    ['0', 0n],
    ['+0', 0n],
    ['-0', 0n],
    ['0s', 0n],
    ['5s', 5_000_000_000n],
    ['+5s', 5_000_000_000n],
    ['-5s', -5_000_000_000n],
    ['1m30s', 90_000_000_000n],
    ['30s1m', 90_000_000_000n],
    ['1.5h', 5_400_000_000_000n],
    ['.5s', 500_000_000n],
    ['5.s', 5_000_000_000n],
    ['100ns', 100n],
    ['1us', 1_000n],
    ['1\u00b5s', 1_000n],
    ['1\u03bcs', 1_000n],
    ['1ms', 1_000_000n],
    ['0.3333333333333333333h', 1_200_000_000_000n],
    ['0.9223372036854775807h', 3_320_413_933_267n],
    ['0.100000000000000000000h', 360_000_000_000n],
    ['1.0000000009s', 1_000_000_000n],
    ['2562047h47m16.854775807s', largest],
    ['9223372036854775807ns', largest],
    ['-9223372036854775808ns', lowest],
    ['-2562047h47m16.854775808s', lowest],
  ];
  for (const [text, want] of accepted) {
    test(`${text} is ${want} ns`, () => assert.equal(parseGoDuration(text), want));
  }

  const rejected: [string, string][] = [
    ['', 'time: invalid duration ""'],
    ['abc', 'time: invalid duration "abc"'],
    ['-', 'time: invalid duration "-"'],
    ['+', 'time: invalid duration "+"'],
    ['.', 'time: invalid duration "."'],
    ['-.', 'time: invalid duration "-."'],
    ['.s', 'time: invalid duration ".s"'],
    ['+.s', 'time: invalid duration "+.s"'],
    ['s', 'time: invalid duration "s"'],
    [' 5s', 'time: invalid duration " 5s"'],
    ['--5s', 'time: invalid duration "--5s"'],
    ['1.2.3s', 'time: missing unit in duration "1.2.3s"'],
    ['5', 'time: missing unit in duration "5"'],
    ['1m30', 'time: missing unit in duration "1m30"'],
    ['00', 'time: missing unit in duration "00"'],
    ['1d', 'time: unknown unit "d" in duration "1d"'],
    ['1S', 'time: unknown unit "S" in duration "1S"'],
    ['5 s', 'time: unknown unit " s" in duration "5 s"'],
    ['5s ', 'time: unknown unit "s " in duration "5s "'],
    ['1e3s', 'time: unknown unit "e" in duration "1e3s"'],
    ['1\u00e4', 'time: unknown unit "\\xc3\\xa4" in duration "1\\xc3\\xa4"'],
    ['1"', 'time: unknown unit "\\"" in duration "1\\""'],
    ['1\n', 'time: unknown unit "\\x0a" in duration "1\\x0a"'],
    ['2562048h', 'time: invalid duration "2562048h"'],
    ['9223372036854775808ns', 'time: invalid duration "9223372036854775808ns"'],
    ['-9223372036854775809ns', 'time: invalid duration "-9223372036854775809ns"'],
    ['99999999999999999999ns', 'time: invalid duration "99999999999999999999ns"'],
  ];
  for (const [text, message] of rejected) {
    test(`${JSON.stringify(text)} is rejected`, () => {
      assert.throws(() => parseGoDuration(text), { name: 'GoDurationError', message });
    });
  }

  test('any text is either read or rejected with its own error', () => {
    const pieces = fc.constantFrom('1', '0', '9', '.', '-', '+', 'h', 'm', 's', 'n', 'u', '\u00b5', 'd', ' ', '_');
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 12 }), (parts) => {
        try {
          const value = parseGoDuration(parts.join(''));
          assert.ok(value >= lowest && value <= largest);
        } catch (error) {
          assert.ok(error instanceof GoDurationError);
        }
      }),
    );
  });
});

describe('formatGoDuration', () => {
  const cases: [bigint, string][] = [
    [0n, '0s'],
    [1n, '1ns'],
    [1_100n, '1.1\u00b5s'],
    [2_200_000n, '2.2ms'],
    [3_300_000_000n, '3.3s'],
    [60_000_000_000n, '1m0s'],
    [300_000_000_000n, '5m0s'],
    [3_600_000_000_000n, '1h0m0s'],
    [-245_000_000_000n, '-4m5s'],
    [4_001_000_000n, '4.001s'],
    [245_001_000_000n, '4m5.001s'],
    [1n << 62n, '1281023h53m38.427387904s'],
    [largest, '2562047h47m16.854775807s'],
    [lowest, '-2562047h47m16.854775808s'],
  ];
  for (const [nanoseconds, want] of cases) {
    test(`${nanoseconds} ns is ${want}`, () => assert.equal(formatGoDuration(nanoseconds), want));
  }

  test('what it prints is read back as the same duration, as far as floating point fractions allow', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: lowest, max: largest }), (nanoseconds) => {
        const back = parseGoDuration(formatGoDuration(nanoseconds));
        const difference = back > nanoseconds ? back - nanoseconds : nanoseconds - back;
        assert.ok(difference <= 1n, `${nanoseconds} came back as ${back}`);
      }),
    );
  });
});

describe('milliseconds', () => {
  test('keep fractions', () => assert.equal(millisecondsOf(1_500_000n), 1.5));
  test('survive the way to nanoseconds and back', () => {
    fc.assert(
      fc.property(fc.integer({ min: -1e9, max: 1e9 }), (ms) => assert.equal(millisecondsOf(nanosecondsOf(ms)), ms)),
    );
  });
});
