/** What is published, and how it follows the cluster. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Gi, Mi, owner, Rig, segmentsOf, zone } from './rig.ts';

const base = (rig: Rig): void => rig.base();

describe('items', () => {
  test('without class and node nothing is published', async () => {
    await using rig = await Rig.start();
    assert.deepEqual(rig.seen, []);
    assert.equal(rig.calls.length, 0);
    assert.equal(await rig.counts(), '0/0/0');
  });

  test('a segment without class gives nothing', async () => {
    await using rig = await Rig.start({ prepare: (it) => it.addZone() });
    assert.deepEqual(rig.seen, []);
    assert.equal(await rig.counts(), '0/0/0');
  });

  test('a class without segment gives nothing', async () => {
    await using rig = await Rig.start({ prepare: (it) => void it.addClass() });
    assert.deepEqual(rig.seen, []);
    assert.equal(await rig.counts(), '0/0/0');
  });

  test('a class and a node give one object', async () => {
    await using rig = await Rig.start({ prepare: base });
    assert.deepEqual(rig.seen, [{ class: 'sc', topology: { [zone]: 'z1' }, capacity: '1Gi' }]);
    const { metadata } = rig.only;
    assert.match(metadata.name, /^csisc-./);
    assert.deepEqual(metadata.labels, {
      'csi.storage.k8s.io/drivername': 'drv',
      'csi.storage.k8s.io/managed-by': 'external-provisioner',
    });
    assert.deepEqual(metadata.ownerReferences, [owner]);
    assert.equal(await rig.counts(), '1/1/0');
    assert.equal(rig.calls.length, 1, 'one question');
    assert.deepEqual(
      rig.writes.map(({ verb }) => verb),
      ['create'],
    );
  });

  test('without owner there are no owner references', async () => {
    await using rig = await Rig.start({ owner: null, prepare: base });
    assert.equal(rig.only.metadata.ownerReferences, undefined);
    assert.equal(rig.only.capacity, '1Gi');
  });

  const amounts = [
    { answer: { available_capacity: Gi, maximum_volume_size: { value: Mi } }, want: ['1Gi', '1Mi'] },
    { answer: { available_capacity: Gi, maximum_volume_size: { value: 0 } }, want: ['1Gi', '0'] },
    { answer: { available_capacity: 0 }, want: ['0', undefined] },
    { answer: { available_capacity: 1000 }, want: ['1k', undefined] },
  ] as const;
  for (const { answer, want } of amounts) {
    test(`the answer ${JSON.stringify(answer)} is published as ${want.filter(Boolean).join(' and ')}`, async () => {
      await using rig = await Rig.start({
        prepare: (it) => {
          it.base();
          it.driver.always('GetCapacity', answer);
        },
      });
      assert.deepEqual([rig.only.capacity, rig.only.maximumVolumeSize], want);
    });
  }

  test('a round decimal amount is written in bytes, and not again when the server writes it shorter', async () => {
    await using rig = await Rig.start({
      prepare: (it) => {
        it.base();
        it.driver.always('GetCapacity', { available_capacity: 1_500_000_000 });
      },
    });
    assert.ok(['1500000000', '1500M'].includes(rig.only.capacity ?? ''), rig.only.capacity);
    rig.forget();
    rig.change(rig.only, { capacity: '1500M' });
    await rig.quiet();
    rig.controller.refreshClass('sc');
    await rig.until('the question to the driver', () => rig.calls.length > 0);
    await rig.quiet();
    assert.equal(rig.calls.length, 1);
    assert.deepEqual(rig.writes, []);
  });

  const immediate = (rig: Rig): void => {
    rig.addClass('sc', { volumeBindingMode: 'Immediate' });
    rig.addZone();
  };
  test('a class with immediate binding is not served', async () => {
    await using rig = await Rig.start({ prepare: immediate });
    assert.deepEqual(rig.seen, []);
    assert.equal(await rig.counts(), '0/0/0');
    assert.equal(rig.calls.length, 0);
  });

  test('a class with immediate binding is served with --capacity-for-immediate-binding', async () => {
    await using rig = await Rig.start({ forImmediateBinding: true, prepare: immediate });
    assert.deepEqual(rig.seen, [{ class: 'sc', topology: { [zone]: 'z1' }, capacity: '1Gi' }]);
  });

  test('classes of other provisioners and of in-tree plugins are not served', async () => {
    await using rig = await Rig.start({
      prepare: (it) => {
        it.addClass('other', { provisioner: 'other' });
        it.addClass('in-tree', { provisioner: 'kubernetes.io/aws-ebs' });
        it.addZone();
      },
    });
    assert.deepEqual(rig.seen, []);
    assert.equal(rig.calls.length, 0);
  });

  test('each class in each segment has an object of its own', async () => {
    await using rig = await Rig.start({
      prepare: (it) => {
        it.addClass();
        it.addClass('sc3', { parameters: { triple: 'yes' } });
        it.addZone();
        it.addZone('n2', 'z2');
        it.driver.always('GetCapacity', ({ request }: { request: Record<string, unknown> }) => {
          const { triple } = (request['parameters'] ?? {}) as { triple?: string };
          const one = segmentsOf(request)[zone] === 'z1' ? 1 : 2;
          return { available_capacity: one * (triple === 'yes' ? 3 : 1) * Gi };
        });
      },
    });
    const found = rig.seen.map((each) => `${each.class} ${each.topology[zone] ?? ''} ${each.capacity ?? ''}`);
    assert.deepEqual(found.sort(), ['sc z1 1Gi', 'sc z2 2Gi', 'sc3 z1 3Gi', 'sc3 z2 6Gi']);
    assert.equal(await rig.counts(), '4/4/0');
    assert.equal(rig.calls.length, 4);
  });
});

describe('the question to the driver', () => {
  test('has all parameters of the class, those with our prefix too', async () => {
    const parameters = {
      pool: 'fast',
      'csi.storage.k8s.io/fstype': 'xfs',
      'csi.storage.k8s.io/provisioner-secret-name': 's',
    };
    await using rig = await Rig.start({
      prepare: (it) => {
        it.addClass('sc', { parameters });
        it.addZone();
      },
    });
    assert.deepEqual({ ...(rig.calls[0]?.request['parameters'] as object) }, parameters);
  });

  test('is asked whatever topologies the class allows', async () => {
    await using rig = await Rig.start({
      prepare: (it) => {
        it.addClass('sc', { allowedTopologies: [{ matchLabelExpressions: [{ key: zone, values: ['z9'] }] }] });
        it.addZone();
      },
    });
    assert.deepEqual(rig.seen, [{ class: 'sc', topology: { [zone]: 'z1' }, capacity: '1Gi' }]);
  });

  test('has a segment and no capabilities', async () => {
    await using rig = await Rig.start({ prepare: base });
    const [call] = rig.calls;
    assert.ok(call);
    assert.deepEqual(call.request['volume_capabilities'] ?? [], []);
    assert.deepEqual(segmentsOf(call.request), { [zone]: 'z1' });
  });
});

describe('segments', () => {
  test('two nodes in one zone share an object', async () => {
    await using rig = await Rig.start({
      prepare: (it) => {
        it.base();
        it.addZone('n2', 'z1');
      },
    });
    assert.equal(rig.stored.length, 1);
    assert.equal(rig.calls.length, 1);
  });

  test('nodes may have different keys', async () => {
    await using rig = await Rig.start({
      prepare: (it) => {
        it.base();
        it.addNode('n2', { rack: 'rA', [zone]: 'z1' });
        it.addCsiNode('n2', ['rack', zone]);
      },
    });
    const topologies = rig.seen.map(({ topology }) => topology);
    assert.deepEqual(topologies, [{ rack: 'rA', [zone]: 'z1' }, { [zone]: 'z1' }]);
  });

  test('the order of the keys makes no difference', async () => {
    const labels = { a: '1', b: '2', c: '3' };
    await using rig = await Rig.start({
      prepare: (it) => {
        it.addClass();
        it.addNode('n1', labels);
        it.addCsiNode('n1', ['c', 'b', 'a']);
        it.addNode('n2', labels);
        it.addCsiNode('n2', ['a', 'b', 'c']);
      },
    });
    assert.deepEqual(rig.only.nodeTopology, { matchLabels: labels });
  });

  test('a node that comes after its CSINode counts from then on', async () => {
    await using rig = await Rig.start({
      prepare: (it) => {
        it.addClass();
        it.addCsiNode('n1');
      },
    });
    assert.deepEqual(rig.seen, []);
    rig.addNode('n1', { [zone]: 'z1' });
    await rig.until('the object', () => rig.stored.length === 1);
  });

  test('a node without the label counts once it has it', async () => {
    await using rig = await Rig.start({
      prepare: (it) => {
        it.addClass();
        it.addNode('n1', {});
        it.addCsiNode('n1');
      },
    });
    assert.deepEqual(rig.seen, []);
    rig.setLabels('n1', { [zone]: 'z1' });
    await rig.until('the object', () => rig.stored.length === 1);
  });

  test('a node without the driver counts once it is registered', async () => {
    await using rig = await Rig.start({
      prepare: (it) => {
        it.addClass();
        it.addNode('n1', { [zone]: 'z1' });
        it.addCsiNode('n1', null);
      },
    });
    assert.deepEqual(rig.seen, []);
    rig.setCsiNode('n1', [zone]);
    await rig.until('the object', () => rig.stored.length === 1);
  });

  const ends: [string, (rig: Rig) => void][] = [
    ['the driver is taken off the CSINode', (rig) => rig.setCsiNode('n1', null)],
    ['the CSINode is deleted', (rig) => rig.api.delete({ ...storage, plural: 'csinodes' }, { name: 'n1' })],
    ['the Node is deleted', (rig) => rig.api.delete({ group: '', version: 'v1', plural: 'nodes' }, { name: 'n1' })],
  ];
  for (const [what, end] of ends) {
    test(`the object goes when ${what}`, async () => {
      await using rig = await Rig.start({ prepare: base });
      assert.equal(rig.stored.length, 1);
      end(rig);
      await rig.until('the object to go', () => rig.stored.length === 0);
      await rig.quiet();
      assert.equal(await rig.counts(), '0/0/0');
    });
  }

  test('the object stays while another node is in the zone', async () => {
    await using rig = await Rig.start({
      prepare: (it) => {
        it.base();
        it.addZone('n2', 'z1');
      },
    });
    rig.forget();
    rig.api.delete({ ...storage, plural: 'csinodes' }, { name: 'n1' });
    await rig.quiet();
    assert.equal(rig.stored.length, 1);
    assert.deepEqual(rig.writes, []);
  });

  test('a node that moves takes the object along', async () => {
    await using rig = await Rig.start({ prepare: base });
    rig.setLabels('n1', { [zone]: 'z2' });
    await rig.until('the new object alone', () => rig.stored.length === 1 && rig.seen[0]?.topology[zone] === 'z2');
    await rig.quiet();
    assert.equal(await rig.counts(), '1/1/0');
  });

  test('other labels of a node matter to nobody', async () => {
    await using rig = await Rig.start({ prepare: base });
    rig.forget();
    rig.setLabels('n1', { [zone]: 'z1', colour: 'blue' });
    await rig.quiet();
    assert.deepEqual(rig.writes, []);
    assert.equal(rig.calls.length, 0);
  });
});

const storage = { group: 'storage.k8s.io', version: 'v1' };
