import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { KubeObject } from '../../../../src/kube/kube-object.ts';
import { isReduced, markReduced } from '../../../../src/kube/cache/reduced-object.ts';
import { SharedValues } from '../../../../src/kube/cache/shared-values.ts';
import { claimTransform } from '../../../../src/provision/cache/cached-claim.ts';
import { volumeTransform } from '../../../../src/provision/cache/cached-volume.ts';

describe('the mark of reduced objects', () => {
  test('survives copies by spreading, and is not sent', () => {
    const object = markReduced({ metadata: { name: 'a' } });
    assert.equal(isReduced({ ...object, metadata: { name: 'b' } }), true);
    assert.equal(isReduced({ metadata: object.metadata }), false);
    assert.equal(JSON.stringify(object), '{"metadata":{"name":"a"}}');
  });

  const claim = claimTransform(new SharedValues());
  const volume = volumeTransform({ shared: new SharedValues(), isKnownProvisioner: (name) => name === 'ours' });
  const ours = { annotations: { 'pv.kubernetes.io/provisioned-by': 'ours' } };
  const cases: { name: string; cached: (object: KubeObject) => KubeObject; object: object; want: boolean }[] = [
    { name: 'a claim without a volume', cached: claim, object: { spec: {} }, want: false },
    { name: 'a bound claim', cached: claim, object: { spec: { volumeName: 'v' } }, want: true },
    { name: 'a volume of others', cached: volume, object: { spec: {} }, want: true },
    {
      name: 'a bound volume',
      cached: volume,
      object: { metadata: ours, spec: {}, status: { phase: 'Bound' } },
      want: true,
    },
    {
      name: 'a released volume',
      cached: volume,
      object: { metadata: ours, spec: {}, status: { phase: 'Released' } },
      want: false,
    },
  ];
  for (const { name, cached, object, want } of cases) {
    test(`${want ? 'is' : 'is not'} on the cached form of ${name}`, () => {
      const { metadata = {}, ...rest } = object as { metadata?: object };
      assert.equal(isReduced(cached({ metadata: { name: 'x', ...metadata }, ...rest })), want);
    });
  }
});
