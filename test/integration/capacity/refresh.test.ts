/** What provisioning and deletion say about capacities. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { RefreshingProvisioner } from '../../../src/capacity/refreshing-provisioner.ts';
import type {
  NodeSelectorTerm,
  PersistentVolume,
  PersistentVolumeClaim,
  StorageClass,
} from '../../../src/provision/objects.ts';
import { IgnoredError, ProvisionError, type Provisioner } from '../../../src/provision/provisioner.ts';
import { Rig, segmentsOf, zone } from './rig.ts';

/** Two classes in two zones, at rest. */
async function settled(): Promise<Rig> {
  const rig = await Rig.start({
    prepare: (it) => {
      for (const name of ['sc', 'sc2']) it.addClass(name, { parameters: { class: name } });
      it.addZone('n1', 'z1');
      it.addZone('n2', 'z2');
    },
  });
  assert.equal(rig.stored.length, 4);
  rig.forget();
  return rig;
}

const context = { signal: new AbortController().signal };
const options = {
  storageClass: { metadata: { name: 'sc' }, provisioner: 'drv' } as StorageClass,
  volumeName: 'pvc-1',
  claim: { metadata: { name: 'c', namespace: 'ns' }, spec: {} } as PersistentVolumeClaim,
  selectedNodeName: '',
};

function volume(...terms: NodeSelectorTerm[]): PersistentVolume {
  return { metadata: { name: 'pv' }, spec: { nodeAffinity: { required: { nodeSelectorTerms: terms } } } };
}

const anywhere: PersistentVolume = { metadata: { name: 'pv' }, spec: {} };
const inZones = (...values: string[]): NodeSelectorTerm => ({
  matchExpressions: [{ key: zone, operator: 'In', values }],
});

/** Around a provisioner that gives this volume, or fails so. */
function refreshing(rig: Rig, result: PersistentVolume | Error): RefreshingProvisioner {
  const provisioner: Provisioner = {
    provision: () => (result instanceof Error ? Promise.reject(result) : Promise.resolve(result)),
    delete: () => (result instanceof Error ? Promise.reject(result) : Promise.resolve()),
  };
  return new RefreshingProvisioner({ provisioner, capacity: rig.controller, logger: rig.logger });
}

/** What was asked since: class and zone. */
async function asked(rig: Rig): Promise<string[]> {
  await rig.quiet();
  const asked = rig.calls.map(({ request }) => {
    const { class: className = '' } = (request['parameters'] ?? {}) as { class?: string };
    return `${className} ${segmentsOf(request)[zone] ?? ''}`;
  });
  return asked.sort();
}

describe('after a claim was provisioned', () => {
  test('in a segment, the capacity of the segment is asked for every class', async () => {
    await using rig = await settled();
    await refreshing(rig, volume(inZones('z2'))).provision(options, context);
    assert.deepEqual(await asked(rig), ['sc z2', 'sc2 z2']);
  });

  test('anywhere, the capacity of its class is asked in every segment', async () => {
    await using rig = await settled();
    await refreshing(rig, anywhere).provision(options, context);
    assert.deepEqual(await asked(rig), ['sc z1', 'sc z2']);
  });

  for (const state of ['finished', 'in-background', 'reschedule'] as const) {
    test(`with a failure of state ${state}, the capacity of its class is asked in every segment`, async () => {
      await using rig = await settled();
      const error = new ProvisionError('full', { state });
      await assert.rejects(refreshing(rig, error).provision(options, context), error);
      assert.deepEqual(await asked(rig), ['sc z1', 'sc z2']);
    });
  }

  test('an error of no known kind counts as well', async () => {
    await using rig = await settled();
    await assert.rejects(refreshing(rig, new TypeError('bug')).provision(options, context), TypeError);
    assert.deepEqual(await asked(rig), ['sc z1', 'sc z2']);
  });

  test('a failure before the driver was asked refreshes nothing', async () => {
    await using rig = await settled();
    for (const error of [new ProvisionError('secret missing', { state: 'no-change' }), new IgnoredError('not ours')])
      await assert.rejects(refreshing(rig, error).provision(options, context), error);
    assert.deepEqual(await asked(rig), []);
  });

  test('a part of the labels of a segment is not a segment', async () => {
    await using rig = await Rig.start({
      prepare: (it) => {
        it.addClass();
        for (const rack of ['ra', 'rb']) {
          it.addNode(rack, { rack, [zone]: 'z1' });
          it.addCsiNode(rack, ['rack', zone]);
        }
      },
    });
    assert.equal(rig.stored.length, 2);
    rig.forget();
    await refreshing(rig, volume(inZones('z1'))).provision(options, context);
    assert.deepEqual(await asked(rig), []);
  });

  test('an affinity without terms is logged and refreshes nothing', async () => {
    await using rig = await settled();
    await refreshing(rig, volume()).provision(options, context);
    assert.deepEqual(await asked(rig), []);
    assert.deepEqual(
      rig.warnings().map(({ message }) => message),
      ['The node affinity of a volume names no segment, its capacity is not refreshed'],
    );
  });
});

describe('after a volume was deleted', () => {
  test('from a segment, the capacity of the segment is asked for every class', async () => {
    await using rig = await settled();
    await refreshing(rig, volume()).delete(volume(inZones('z1')), context);
    assert.deepEqual(await asked(rig), ['sc z1', 'sc2 z1']);
  });

  test('from anywhere, or not at all, nothing is asked', async () => {
    await using rig = await settled();
    await refreshing(rig, volume()).delete(anywhere, context);
    const error = new Error('still in use');
    await assert.rejects(refreshing(rig, error).delete(volume(inZones('z1')), context), error);
    assert.deepEqual(await asked(rig), []);
  });

  const hopeless: [string, NodeSelectorTerm][] = [
    ['with several values', inZones('z1', 'z2')],
    ['with another operator', { matchExpressions: [{ key: zone, operator: 'NotIn', values: ['z1'] }] }],
    ['about a field', { ...inZones('z1'), matchFields: [{ key: 'metadata.name', operator: 'In', values: ['n1'] }] }],
  ];
  for (const [what, term] of hopeless) {
    test(`a term ${what} is skipped`, async () => {
      await using rig = await settled();
      await refreshing(rig, volume()).delete(volume(term), context);
      assert.deepEqual(await asked(rig), []);
      await refreshing(rig, volume()).delete(volume(term, inZones('z2')), context);
      assert.deepEqual(await asked(rig), ['sc z2', 'sc2 z2'], 'others count');
    });
  }
});

test('everything else is passed on as it is', async () => {
  await using rig = await settled();
  const bare = refreshing(rig, anywhere);
  assert.equal(await bare.shouldProvision(options.claim, context), true);
  assert.equal(bare.supportsBlock(context), false);
  assert.equal(await bare.shouldDelete(anywhere, context), true);
  const strict = new RefreshingProvisioner({
    provisioner: {
      provision: () => Promise.resolve(anywhere),
      delete: () => Promise.resolve(),
      shouldProvision: () => false,
      supportsBlock: () => true,
      shouldDelete: () => false,
    },
    capacity: rig.controller,
    logger: rig.logger,
  });
  assert.equal(await strict.shouldProvision(options.claim, context), false);
  assert.equal(strict.supportsBlock(context), true);
  assert.equal(await strict.shouldDelete(anywhere, context), false);
});
