import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { driverParameters, fsTypeOf, reservedPrefix } from '../../../src/csi/class-parameters.ts';

const parameters = fc.dictionary(fc.string(), fc.string());

describe('driverParameters', () => {
  test('passes every key without the reserved prefix, unchanged', () => {
    const own = parameters.map((all) =>
      Object.fromEntries(Object.entries(all).filter(([key]) => !key.startsWith(reservedPrefix))),
    );
    fc.assert(fc.property(own, (all) => assert.deepEqual(driverParameters(all), all)));
  });

  test('never passes a reserved key', () => {
    fc.assert(
      fc.property(parameters, fc.string(), (all, rest) => {
        const key = reservedPrefix + rest;
        try {
          assert.ok(!(key in driverParameters({ ...all, [key]: 'x' })));
        } catch (error) {
          assert.match((error as Error).message, /^failed to strip CSI Parameters of prefixed keys/);
        }
      }),
    );
  });

  test('of several unknown keys the first in the order of bytes is reported', () => {
    const unknown = { 'csi.storage.k8s.io/𝄞': 'x', 'csi.storage.k8s.io/\uff5e': 'y' };
    assert.throws(() => driverParameters(unknown), /unknown parameter key "csi\.storage\.k8s\.io\/\uff5e"/);
  });

  test('the prefix counts in its own spelling only', () => {
    const other = { 'CSI.storage.k8s.io/fstype': 'x', 'xcsi.storage.k8s.io/bim': 'y' };
    assert.deepEqual(driverParameters(other), other);
  });

  test('a key named like a part of every object is a key like others', () => {
    const odd = JSON.parse('{"__proto__":"x","constructor":"y"}') as Record<string, string>;
    assert.deepEqual(Object.entries(driverParameters(odd)).sort(), Object.entries(odd).sort());
  });
});

describe('fsTypeOf', () => {
  test('any single spelling of fstype counts', () => {
    const spelling = fc
      .tuple(...Array.from('fstype').map((letter) => fc.constantFrom(letter, letter.toUpperCase())))
      .map((letters) => letters.join(''));
    fc.assert(
      fc.property(spelling, fc.string({ minLength: 1 }), fc.string(), (key, value, fallback) => {
        assert.equal(fsTypeOf({ [key]: value }, fallback), value);
        assert.equal(fsTypeOf({ [key]: '' }, fallback), fallback);
      }),
    );
  });
});
