import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { claimOfSet, wantsPods, type Workload, wouldUseClaim } from '../../../src/explain/claim-owners.ts';

const set = (spec: Workload['spec'] = {}): Workload => ({
  kind: 'StatefulSet',
  metadata: { name: 'web' },
  spec: {
    replicas: 3,
    volumeClaimTemplates: [{ metadata: { name: 'data' } }, { metadata: { name: 'logs' } }],
    ...spec,
  },
});
const volumes = [{ name: 'v', persistentVolumeClaim: { claimName: 'shared' } }];

describe('the claim of a StatefulSet', () => {
  test('is that of a template and an ordinal', () => {
    assert.deepEqual(claimOfSet(set(), 'logs-web-2'), { template: 'logs', ordinal: 2, pod: 'web-2' });
  });

  for (const name of ['cache-web-0', 'data-web', 'data-web-01', 'data-web-x', 'data-web-0-0', 'data-webs-0']) {
    test(`is not ${name}`, () => {
      assert.equal(claimOfSet(set(), name), undefined);
    });
  }
});

describe('a controller', () => {
  test('would use the claims of its templates, for the ordinals that it has', () => {
    assert.ok(wouldUseClaim(set(), 'data-web-2'));
    assert.ok(!wouldUseClaim(set(), 'data-web-3'));
    assert.ok(wouldUseClaim(set({ ordinals: { start: 5 } }), 'data-web-7'));
    assert.ok(!wouldUseClaim(set({ ordinals: { start: 5 } }), 'data-web-0'));
  });

  test('would use the claims that its Pod template names', () => {
    const template = { spec: { volumes } };
    assert.ok(wouldUseClaim({ metadata: { name: 'r' }, spec: { template } }, 'shared'));
    assert.ok(wouldUseClaim({ metadata: { name: 'c' }, spec: { jobTemplate: { spec: { template } } } }, 'shared'));
    assert.ok(!wouldUseClaim({ metadata: { name: 'r' }, spec: { template } }, 'other'));
  });

  for (const [what, workload, wants] of [
    ['that has fewer Pods than replicas', set(), true],
    ['that has all Pods', { ...set(), status: { replicas: 3 } }, false],
    ['without replicas', set({ replicas: 0 }), false],
    [
      'that is being deleted',
      { ...set(), metadata: { name: 'web', deletionTimestamp: '2026-01-01T00:00:00Z' } },
      false,
    ],
    ['that is a Job under way', { kind: 'Job', metadata: { name: 'j' } }, true],
    ['that is a suspended Job', { kind: 'Job', metadata: { name: 'j' }, spec: { suspend: true } }, false],
    [
      'that is a Job which has ended',
      { kind: 'Job', metadata: { name: 'j' }, status: { completionTime: '2026-01-01T00:00:00Z' } },
      false,
    ],
  ] as const satisfies readonly [string, Workload, boolean][]) {
    test(`${what} ${wants ? 'wants' : 'does not want'} further Pods`, () => {
      assert.equal(wantsPods(workload, workload.kind ?? ''), wants);
    });
  }
});
