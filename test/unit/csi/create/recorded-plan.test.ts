import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { VolumePlan } from '../../../../src/csi/create/volume-plan.ts';
import { recordedPlan } from '../../../../src/csi/create/recorded-plan.ts';
import type { Plan } from '../../../../src/provision/recoverable.ts';
import { driverName, Rig } from '../../../support/csi-rig.ts';
import { makePlan, startFullRig, storedPlan } from '../../../support/full-plan.ts';

const complete = {
  driverName,
  claim: { namespace: 'ns1', name: 'c1', uid: 'u' },
  request: {
    name: 'pvc-u',
    capacity_range: { required_bytes: '5368709120' },
    volume_capabilities: [{ access_mode: { mode: 'SINGLE_NODE_WRITER' }, mount: { fs_type: '', mount_flags: ['a'] } }],
    volume_content_source: { snapshot: { snapshot_id: 'sid' } },
    parameters: { type: 'ssd' },
    mutable_parameters: { iops: '100' },
  },
  topology: { requisite: [{ segments: { zone: 'a' } }, { segments: { zone: 'b' } }], first: 1 },
  secretReferences: { provisioner: { name: 's', namespace: 'ns' } },
  source: { handling: 'snapshot', namespace: 'ns1', name: 'snap' },
  migrated: false,
  topologySupported: true,
  mayReschedule: true,
  fsType: 'ext4',
  spec: { accessModes: ['ReadWriteOnce'], mountOptions: ['a'], persistentVolumeReclaimPolicy: 'Delete' },
} satisfies VolumePlan;

/** The plan with one field changed; undefined takes it away. */
function changed(path: string, value: unknown): Plan {
  const plan = structuredClone(complete) as Plan;
  const keys = path.split('.');
  const last = keys.pop() ?? '';
  let at = plan as Record<string, unknown>;
  for (const key of keys) at = at[key] as Record<string, unknown>;
  at[last] = value;
  return JSON.parse(JSON.stringify(plan)) as Plan;
}

function refusal(plan: Plan): string {
  let message = '';
  assert.throws(
    () => recordedPlan(plan, driverName),
    (error: Error & { state?: string; afterUnclear?: string }) => {
      assert.deepEqual([error.name, error.state, error.afterUnclear], ['ProvisionError', 'no-change', 'undecidable']);
      message = error.message;
      return true;
    },
  );
  return message;
}

describe('recordedPlan', () => {
  test('takes what the provisioner plans, with and without what a claim may leave out', async () => {
    await using full = await startFullRig();
    await using plain = await Rig.start();
    const { signal } = new AbortController();
    const { plan: plainPlan } = await plain.provisioner.plan(plain.options(), { signal });
    for (const plan of [await makePlan(full), plainPlan]) {
      const stored = storedPlan(plan);
      assert.equal(recordedPlan(stored, driverName), stored);
    }
    assert.ok(recordedPlan(complete, driverName));
  });

  const block = [{ access_mode: { mode: 'SINGLE_NODE_WRITER' }, block: {} }];
  test('takes block volumes, clones, and requests without any topology', () => {
    const clone = { handling: 'clone', namespace: 'ns1', name: 'src', uid: 'x' };
    for (const plan of [
      changed('request.volume_capabilities', block),
      changed('request.volume_content_source', { volume: { volume_id: 'v' } }),
      changed('source', clone),
      changed('topology', undefined),
      changed('topology', { requisite: [], first: 0 }),
    ]) {
      assert.ok(recordedPlan(plan, driverName));
    }
  });

  const refused: readonly (readonly [path: string, value: unknown, text: string])[] = [
    ['driverName', 'x', 'field driverName should be the driver "d.example.com", but is "x"'],
    ['driverName', undefined, 'field driverName should be a string that is not empty, but is missing'],
    ['claim', null, 'field claim should be an object, but is null'],
    ['claim.uid', '', 'field claim.uid should be a string that is not empty, but is ""'],
    ['request.name', '', 'field request.name should be a string that is not empty, but is ""'],
    ['request.capacity_range.required_bytes', 5, 'should be a number of bytes in a string, but is 5'],
    ['request.capacity_range.required_bytes', '5Gi', 'should be a number of bytes in a string, but is "5Gi"'],
    ['request.capacity_range.limit_bytes', '9', 'request.capacity_range.limit_bytes should be absent in this version'],
    ['request.volume_capabilities', {}, 'field request.volume_capabilities should be a list, but is {}'],
    [
      'request.volume_capabilities.0.access_mode.mode',
      'ANY',
      'volume_capabilities[0].access_mode.mode should be one of ',
    ],
    ['request.parameters.type', 1, 'field request.parameters.type should be a string, but is 1'],
    ['request.parameters', ['x'], 'field request.parameters should be an object, but is ["x"]'],
    ['request.volume_content_source.volume', { volume_id: 'v' }, 'should be an object with one field'],
    ['request.secrets', { a: 'b' }, 'field request.secrets should be absent in this version'],
    ['topology.first', 2, 'field topology.first should be the index of a requisite topology, but is 2'],
    ['topology.first', -1, 'field topology.first should be an index, but is -1'],
    ['topology.requisite.1.segments', 'x', 'field topology.requisite[1].segments should be an object, but is "x"'],
    ['secretReferences.other', { name: 'a', namespace: 'b' }, 'field secretReferences.other should be absent'],
    ['secretReferences.provisioner.name', '', 'field secretReferences.provisioner.name should be a string that is not'],
    ['source.handling', 'populator', 'field source.handling should be one of clone, but is "populator"'],
    ['source', 'snap', 'field source should be an object, but is "snap"'],
    ['migrated', 'no', 'field migrated should be a boolean, but is "no"'],
    ['spec.mountOptions', 'a', 'field spec.mountOptions should be a list, but is "a"'],
    ['added', 1, 'field added should be absent in this version, but is 1'],
  ];
  for (const [path, value, text] of refused) {
    test(`refuses ${path} as ${value === undefined ? 'nothing' : JSON.stringify(value)}`, () => {
      assert.ok(refusal(changed(path, value)).includes(text), refusal(changed(path, value)));
    });
  }

  test('says what to do, and shows no more of a long value than its beginning', () => {
    const message = refusal(changed('fsType', ['x'.repeat(500)]));
    assert.match(message, /run that version, or discard the record$/);
    assert.ok(message.length < 300);
  });

  test('refuses what is no plan at all', () => {
    for (const plan of [null, [], 'x', {}] as unknown as Plan[]) refusal(plan);
  });
});
