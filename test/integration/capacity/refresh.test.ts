/** What provisioning and deletion say about capacities. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { nextSlice } from '../../../src/base/event-loop.ts';
import { capacityObserver } from '../../../src/capacity/capacity-observer.ts';
import type {
  NodeSelectorTerm,
  PersistentVolume,
  PersistentVolumeClaim,
  StorageClass,
} from '../../../src/provision/objects.ts';
import { ProvisionError } from '../../../src/provision/provisioner.ts';
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

/** A claim was provisioned with this volume, or failed so. */
function provisioned(rig: Rig, result: PersistentVolume | ProvisionError): void {
  const observer = capacityObserver({ capacity: rig.controller, logger: rig.logger });
  if (result instanceof ProvisionError) observer.onProvisionFailed?.(result, options);
  else observer.onProvisioned?.(result, options);
}

function deleted(rig: Rig, gone: PersistentVolume): void {
  capacityObserver({ capacity: rig.controller, logger: rig.logger }).onDeleted?.(gone);
}

/** What was asked since: class and zone. */
async function asked(rig: Rig): Promise<string[]> {
  await nextSlice(); // on a busy machine the questions are queued only in the next one
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
    provisioned(rig, volume(inZones('z2')));
    assert.deepEqual(await asked(rig), ['sc z2', 'sc2 z2']);
    assert.deepEqual(rig.warnings(), []);
  });

  test('anywhere, the capacity of its class is asked in every segment', async () => {
    await using rig = await settled();
    provisioned(rig, anywhere);
    assert.deepEqual(await asked(rig), ['sc z1', 'sc z2']);
  });

  for (const state of ['finished', 'in-background', 'reschedule'] as const) {
    test(`with a failure of state ${state}, the capacity of its class is asked in every segment`, async () => {
      await using rig = await settled();
      provisioned(rig, new ProvisionError('full', { state }));
      assert.deepEqual(await asked(rig), ['sc z1', 'sc z2']);
    });
  }

  test('a failure before the driver was asked refreshes nothing', async () => {
    await using rig = await settled();
    provisioned(rig, new ProvisionError('secret missing', { state: 'no-change' }));
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
    provisioned(rig, volume(inZones('z1')));
    assert.deepEqual(await asked(rig), []);
  });

  test('an affinity without terms is logged and refreshes nothing', async () => {
    await using rig = await settled();
    provisioned(rig, volume());
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
    deleted(rig, volume(inZones('z1')));
    assert.deepEqual(await asked(rig), ['sc z1', 'sc2 z1']);
  });

  test('from anywhere, nothing is asked', async () => {
    await using rig = await settled();
    deleted(rig, anywhere);
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
      deleted(rig, volume(term));
      assert.deepEqual(await asked(rig), []);
      deleted(rig, volume(term, inZones('z2')));
      assert.deepEqual(await asked(rig), ['sc z2', 'sc2 z2'], 'others count');
    });
  }
});
