import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseGoFloat, parseGoInt, parseGoUint } from '../../../src/cli/go-numbers.ts';

describe('parseGoInt', () => {
  const accepted: [string, number][] = [
    ['0', 0],
    ['-0', 0],
    ['+7', 7],
    ['-1', -1],
    ['0x10', 16],
    ['0X1f', 31],
    ['-0x10', -16],
    ['0b1', 1],
    ['0o7', 7],
    ['010', 8],
    ['0_7', 7],
    ['1_000', 1000],
    ['0x_1', 1],
    ['9007199254740991', 9007199254740991],
    ['9223372036854775807', 2 ** 63],
    ['-9223372036854775808', -(2 ** 63)],
  ];
  for (const [text, want] of accepted) test(`${text} is ${want}`, () => assert.equal(parseGoInt(text), want));

  for (const text of ['', '+', '-', 'x', '1_', '_1', '1__0', '08', '0x', '0b2', '1.5', ' 1', '1e3', '0x1_']) {
    test(`"${text}" is no integer`, () => {
      assert.throws(() => parseGoInt(text), { message: `strconv.ParseInt: parsing "${text}": invalid syntax` });
    });
  }
  for (const text of ['9223372036854775808', '-9223372036854775809', '0x8000000000000000']) {
    test(`${text} does not fit`, () => {
      assert.throws(() => parseGoInt(text), {
        message: `strconv.ParseInt: parsing "${text}": value out of range`,
        outOfRange: true,
      });
    });
  }
});

describe('parseGoUint', () => {
  test('reads prefixes', () => assert.equal(parseGoUint('0x10'), 16));
  test('reads decimal digits only where asked to', () => {
    assert.equal(parseGoUint('010', { decimalOnly: true }), 10);
    assert.throws(() => parseGoUint('0x10', { decimalOnly: true }), {
      message: 'strconv.ParseUint: parsing "0x10": invalid syntax',
    });
  });
  for (const text of ['-1', '+1', '', 'x']) {
    test(`"${text}" is no unsigned integer`, () => {
      assert.throws(() => parseGoUint(text), { message: `strconv.ParseUint: parsing "${text}": invalid syntax` });
    });
  }
  test('a value beyond 64 bits is out of range', () => {
    assert.throws(() => parseGoUint('18446744073709551616'), {
      message: 'strconv.ParseUint: parsing "18446744073709551616": value out of range',
    });
  });
  test('a value beyond the given width is out of range', () => {
    assert.equal(parseGoUint('2147483647', { bits: 31 }), 2147483647);
    assert.throws(() => parseGoUint('2147483648', { bits: 31 }), { outOfRange: true });
  });
});

describe('parseGoFloat', () => {
  const accepted: [string, number][] = [
    ['5', 5],
    ['-0.5', -0.5],
    ['.5', 0.5],
    ['5.', 5],
    ['1e3', 1000],
    ['1E-3', 0.001],
    ['inf', Infinity],
    ['+Inf', Infinity],
    ['-infinity', -Infinity],
    ['NaN', NaN],
  ];
  for (const [text, want] of accepted) test(`${text} is ${want}`, () => assert.equal(parseGoFloat(text), want));

  for (const text of ['', 'x', '.', '1e', '+nan', '1_0', '0x', ' 1', '1,5']) {
    test(`"${text}" is no number`, () => {
      assert.throws(() => parseGoFloat(text), { message: `strconv.ParseFloat: parsing "${text}": invalid syntax` });
    });
  }
  test('the width decides what is out of range', () => {
    assert.equal(parseGoFloat('1e39'), 1e39);
    assert.throws(() => parseGoFloat('1e39', 32), {
      message: 'strconv.ParseFloat: parsing "1e39": value out of range',
    });
    assert.throws(() => parseGoFloat('1e309'), { outOfRange: true });
  });
  test('single precision rounds', () => assert.equal(parseGoFloat('0.1', 32), Math.fround(0.1)));
});
