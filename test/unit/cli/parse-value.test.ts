import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseGoFloat, parseGoInt, parseGoUint } from '../../../src/cli/parse-value.ts';

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
    ['1_0', 10],
    ['0_1', 1],
    ['1_0.5_0e1_0', 10.5e10],
    ['0x1p4', 16],
    ['0X1P+4', 16],
    ['-0x1P-4', -0.0625],
    ['0x_1_0p4', 256],
    ['0x1p1_0', 1024],
    ['0x1.8p1', 3],
    ['0x1.p1', 2],
    ['0x.8p1', 1],
    ['0x10.8p0', 16.5],
    ['0x1_0.0_8p0', 16.03125],
    ['0x1p-1074', 5e-324],
    ['0x10000000000000000000000p-1160', 2 ** -1072],
    ['0x0p1000000000000', 0],
    ['0x1p-99999999999', 0],
  ];
  for (const [text, want] of accepted) test(`${text} is ${want}`, () => assert.equal(parseGoFloat(text), want));

  for (const text of ['', 'x', '.', '1e', '+nan', '0x', ' 1', '1,5'].concat(
    ['1_', '_1', '1__0', '1_.5', '1._5', '1e_5', 'in_f', '0b1', '0x1', '0x1p', '0xp1', '0x.p1', '0x1_p4', '0x1p_4'],
    ['0x1_.8p0', '0x1._8p0', '0x_.8p0', '0x__1p0', '0x1e5'],
  )) {
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
    assert.equal(parseGoFloat('0x1.fffffep127', 32), 2 ** 128 - 2 ** 104);
    assert.throws(() => parseGoFloat('0x1.ffffffp127', 32), { outOfRange: true });
    assert.throws(() => parseGoFloat('-0x1p1000000000000'), { outOfRange: true });
  });
  test('single precision rounds', () => assert.equal(parseGoFloat('0.1', 32), Math.fround(0.1)));
});
