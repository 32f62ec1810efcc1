import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { silentLogger } from '../../../../src/base/logger.ts';
import { Topology, type TopologyOptions } from '../../../../src/csi/topology/topology.ts';
import type { TopologyQuestion } from '../../../../src/csi/topology/planned-topology.ts';
import type { TopologyNodes } from '../../../../src/csi/topology/topology-nodes.ts';
import { type LogLine, recordedLogger } from '../../../support/fakes/recorded-logger.ts';
import { topologyCases, type TopologyCase } from '../../../support/topology-cases.ts';
import {
  allowed,
  type ClusterName,
  csiNodeObject,
  driverName,
  nodeObject,
  nodesOf,
  nodeStores,
  terms,
} from '../../../support/topology-clusters.ts';

function start(cluster: ClusterName, options: Partial<TopologyOptions> = {}) {
  const stores = nodeStores(nodesOf(cluster));
  const settings = { driverName, nodes: stores, strict: false, immediate: true, logger: silentLogger, ...options };
  return { ...stores, topology: new Topology(settings) };
}

function question(more: { claim?: string; selected?: string; allowed?: string } = {}): TopologyQuestion {
  return {
    claimName: more.claim ?? 'testpvc',
    allowedTopologies: more.allowed === undefined ? undefined : allowed(more.allowed),
    selectedNodeName: more.selected ?? '',
  };
}

const wanted = (requisite: string, preferred = requisite) => ({
  requisite: terms(requisite),
  preferred: terms(preferred),
});

async function check({ cluster, want, strict = false, immediate = true, ...asked }: TopologyCase): Promise<void> {
  const { topology } = start(cluster, { strict, immediate });
  const requirements = () => topology.requirements(question(asked));
  if (want === 'none') assert.equal(await requirements(), undefined);
  else if ('error' in want) await assert.rejects(requirements, { name: 'Error', message: want.error });
  else if ('gone' in want) await assert.rejects(requirements, { name: 'SelectedNodeGoneError', message: want.gone });
  else assert.deepEqual(await requirements(), wanted(want.requisite, want.preferred));
}

describe('Topology', () => {
  for (const [about, cases] of Object.entries(topologyCases)) {
    describe(about, () => {
      for (const each of cases) test(each.name, () => check(each));
    });
  }

  test('that no node has keys is logged', async () => {
    const lines: LogLine[] = [];
    const logger = recordedLogger(lines);
    await assert.rejects(
      () => start('no CSINodes', { logger }).topology.requirements(question()),
      /no available topology found/,
    );
    assert.deepEqual(
      lines.map(({ level, message }) => [level, message]),
      [['warn', 'No topology keys found on any node']],
    );
  });

  test('a key that cannot be a label is an error', async () => {
    const { topology, csiNodes } = start('three zones');
    csiNodes.set({ metadata: { name: 'n1' }, spec: { drivers: [{ name: driverName, topologyKeys: ['no label'] }] } });
    await assert.rejects(() => topology.requirements(question({ selected: 'n1' })), /does not match topology keys/);
    csiNodes.set({ metadata: { name: 'n2' }, spec: { drivers: [] } });
    for (const name of ['n3', 'n4']) csiNodes.delete(name);
    await assert.rejects(() => topology.requirements(question()), {
      message: 'error parsing topology keys selector: key: Invalid value: "no label": not the name of a label',
    });
  });

  test('the same key twice in an allowed topology: the greater value is sent', async () => {
    const { topology } = start('no CSINodes');
    assert.deepEqual(await topology.requirements(question({ allowed: '(Z:z2 & Z:z1)' })), wanted('{Z=z2}'));
  });

  test('the same key and value twice in an allowed topology: nodes that have it fit', async () => {
    for (const strict of [false, true]) {
      const { topology } = start('three zones', { strict });
      const asked = question({ selected: 'n1', allowed: '(Z:z1 & Z:z1)' });
      assert.equal((await topology.requirements(asked))?.requisite?.length, 1, `strict: ${strict}`);
    }
  });
});

describe('Topology, asked again for the same claim', () => {
  const all = '{R=rA,Z=z1} {R=rB,Z=z2} {R=rC,Z=z3}';
  const n1 = question({ selected: 'n1' });
  const csiNodeGone = {
    name: 'SelectedNodeGoneError',
    message: 'failed to get selected CSINode n1: csinode.storage.k8s.io "n1" not found',
  };
  const nodeGone = { name: 'SelectedNodeGoneError', message: 'failed to get selected Node n1: node "n1" not found' };

  test('the topology is that of the node that is selected now', async () => {
    for (const strict of [false, true]) {
      const { topology } = start('three racks in three zones', { strict });
      assert.deepEqual(await topology.requirements(n1), wanted(strict ? '{R=rA,Z=z1}' : all));
      const preferred = '{R=rB,Z=z2} {R=rC,Z=z3} {R=rA,Z=z1}';
      const n2 = question({ selected: 'n2' });
      assert.deepEqual(await topology.requirements(n2), strict ? wanted('{R=rB,Z=z2}') : wanted(all, preferred));
    }
  });

  test('a selected node that does not exist any more leads to the selection of another one', async () => {
    const { topology, nodes, csiNodes } = start('three racks in three zones');
    await topology.requirements(n1);
    nodes.delete('n1');
    await assert.rejects(() => topology.requirements(n1), nodeGone);
    csiNodes.delete('n1');
    await assert.rejects(() => topology.requirements(n1), csiNodeGone);
  });

  test('nothing of a node that is gone counts for the next one', async () => {
    const { topology, nodes, csiNodes } = start('three racks in three zones');
    csiNodes.set(csiNodeObject({ name: 'n1', keys: 'Z' })!);
    nodes.delete('n1');
    await assert.rejects(() => topology.requirements(n1), nodeGone);
    assert.deepEqual(
      await topology.requirements(question({ selected: 'n2' })),
      wanted('{R=rB,Z=z2} {R=rC,Z=z3}'),
      'by the keys of n2',
    );
  });

  test('without a selected node the current nodes count', async () => {
    const { topology, nodes, csiNodes } = start('three racks in three zones');
    assert.deepEqual(await topology.requirements(question()), wanted(all, '{R=rC,Z=z3} {R=rA,Z=z1} {R=rB,Z=z2}'));
    nodes.delete('n1');
    csiNodes.delete('n1');
    assert.deepEqual(await topology.requirements(question()), wanted('{R=rB,Z=z2} {R=rC,Z=z3}'));
  });

  test('allowed topologies need no nodes', async () => {
    const { topology, nodes } = start('three racks in three zones');
    const asked = question({ allowed: '(Z:z1)' });
    assert.deepEqual(await topology.requirements(asked), wanted('{Z=z1}'));
    for (const name of [...nodes.keys()]) nodes.delete(name);
    assert.deepEqual(await topology.requirements(asked), wanted('{Z=z1}'));
  });

  const unlabelled = {
    message:
      'topology labels from selected node map[ex.com/zone:z1 os:linux] does not match topology keys from CSINode [ex.com/zone ex.com/rack]',
  };

  test('a label that the selected node gets late counts', async () => {
    const { topology, nodes } = start('three racks in three zones');
    nodes.set(nodeObject({ name: 'n1', labels: 'Z=z1,os=linux' })!);
    await assert.rejects(() => topology.requirements(n1), unlabelled);
    nodes.set(nodeObject({ name: 'n1', labels: 'Z=z1,os=linux,R=rA' })!);
    assert.deepEqual(await topology.requirements(n1), wanted(all));
  });

  test('a changed label, a new node and other keys of the CSINode count', async () => {
    const { topology, nodes, csiNodes } = start('three racks in three zones');
    await topology.requirements(n1);
    nodes.set(nodeObject({ name: 'n1', labels: 'Z=z9,R=rA' })!);
    nodes.set(nodeObject({ name: 'n4', labels: 'Z=z4,R=rD' })!);
    csiNodes.set(csiNodeObject({ name: 'n4', keys: 'Z,R' })!);
    const preferred = '{R=rA,Z=z9} {R=rB,Z=z2} {R=rC,Z=z3} {R=rD,Z=z4}';
    assert.deepEqual(await topology.requirements(n1), wanted(preferred));
    csiNodes.set(csiNodeObject({ name: 'n1', keys: 'Z' })!);
    assert.deepEqual(
      await topology.requirements(n1),
      wanted('{Z=z2} {Z=z3} {Z=z4} {Z=z9}', '{Z=z9} {Z=z2} {Z=z3} {Z=z4}'),
    );
  });

  test('what was computed is kept until labels or keys change', async () => {
    let [changes, lists] = [0, 0];
    const { nodes, csiNodes } = nodeStores(nodesOf('three racks in three zones'));
    const counted: TopologyNodes = {
      nodes,
      csiNodes: {
        get: (name) => csiNodes.get(name),
        byIndex: () => [],
        list: () => {
          lists += 1;
          return csiNodes.list();
        },
      },
      changes: () => changes,
    };
    const topology = new Topology({
      driverName,
      nodes: counted,
      strict: false,
      immediate: true,
      logger: silentLogger,
    });
    await Promise.all([topology.requirements(question()), topology.requirements(question())]);
    await topology.requirements(question());
    assert.equal(lists, 1, 'for all keys');
    await topology.requirements(n1);
    await topology.requirements(question({ selected: 'n2' }));
    assert.equal(lists, 2, 'for the keys of the selected nodes');
    nodes.delete('n2');
    changes += 1;
    assert.deepEqual(
      await topology.requirements(question()),
      wanted('{R=rA,Z=z1} {R=rC,Z=z3}', '{R=rA,Z=z1} {R=rC,Z=z3}'),
    );
    csiNodes.delete('n3');
    changes += 1;
    assert.deepEqual(await topology.requirements(question()), wanted('{R=rA,Z=z1}'));
  });
});
