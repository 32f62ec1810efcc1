/** Topology through the whole program: requests as the driver gets them, events, annotations, saved volumes. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { status } from '@grpc/grpc-js';
import { DriverFailure, RecordingDriver } from '../../../support/fakes/recording-driver.ts';
import { topologyCases, type TopologyCase } from '../../../support/topology-cases.ts';
import { labels, type SampleNode, terms } from '../../../support/topology-clusters.ts';
import { Wire } from '../../provision/wire.ts';
import { Program } from '../../../support/program.ts';
import { freePort } from '../../../support/free-ports.ts';
import { type SceneOptions } from '../scene.ts';
import {
  type ClaimOutcome,
  startTopologyScene,
  storedClaim,
  topologyPlugin,
  type TopologyScene,
} from './topology-scene.ts';

const prefix = 'error generating accessibility requirements: ';
const wanted = (requisite: string, preferred = requisite) => ({
  requisite: terms(requisite),
  preferred: terms(preferred),
});

async function check({ want, claim: name = 'testpvc', selected, ...given }: TopologyCase): Promise<void> {
  const { cluster, strict, immediate, allowed } = given;
  const claim = storedClaim(name, selected);
  const delayed = selected !== undefined;
  await using topology = await startTopologyScene({ cluster, strict, immediate, allowed, delayed, claim });
  const outcome = await topology.outcome(claim);
  if (want === 'none') assert.deepEqual(outcome, { asked: undefined });
  else if ('requisite' in want) assert.deepEqual(outcome, { asked: wanted(want.requisite, want.preferred) });
  else if ('error' in want) {
    assert.deepEqual(outcome, { failed: prefix + want.error });
    await topology.until('a retry', () => topology.events(name).some(({ count }) => count > 1));
    assert.equal(topology.selected(name), selected);
  } else {
    assert.deepEqual(outcome, { failed: want.gone });
    await topology.until('the selected node to go', () => topology.selected(name) === undefined);
  }
}

describe('accessibility requirements, through the whole program', () => {
  for (const [about, cases] of Object.entries(topologyCases)) {
    describe(about, () => {
      for (const each of cases) if (each.wholeProgram) test(each.name, () => check(each));
    });
  }
});

const all = '{R=rA,Z=z1} {R=rB,Z=z2} {R=rC,Z=z3}';
const csiNodeGone = 'failed to get selected CSINode n1: csinode.storage.k8s.io "n1" not found';
const nodeGone = 'failed to get selected Node n1: node "n1" not found';
const failedWith = (text: string) => (outcome: ClaimOutcome) => 'failed' in outcome && outcome.failed.endsWith(text);
const askedFor = (segments: string) => (outcome: ClaimOutcome) =>
  'asked' in outcome && JSON.stringify(outcome.asked?.requisite).includes(JSON.stringify(labels(segments)));
const notAskedFor = (segments: string) => (outcome: ClaimOutcome) => 'asked' in outcome && !askedFor(segments)(outcome);

interface RetryCase {
  name: string;
  /** Default n1; empty: none. */
  selected?: string;
  strict?: boolean;
  allowed?: string;
  nodes?: SampleNode[];
  /** What the first CreateVolume, and then the second, ends with. */
  codes: (keyof typeof status)[];
  first: ReturnType<typeof wanted>;
  /** Made while the first call is under way. */
  change: (topology: TopologyScene) => void;
  /** For whom a probe selects a node, and what it must come to before the first call ends. */
  probe: string;
  seen: (outcome: ClaimOutcome) => boolean;
  /** What the calls after the first ask for. */
  then: ReturnType<typeof wanted>[];
  /** The last failure's text, instead of a further call. */
  failure?: string;
  /** The node that is selected in the end. */
  selectedAfter?: string | undefined;
}

const removeN1 = (topology: TopologyScene): void => {
  topology.removeNode('n1');
  topology.removeCsiNode('n1');
};

const retries: RetryCase[] = [
  {
    name: 'after DeadlineExceeded a node that is gone changes nothing',
    codes: ['DEADLINE_EXCEEDED'],
    first: wanted(all),
    change: removeN1,
    probe: 'n1',
    seen: failedWith(csiNodeGone),
    then: [wanted(all)],
  },
  {
    name: 'strict: after DeadlineExceeded a node that is gone changes nothing',
    strict: true,
    codes: ['DEADLINE_EXCEEDED'],
    first: wanted('{R=rA,Z=z1}'),
    change: removeN1,
    probe: 'n1',
    seen: failedWith(csiNodeGone),
    then: [wanted('{R=rA,Z=z1}')],
  },
  {
    name: 'after a final failure a node without CSINode asks for another node',
    codes: ['INTERNAL'],
    first: wanted(all),
    change: removeN1,
    probe: 'n1',
    seen: failedWith(csiNodeGone),
    then: [],
    failure: csiNodeGone,
    selectedAfter: undefined,
  },
  {
    name: 'after a final failure a CSINode without Node asks for another node',
    codes: ['INTERNAL'],
    first: wanted(all),
    change: (topology) => topology.removeNode('n1'),
    probe: 'n1',
    seen: failedWith(nodeGone),
    then: [],
    failure: nodeGone,
    selectedAfter: undefined,
  },
  {
    name: 'without a selected node DeadlineExceeded keeps the topologies',
    selected: '',
    codes: ['DEADLINE_EXCEEDED'],
    first: wanted(all, '{R=rC,Z=z3} {R=rA,Z=z1} {R=rB,Z=z2}'),
    change: removeN1,
    probe: '',
    seen: notAskedFor('R=rA,Z=z1'),
    then: [wanted(all, '{R=rC,Z=z3} {R=rA,Z=z1} {R=rB,Z=z2}')],
  },
  {
    name: 'without a selected node OutOfRange computes the topologies again',
    selected: '',
    codes: ['OUT_OF_RANGE'],
    first: wanted(all, '{R=rC,Z=z3} {R=rA,Z=z1} {R=rB,Z=z2}'),
    change: removeN1,
    probe: '',
    seen: notAskedFor('R=rA,Z=z1'),
    then: [wanted('{R=rB,Z=z2} {R=rC,Z=z3}')],
  },
  {
    name: 'allowed topologies need no nodes',
    selected: '',
    allowed: '(Z:z1)',
    codes: ['DEADLINE_EXCEEDED'],
    first: wanted('{Z=z1}'),
    change: (topology) => ['n1', 'n2', 'n3'].forEach((name) => topology.removeNode(name)),
    probe: 'n1',
    seen: failedWith(nodeGone),
    then: [wanted('{Z=z1}')],
  },
  {
    name: 'a changed label counts after a final failure',
    codes: ['INTERNAL'],
    first: wanted(all),
    change: (topology) => topology.putNode({ name: 'n1', labels: 'Z=z9,R=rA' }),
    probe: 'n2',
    seen: askedFor('R=rA,Z=z9'),
    then: [wanted('{R=rA,Z=z9} {R=rB,Z=z2} {R=rC,Z=z3}')],
  },
  {
    name: 'after Aborted a new node does not count, also when a final failure follows',
    codes: ['ABORTED', 'INTERNAL'],
    first: wanted(all),
    change: (topology) => topology.putNode({ name: 'n4', labels: 'Z=z4,R=rD', keys: 'Z,R' }),
    probe: 'n2',
    seen: askedFor('R=rD,Z=z4'),
    then: [wanted(all), wanted(all)],
  },
  {
    name: 'another selected node counts after a final failure',
    codes: ['INTERNAL'],
    first: wanted(all),
    change: (topology) => topology.select('testpvc', 'n2'),
    probe: 'n1', // the probe is made later than the change
    seen: askedFor('R=rA,Z=z1'),
    then: [wanted(all, '{R=rB,Z=z2} {R=rC,Z=z3} {R=rA,Z=z1}')],
    selectedAfter: 'n2',
  },
  {
    name: 'strict: another selected node counts after a final failure',
    strict: true,
    codes: ['INTERNAL'],
    first: wanted('{R=rA,Z=z1}'),
    change: (topology) => topology.select('testpvc', 'n2'),
    probe: 'n1',
    seen: askedFor('R=rA,Z=z1'),
    then: [wanted('{R=rB,Z=z2}')],
    selectedAfter: 'n2',
  },
  {
    name: 'other keys of the CSINode count after a final failure',
    nodes: [{ name: 'n1', labels: 'Z=z1,R=rA', keys: 'Z' }],
    codes: ['INTERNAL'],
    first: wanted('{Z=z1} {Z=z2} {Z=z3}'),
    change: (topology) => topology.putNode({ name: 'n1', keys: 'Z,R' }),
    probe: 'n1',
    seen: askedFor('R=rA,Z=z1'),
    then: [wanted(all)],
  },
];

describe('retries', () => {
  for (const each of retries) {
    const { name, selected = 'n1', strict, allowed, nodes = [], codes, first, then, failure } = each;
    test(name, async () => {
      await using topology = await startTopologyScene({
        cluster: 'three racks in three zones',
        strict,
        allowed,
        nodes,
        delayed: selected !== '' && each.probe !== '',
      });
      const held = topology.hold(...codes);
      const claim = topology.claimFor('testpvc', selected);
      assert.deepEqual(await topology.asked(claim), first);
      each.change(topology);
      await topology.seen(each.probe, each.seen);
      held.release();
      for (const [index, next] of then.entries()) assert.deepEqual(await topology.asked(claim, index + 2), next);
      if (failure === undefined) await topology.volume('testpvc');
      else await topology.until('the failure', () => topology.failures('testpvc').includes(failure));
      if ('selectedAfter' in each) {
        await topology.until('the selection', () => topology.selected('testpvc') === each.selectedAfter);
      }
      assert.equal(topology.calls(claim).length, 1 + then.length);
    });
  }

  const unlabelled = `${prefix}topology labels from selected node map[ex.com/zone:z1 os:linux] does not match topology keys from CSINode [ex.com/zone ex.com/rack]`;

  test('a label that the selected node gets late counts at the next attempt', async () => {
    await using topology = await startTopologyScene({
      cluster: 'three racks in three zones',
      nodes: [{ name: 'n1', labels: 'Z=z1,os=linux', keys: 'Z,R' }],
    });
    const claim = topology.claimFor('testpvc', 'n1');
    await topology.until('the failure', () => topology.failures('testpvc').includes(unlabelled));
    topology.putNode({ name: 'n1', labels: 'Z=z1,os=linux,R=rA' });
    assert.deepEqual(await topology.asked(claim), wanted(all));
    await topology.volume('testpvc');
  });

  test('a selected node that goes before it got its labels asks for another node', async () => {
    await using topology = await startTopologyScene({
      cluster: 'three racks in three zones',
      nodes: [{ name: 'n1', labels: 'Z=z1,os=linux', keys: 'Z,R' }],
      flags: ['--retry-interval-max=50ms'],
      delayed: true,
    });
    const claim = topology.claimFor('testpvc', 'n1');
    await topology.until('the failure', () => topology.failures('testpvc').includes(unlabelled));
    topology.removeNode('n1');
    await topology.until('the selected node to go', () => topology.selected('testpvc') === undefined);
    await topology.until('the reason', () => topology.failures('testpvc').includes(nodeGone));
    topology.select('testpvc', 'n2');
    assert.deepEqual(await topology.asked(claim), wanted('{R=rB,Z=z2} {R=rC,Z=z3}'));
  });

  test('a restarted process repeats the recorded topology, although the CSINode is gone', async () => {
    await using topology = await startTopologyScene({ cluster: 'three racks in three zones', delayed: true });
    const { driver, program, url } = topology;
    topology.hold();
    const claim = topology.claimFor('testpvc', 'n1');
    const first = await topology.asked(claim);
    await program[Symbol.asyncDispose]();
    topology.removeCsiNode('n1');
    await using _again = new Program({ socketPath: driver.socketPath, apiUrl: url });
    assert.deepEqual(await topology.asked(claim, 2), first);
    assert.equal(topology.selected('testpvc'), 'n1');
  });

  test('ResourceExhausted takes the node off the claim, and the next one gets a requirement of its own', async () => {
    await using topology = await startTopologyScene({ cluster: 'three racks in three zones', delayed: true });
    topology.driver.next('CreateVolume', new DriverFailure(status.RESOURCE_EXHAUSTED, 'full'));
    const claim = topology.claimFor('testpvc', 'n1');
    assert.deepEqual(await topology.asked(claim), wanted(all));
    await topology.until('the selected node to go', () => topology.selected('testpvc') === undefined);
    topology.select('testpvc', 'n2');
    assert.deepEqual(await topology.asked(claim, 2), wanted(all, '{R=rB,Z=z2} {R=rC,Z=z3} {R=rA,Z=z1}'));
    assert.deepEqual(topology.failures('testpvc'), ['rpc error: code = ResourceExhausted desc = full']);
    await topology.volume('testpvc');
  });

  test('where nodes have different keys, one draw holds for all repeats', async () => {
    await using topology = await startTopologyScene({
      cluster: 'different keys',
      flags: ['--retry-interval-max=50ms'],
    });
    const busy = new DriverFailure(status.DEADLINE_EXCEEDED, 'busy');
    topology.driver.next('CreateVolume', ...Array<DriverFailure>(11).fill(busy));
    const claim = topology.claimFor('testpvc');
    const first = await topology.asked(claim);
    await topology.volume('testpvc');
    // drawn anew each time, twelve would be alike once in hundreds of runs
    for (let n = 2; n <= 12; n += 1) assert.deepEqual(await topology.asked(claim, n), first);
  });
});

describe('node affinity of the volume', () => {
  const affinities: {
    name: string;
    answer: string | undefined;
    want: string | undefined;
    flags?: string[];
    plugin?: string[];
  }[] = [
    { name: 'an answer without topology gives no affinity', answer: undefined, want: undefined },
    { name: 'one topology is one term', answer: '{Z=z1}', want: '{Z=z1}' },
    { name: 'two keys are two expressions of one term', answer: '{Z=z1,R=r2}', want: '{Z=z1,R=r2}' },
    { name: 'two topologies are two terms', answer: '{Z=z1} {Z=z2}', want: '{Z=z1} {Z=z2}' },
    { name: 'terms keep the order of the answer', answer: '{Z=z2} {Z=z1}', want: '{Z=z2} {Z=z1}' },
    { name: 'a topology that the driver repeats is repeated', answer: '{Z=z1} {Z=z1}', want: '{Z=z1} {Z=z1}' },
    { name: 'a topology without segments beside another is left out', answer: '{} {Z=z1}', want: '{Z=z1}' },
    { name: 'a topology that was not asked for is taken over', answer: '{Z=z9}', want: '{Z=z9}' },
    {
      name: 'a driver without the capability gives no affinity',
      answer: '{Z=z1}',
      want: undefined,
      plugin: ['CONTROLLER_SERVICE'],
    },
    {
      name: 'with the gate off there is no affinity',
      answer: '{Z=z1}',
      want: undefined,
      flags: ['--feature-gates=Topology=false'],
    },
    {
      name: 'with the gate off there is no affinity, also where capacities are published for the topology of the nodes',
      answer: '{Z=z1}',
      want: undefined,
      flags: ['--feature-gates=Topology=false', '--enable-capacity', '--capacity-ownerref-level=-1'],
    },
    { name: 'topologies may have different keys', answer: '{Z=a,R=r} {Z=b}', want: '{Z=a,R=r} {Z=b}' },
  ];
  const answerWith = (answer: string | undefined) => (driver: RecordingDriver) =>
    driver.always('CreateVolume', {
      volume: {
        volume_id: 'v',
        capacity_bytes: String(2 ** 30),
        ...(answer !== undefined && {
          accessible_topology:
            answer === '{}'
              ? [{}]
              : terms(answer).map(({ segments }) => ({ segments: '' in segments ? {} : segments })),
        }),
      },
    });
  for (const { name, answer, want, flags = [], plugin = topologyPlugin } of affinities) {
    test(name, async () => {
      await using topology = await startTopologyScene({
        cluster: 'one zone',
        flags,
        environment: { NAMESPACE: 'ns1' },
        plugin,
        script: answerWith(answer),
      });
      const claim = topology.claimFor('testpvc');
      const { spec } = await topology.volume('testpvc');
      const found = spec.nodeAffinity?.required?.nodeSelectorTerms;
      assert.deepEqual(
        found?.map(({ matchExpressions = [], ...rest }) => {
          assert.deepEqual(rest, {});
          assert.ok(matchExpressions.every(({ operator, values }) => operator === 'In' && values?.length === 1));
          return { segments: Object.fromEntries(matchExpressions.map(({ key, values }) => [key, values?.[0]])) };
        }),
        want === undefined ? undefined : terms(want),
      );
      const supported = plugin === topologyPlugin && flags.length === 0;
      assert.deepEqual(await topology.asked(claim), supported ? wanted('{Z=z1}') : undefined);
    });
  }

  test('a single topology without segments gives a volume that the API refuses', async () => {
    await using topology = await startTopologyScene({ cluster: 'one zone', script: answerWith('{}') });
    using wire = new Wire({ origin: topology.url, onAnswer: () => undefined });
    topology.claimFor('testpvc');
    await topology.program.logged('must have at least one node selector term');
    const sent = wire.requests.find(({ method, path }) => method === 'POST' && path.includes('/persistentvolumes'));
    assert.deepEqual(sent?.body.spec.nodeAffinity, { required: { nodeSelectorTerms: [] } });
    assert.equal(topology.volumeNow('testpvc'), undefined);
  });
});

describe('reading nodes', () => {
  const reads = (wire: Wire): string[] =>
    [...new Set(wire.requests.map(({ path }) => path.replace(/\?.*/, '')))]
      .filter((path) => /\/(csi)?nodes$/.test(path))
      .toSorted();

  for (const [what, options] of [
    ['a driver without the capability', { plugin: ['CONTROLLER_SERVICE'] }],
    ['the gate switched off', { flags: ['--feature-gates=Topology=false'] }],
  ] satisfies [string, SceneOptions][]) {
    test(`is not done with ${what}`, async () => {
      await using topology = await startTopologyScene({ cluster: 'three zones', ...options });
      using wire = new Wire({ origin: topology.url, onAnswer: () => undefined });
      const claim = topology.claimFor('testpvc');
      assert.equal(await topology.asked(claim), undefined);
      await topology.volume('testpvc');
      assert.deepEqual(reads(wire), []);
    });
  }

  const forbidden = { type: 'status', code: 403, reason: 'Forbidden', message: 'nodes is forbidden' } as const;

  test('without the right to it nothing is provisioned, readiness says why, and the rule is logged', async () => {
    const port = await freePort();
    await using topology = await startTopologyScene({
      cluster: 'three zones',
      flags: [`--http-endpoint=127.0.0.1:${port}`],
      onServer: (server) => server.faults.add({ match: { resource: 'nodes' }, action: forbidden }),
    });
    const line = await topology.program.logged('Not permitted to use a resource');
    assert.match(line, /nodes/);
    const claim = topology.claimFor('c1');
    const ready = await fetch(`http://127.0.0.1:${port}/readyz`);
    assert.equal(ready.status, 500);
    assert.match(await ready.text(), /the cache of nodes is not filled yet/);
    assert.deepEqual(topology.calls(claim), []);
  });

  test('a driver that has topology only after a restart gets it from then on', async () => {
    await using scene = await startTopologyScene({ cluster: 'three zones', plugin: ['CONTROLLER_SERVICE'] });
    using wire = new Wire({ origin: scene.url, onAnswer: () => undefined });
    const before = scene.claimFor('before');
    assert.equal(await scene.asked(before), undefined);
    await scene.volume('before');
    assert.deepEqual(reads(wire), []);
    scene.driver.kill();
    await using newer = await RecordingDriver.start({
      socketPath: scene.driver.socketPath,
      plugin: topologyPlugin,
    });
    await scene.program.logged('The driver came back');
    scene.claimFor('testpvc');
    await scene.called(newer, 'CreateVolume');
    assert.deepEqual(
      newer.callsOf('CreateVolume')[0]?.request['accessibility_requirements'],
      wanted('{Z=z1} {Z=z2} {Z=z3}', '{Z=z3} {Z=z1} {Z=z2}'),
    );
    assert.deepEqual(reads(wire), ['/api/v1/nodes', '/apis/storage.k8s.io/v1/csinodes']);
    assert.deepEqual(scene.failures('testpvc'), []);
  });
});
