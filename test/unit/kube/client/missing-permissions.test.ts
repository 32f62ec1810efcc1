import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ForbiddenError, type RequestInfo } from '../../../../src/kube/client/api-error.ts';
import { errorFromStatus } from '../../../../src/kube/client/error-from-status.ts';
import { MissingPermissions } from '../../../../src/kube/client/missing-permissions.ts';
import type { Resource } from '../../../../src/kube/kube-object.ts';
import { ManualClock } from '../../../support/fakes/manual-clock.ts';
import { type LogLine, recordedLogger } from '../../../support/fakes/recorded-logger.ts';

const volumes: Resource = {
  group: '',
  version: 'v1',
  plural: 'persistentvolumes',
  kind: 'PersistentVolume',
  namespaced: false,
  verbs: ['list', 'watch', 'create'],
};
const leases: Resource = {
  group: 'coordination.k8s.io',
  version: 'v1',
  plural: 'leases',
  kind: 'Lease',
  namespaced: true,
};

function rig() {
  const lines: LogLine[] = [];
  const counted: string[] = [];
  const clock = new ManualClock();
  const permissions = new MissingPermissions({
    clock,
    logger: recordedLogger(lines),
    onMissing: (name) => counted.push(name),
  });
  const refuse = (info: RequestInfo, message = 'no'): void => {
    const error = errorFromStatus({ reason: 'Forbidden', code: 403, message }, info);
    assert.ok(error instanceof ForbiddenError);
    permissions.report(error);
  };
  return { lines, counted, clock, refuse };
}

describe('MissingPermissions', () => {
  test('logs each resource at most once a minute, whatever the verb, and counts every refusal', async () => {
    const { lines, counted, clock, refuse } = rig();
    for (const verb of ['create', 'list']) refuse({ verb, resource: volumes });
    refuse({ verb: 'update', resource: leases, namespace: 'ns', name: 'a' });
    await clock.advance(59_999);
    refuse({ verb: 'create', resource: volumes });
    assert.equal(lines.length, 2);
    await clock.advance(1);
    refuse({ verb: 'create', resource: volumes });
    assert.equal(lines.length, 3);
    assert.deepEqual(counted, [
      'persistentvolumes',
      'persistentvolumes',
      'leases',
      'persistentvolumes',
      'persistentvolumes',
    ]);
  });

  test('names verb, resource and namespace, and the rule with all verbs', () => {
    const { lines, refuse } = rig();
    refuse({ verb: 'create', resource: volumes });
    refuse({ verb: 'update', resource: leases, namespace: 'ns', name: 'a' });
    const [first, second] = lines;
    assert.equal(first?.level, 'error');
    const { err, ...fields } = first.fields as { err: Error };
    assert.equal(err.message, 'no');
    assert.deepEqual(fields, {
      resource: 'persistentvolumes',
      verb: 'create',
      addRule: '- apiGroups: [""]\n  resources: ["persistentvolumes"]\n  verbs: ["list", "watch", "create"]',
    });
    const { group, namespace } = second?.fields as { group?: string; namespace?: string };
    assert.deepEqual({ group, namespace }, { group: 'coordination.k8s.io', namespace: 'ns' });
  });

  test('a permission that the caller can do without is a warning, once, and not counted', async () => {
    const { lines, counted, clock, refuse } = rig();
    refuse({ verb: 'update', resource: leases, optional: true });
    await clock.advance(600_000);
    refuse({ verb: 'update', resource: leases, optional: true });
    assert.deepEqual(
      lines.map(({ level }) => level),
      ['warn'],
    );
    assert.deepEqual(counted, []);
    refuse({ verb: 'update', resource: leases });
    assert.equal(lines[1]?.level, 'error', 'elsewhere it is needed');
  });

  test('a permission whose absence the caller reports is neither logged nor counted', () => {
    const { lines, counted, refuse } = rig();
    refuse({ verb: 'create', resource: leases, namespace: 'ns', optional: 'reported' });
    assert.deepEqual([lines, counted], [[], []]);
  });

  test('what admission refuses is no missing permission', () => {
    const { lines, counted, refuse } = rig();
    refuse({ verb: 'create', resource: volumes }, 'admission webhook "w" denied the request: no');
    assert.deepEqual([lines, counted], [[], []]);
  });
});
