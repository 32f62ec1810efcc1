/** Whether an error of the driver is due to what its Secret contains, of which only the names of the keys are read. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { failureMeaning } from '../../../src/explain/causes/causes.ts';
import type { ClaimFacts } from '../../../src/explain/claim-facts-reader.ts';

/** A claim whose Secret has these keys. */
function facts(...keys: string[]): ClaimFacts {
  const fieldsV1 = { 'f:data': { '.': {}, ...Object.fromEntries(keys.map((key) => [`f:${key}`, {}])) }, 'f:type': {} };
  const metadata = { name: 'key', managedFields: [{ manager: 'kubectl', fieldsV1 }] };
  return {
    nowMs: 0,
    claim: { metadata: { name: 'c', namespace: 'ns1' }, spec: {} },
    secret: { reference: { namespace: 'ns1', name: 'key' }, reading: { kind: 'found', value: { metadata } } },
  };
}

const refused = (text: string, code = 'InvalidArgument'): string => `rpc error: code = ${code} desc = ${text}`;

describe('an error of the driver', () => {
  for (const { key, text } of [
    { key: 'userId', text: 'missing userID in secrets' },
    { key: 'user_key', text: 'userKey must be given.' },
    { key: 'passwrod', text: 'no password' },
    { key: 'tokne', text: 'no token' },
    { key: 'access-key', text: 'cannot find accesskey' },
  ]) {
    test(`names key ${key} of the Secret for ${JSON.stringify(text)}`, () => {
      const { cause, cure } = failureMeaning(refused(text), { facts: facts('pool', key) });
      assert.equal(cause, 'secret-content');
      assert.match(cure, new RegExp(`^Secret ns1/key has the key ${key}: `));
    });
  }

  for (const { keys, text, code } of [
    { keys: ['region'], text: 'unknown parameter regions', code: 'InvalidArgument' },
    { keys: ['userID'], text: 'userID is wrong', code: 'InvalidArgument' },
    { keys: ['userID'], text: 'wrong value of userID.', code: 'InvalidArgument' },
    { keys: ['pool'], text: 'the tool is broken', code: 'Internal' },
    { keys: ['userId'], text: 'missing userID', code: 'Unavailable' },
    { keys: [], text: 'missing userID in secrets', code: 'InvalidArgument' },
  ]) {
    test(`does not blame keys ${keys.join()} for ${code} ${JSON.stringify(text)}`, () => {
      assert.notEqual(failureMeaning(refused(text, code), { facts: facts(...keys) }).cause, 'secret-content');
    });
  }

  test('that speaks of credentials names the keys that there are', () => {
    const { cause, cure } = failureMeaning(refused('bad credentials', 'Internal'), { facts: facts('pool', 'admin') });
    assert.equal(cause, 'driver-error');
    assert.match(cure, /^Compare the keys of Secret ns1\/key \(admin, pool\) with the documentation of the driver/);
  });
});
