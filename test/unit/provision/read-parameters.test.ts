import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ParameterError, readParameters } from '../../../src/provision/read-parameters.ts';

const keys = ['gid', 'rootSquash', 'size'];
const refused = (message: string | RegExp) => ({ name: ParameterError.name, message });

describe('readParameters', () => {
  test('gives each known parameter in its type, and undefined for what is absent', () => {
    const parameters = readParameters({ parameters: { gid: 'none', rootSquash: 'T', size: '1500m' } }, { keys });
    assert.equal(parameters.text('gid'), 'none');
    assert.equal(parameters.boolean('rootSquash'), true);
    assert.equal(parameters.bytes('size'), 2n);
    const absent = readParameters({}, { keys });
    assert.deepEqual(
      [absent.text('gid'), absent.boolean('rootSquash'), absent.bytes('size')],
      Array(3).fill(undefined),
    );
  });

  test('refuses unknown keys, unless they are to be ignored', () => {
    const storageClass = { parameters: { foo: 'x' } };
    assert.throws(() => readParameters(storageClass, { keys }), refused('invalid parameter: "foo"'));
    assert.equal(readParameters(storageClass, { keys, strict: false }).text('gid'), undefined);
  });

  test('compares keys exactly, or in any case', () => {
    const storageClass = { parameters: { ROOTSQUASH: 'false' } };
    assert.throws(() => readParameters(storageClass, { keys }), refused('invalid parameter: "ROOTSQUASH"'));
    assert.equal(readParameters(storageClass, { keys, ignoreCase: true }).boolean('rootSquash'), false);
    const twice = { parameters: { gid: '1', GID: '2' } };
    assert.throws(
      () => readParameters(twice, { keys, ignoreCase: true }),
      refused(/"gid" and "GID" differ only in case/),
    );
  });

  test('names the parameter whose value is no boolean and no quantity', () => {
    const parameters = readParameters({ parameters: { rootSquash: 'yes', size: 'big' } }, { keys });
    const noBoolean = 'invalid value for parameter rootSquash: strconv.ParseBool: parsing "yes": invalid syntax';
    assert.throws(() => parameters.boolean('rootSquash'), refused(noBoolean));
    assert.throws(() => parameters.bytes('size'), refused(/^invalid value for parameter size: invalid quantity "big"/));
    assert.throws(() => parameters.text('other'), TypeError);
  });
});
