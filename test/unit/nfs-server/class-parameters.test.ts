import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { volumeParameters } from '../../../provisioners/nfs-server/class-parameters.ts';

const read = (parameters?: Record<string, string>) =>
  volumeParameters({ metadata: { name: 'nfs' }, provisioner: 'example.com/nfs', ...(parameters && { parameters }) });

describe('the parameters of a class of nfs-provisioner', () => {
  test('may be left out', () => {
    assert.deepEqual(read(), { gid: undefined, squash: 'no_root_squash', mountOptions: '', maxExports: undefined });
  });

  test('are read in whatever case', () => {
    assert.deepEqual(read({ GID: '1001', RootSquash: 'T', mountoptions: 'vers=4.1', MAXEXPORTS: '5' }), {
      gid: 1001,
      squash: 'root_id_squash',
      mountOptions: 'vers=4.1',
      maxExports: 5,
    });
  });

  for (const text of ['none', 'NONE']) {
    test(`take ${text} for no group`, () => assert.equal(read({ gid: text }).gid, undefined));
  }

  test('take a range of group ids', () => {
    assert.equal(read({ gidMin: '3000' }).gid, 'allocated');
  });

  for (const gid of ['0', '-1', '+5', 'foo', '', ' 5', '4294967295', '18446744073709551615']) {
    test(`refuse the group id ${JSON.stringify(gid)}`, () => {
      assert.throws(() => read({ gid }), {
        message: `invalid value for parameter gid: ${gid}. valid values are: 'none' or a non-zero integer`,
      });
    });
  }

  for (const { parameters, message } of [
    { parameters: { foo: 'bar' }, message: /^invalid parameter: "foo"$/ },
    { parameters: { rootSquash: 'asdf' }, message: /^invalid value for parameter rootSquash: asdf. valid values are/ },
    { parameters: { maxExports: '-1' }, message: /parameter maxExports: -1/ },
    { parameters: { gid: '5', gidMax: '3000' }, message: /gid excludes gidMin and gidMax/ },
    { parameters: { gidMin: '100' }, message: /gidMin "100" is not a number from 2000/ },
  ] as { parameters: Record<string, string>; message: RegExp }[]) {
    test(`refuse ${JSON.stringify(parameters)}`, () => {
      assert.throws(() => read(parameters), { message });
    });
  }
});
