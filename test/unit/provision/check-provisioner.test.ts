import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { checkProvisioner } from '../../../src/provision/check-provisioner.ts';
import type { Provisioner } from '../../../src/provision/provisioner.ts';
import { isRecoverable, type Recoverable } from '../../../src/provision/recoverable.ts';

const never = (): never => assert.fail('not called');
const plain: Provisioner = { provision: never, delete: never };
const recoverable: Recoverable = {
  plan: never,
  fulfil: never,
  revoke: never,
  storageKeys: never,
  handleKey: never,
  delete: never,
};

describe('a provisioner', () => {
  test('has provision, or is Recoverable', () => {
    checkProvisioner(plain);
    checkProvisioner(recoverable);
    checkProvisioner({ ...plain, ...recoverable });
    assert.deepEqual([isRecoverable(plain), isRecoverable(recoverable)], [false, true]);
    // @ts-expect-error: the types say so, too
    const neither: Provisioner | Recoverable = { delete: never };
    assert.throws(() => checkProvisioner(neither), {
      name: 'TypeError',
      message:
        'provisioner must have a method provision, or implement Recoverable, of which it lacks ' +
        'plan, fulfil, revoke, storageKeys, handleKey',
    });
    for (const nothing of [undefined, null]) {
      assert.throws(() => checkProvisioner(nothing), /^TypeError: provisioner must have a method provision, or /);
    }
  });

  for (const method of ['plan', 'fulfil', 'revoke', 'storageKeys', 'handleKey'] as const) {
    test(`is refused with some of the methods of Recoverable, and without ${method}, also if it has provision`, () => {
      const { [method]: _, ...lacking } = recoverable;
      for (const given of [lacking, { ...plain, ...lacking }, { ...plain, ...lacking, [`${method}s`]: never }]) {
        assert.throws(() => checkProvisioner(given), {
          name: 'TypeError',
          message: new RegExp(`but not ${method}: it would not be Recoverable`),
        });
        assert.equal(isRecoverable(given as Provisioner), false);
      }
    });
  }

  test('may have storageKeys and no other method of Recoverable: volumes of other names are recognised by it', () => {
    checkProvisioner({ ...plain, storageKeys: never });
  });

  test('has delete in any case', () => {
    for (const methods of [plain, recoverable]) {
      const lacking = { ...methods, delete: undefined } as unknown as Provisioner;
      assert.throws(() => checkProvisioner(lacking), {
        name: 'TypeError',
        message: 'provisioner must have a method delete',
      });
    }
  });
});
