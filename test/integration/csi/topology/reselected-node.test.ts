/** The scheduler selects another node between two attempts: only a request that was never sent follows it. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { SandboxObject } from '../../../../sandbox/api/client.ts';
import { RecordingDriver } from '../../../support/fakes/recording-driver.ts';
import { labels, terms } from '../../../support/topology-clusters.ts';
import { resource } from '../../../support/api-scene.ts';
import {
  type ClaimOutcome,
  startTopologyScene,
  topologyPlugin,
  type TopologyScene,
  type TopologySceneOptions,
} from './topology-scene.ts';

const cluster = 'three racks in three zones';
const strict = true;
const onlyOf = (segments: string) => ({ requisite: terms(segments), preferred: terms(segments) });
const zone1 = onlyOf('{R=rA,Z=z1}');
const zone2 = onlyOf('{R=rB,Z=z2}');
const csiNodeGone = 'failed to get selected CSINode n1: csinode.storage.k8s.io "n1" not found';

const failedWith = (text: string) => (outcome: ClaimOutcome) => 'failed' in outcome && outcome.failed.endsWith(text);
const failedFor = (text: string) => (outcome: ClaimOutcome) => 'failed' in outcome && outcome.failed.includes(text);

describe('a claim whose attempts never reached the driver', () => {
  const parameters = {
    'csi.storage.k8s.io/provisioner-secret-name': 'late',
    'csi.storage.k8s.io/provisioner-secret-namespace': 'ns1',
  };
  const noSecret = failedFor('secret late');
  const createSecret = ({ api }: TopologyScene): SandboxObject =>
    api.create(resource.secrets, { metadata: { name: 'late', namespace: 'ns1' }, data: {} });

  /** A class whose Secret is missing, and a claim whose first attempt has failed because of it. */
  async function failedScene(selected: string, more: Partial<TopologySceneOptions> = {}) {
    const topology = await startTopologyScene({ cluster, strict, parameters, delayed: selected !== '', ...more });
    const claim = topology.claimFor('testpvc', selected);
    assert.ok(noSecret(await topology.outcome(claim)));
    return { topology, claim };
  }

  for (const strict of [true, false]) {
    test(`gets its volume in the topology of the node that was selected last, ${strict ? 'strict' : 'preferred'}`, async () => {
      const { claim, ...it } = await failedScene('n1', { strict });
      await using topology = it.topology;
      topology.select('testpvc', 'n2');
      await topology.seen('n1', noSecret); // an event from after the selection
      createSecret(topology);
      const all = { requisite: terms('{R=rA,Z=z1} {R=rB,Z=z2} {R=rC,Z=z3}') };
      const preferred = terms('{R=rB,Z=z2} {R=rC,Z=z3} {R=rA,Z=z1}');
      assert.deepEqual(await topology.asked(claim), strict ? zone2 : { ...all, preferred });
      await topology.volume('testpvc');
      assert.equal(topology.calls(claim).length, 1);
    });
  }

  test('waits while no node is selected, and gets its volume in the topology of the next one', async () => {
    const { claim, ...it } = await failedScene('n1');
    await using topology = it.topology;
    topology.select('testpvc', undefined);
    await topology.seen('n1', noSecret);
    createSecret(topology);
    topology.claimFor('other', 'n3');
    await topology.volume('other');
    assert.deepEqual(topology.calls(claim), []);
    topology.select('testpvc', 'n2');
    assert.deepEqual(await topology.asked(claim), zone2);
  });

  test('loses a selected node that does not exist any more', async () => {
    const { claim, ...it } = await failedScene('n1');
    await using topology = it.topology;
    topology.removeNode('n1');
    topology.removeCsiNode('n1');
    await topology.until('the selected node to go', () => topology.selected('testpvc') === undefined);
    await topology.until('the reason', () => topology.failures('testpvc').includes(csiNodeGone));
    createSecret(topology);
    topology.select('testpvc', 'n2');
    assert.deepEqual(await topology.asked(claim), zone2);
  });

  test('without a selected node may use all current nodes', async () => {
    const { claim, ...it } = await failedScene('');
    await using topology = it.topology;
    topology.removeNode('n1');
    topology.putNode({ name: 'n4', labels: 'Z=z4,R=rD', keys: 'Z,R' });
    await topology.seen('n4', noSecret); // its CSINode and its Node are known
    createSecret(topology);
    const asked = await topology.asked(claim);
    assert.deepEqual(asked?.requisite, terms('{R=rB,Z=z2} {R=rC,Z=z3} {R=rD,Z=z4}'));
  });

  test('because the driver was away gets its volume in the topology of the node that was selected last', async () => {
    await using topology = await startTopologyScene({ cluster, strict, delayed: true });
    const { driver, program } = topology;
    await program.logged('Started provisioner controller');
    driver.kill();
    await program.logged('Lost connection');
    const claim = topology.claimFor('testpvc', 'n1');
    await topology.until('the failure', () => topology.failures('testpvc').some((it) => it.includes('not conn')));
    topology.select('testpvc', 'n2');
    await topology.seen('n1', failedFor('not connected'));
    await using back = await RecordingDriver.start({ socketPath: driver.socketPath, plugin: topologyPlugin });
    await topology.called(back, 'CreateVolume');
    await topology.volume('testpvc');
    const name = `pvc-${claim.metadata.uid ?? ''}`;
    const requests = back.callsOf('CreateVolume').filter(({ request }) => request['name'] === name);
    assert.deepEqual(
      requests.map(({ request }) => request['accessibility_requirements']),
      [zone2],
    );
  });
});

describe('a CreateVolume that was sent and has no clear result', () => {
  const changes: { what: string; change: (topology: TopologyScene) => void | Promise<void> }[] = [
    {
      what: 'another node is selected',
      change: (topology) => topology.select('testpvc', 'n2'),
    },
    {
      what: 'no node is selected any more, and then another one',
      change: async (topology) => {
        topology.select('testpvc', undefined);
        await topology.seen('n3', (outcome) => 'asked' in outcome);
        topology.select('testpvc', 'n2');
      },
    },
    {
      what: 'the node is gone and another one is selected',
      change: async (topology) => {
        topology.removeNode('n1');
        topology.removeCsiNode('n1');
        await topology.seen('n1', failedWith(csiNodeGone));
        topology.select('testpvc', 'n2');
      },
    },
    {
      what: 'the labels of the node change',
      change: (topology) => topology.putNode({ name: 'n1', labels: 'Z=z9,R=rA' }),
    },
  ];
  const z9 = JSON.stringify(labels('R=rA,Z=z9'));
  const forbidden = { type: 'status', code: 403, reason: 'Forbidden', message: 'no leases' } as const;
  const journals: { where: string; options: Partial<TopologySceneOptions>; cases: typeof changes }[] = [
    { where: 'with the journal', options: {}, cases: changes },
    { where: 'without the journal', options: { flags: ['--intent-journal=off'] }, cases: changes },
    {
      where: 'without the right to write the journal',
      options: { onServer: (server) => server.faults.add({ match: { resource: 'leases' }, action: forbidden }) },
      cases: changes.slice(0, 1),
    },
  ];
  for (const { where, options, cases } of journals) {
    for (const { what, change } of cases) {
      test(`${where} is repeated unchanged, though ${what}`, async () => {
        await using topology = await startTopologyScene({ cluster, strict, delayed: true, ...options });
        const held = topology.hold('DEADLINE_EXCEEDED', 'UNAVAILABLE');
        const claim = topology.claimFor('testpvc', 'n1');
        assert.deepEqual(await topology.asked(claim), zone1);
        await change(topology);
        // the program knows of the change once a later claim is served by it
        await topology.seen('n2', (outcome) => 'asked' in outcome);
        if (what.startsWith('the labels')) await topology.seen('n1', (outcome) => JSON.stringify(outcome).includes(z9));
        held.release();
        await topology.volume('testpvc');
        const requests = topology.calls(claim).map(({ request }) => request);
        assert.equal(requests.length, 3);
        assert.deepEqual(requests, [requests[0], requests[0], requests[0]]);
      });
    }
  }
});
