/** Records that nodes left behind which do not exist any more. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { systemClock } from '../../../src/base/clock.ts';
import { createRegistry } from '../../../src/base/metrics.ts';
import { parseCommandLine } from '../../../src/cli/command-line.ts';
import { GoneNodes, goneNodesFeature } from '../../../src/cli/features/journal-features.ts';
import { controllerMetrics, type FeatureOptions } from '../../../src/cli/run-phase-options.ts';
import { nodeResource } from '../../../src/csi/topology/topology-nodes.ts';
import { ForbiddenError } from '../../../src/kube/client/api-error.ts';
import { leases } from '../../../src/kube/election/lease-record.ts';
import { journalLock } from '../../../src/run/lock-name.ts';
import { eventually } from '../../support/eventually.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';
import { type LogLine, recordedLogger } from '../../support/fakes/recorded-logger.ts';
import { SandboxApi } from '../../support/sandbox-api.ts';

const lock = 'local-csi';
const signal = new AbortController().signal;
const header = { shard: '{}', 'shared-1': '{}' };
const message = 'A node that does not exist any more has left records of volumes';

/** That this thread has taken: in wall-clock time a turn would also have that of other processes. */
function ownCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

class Scene implements AsyncDisposable {
  readonly lines: LogLine[] = [];
  reported = 0;
  readonly api: SandboxApi;

  private constructor(api: SandboxApi) {
    this.api = api;
  }

  static async start({ existing = ['own'] }: { existing?: readonly string[] } = {}): Promise<Scene> {
    const scene = new Scene(await SandboxApi.start());
    for (const name of existing) scene.api.own.create(nodeResource, { metadata: { name } });
    return scene;
  }

  /** An object of a node's journal with records of these claims. */
  addJournal(node: string, uids: readonly string[], { number = 0, lease = lock } = {}): void {
    const entries: Record<string, string> = { ...header, ...Object.fromEntries(uids.map((uid) => [uid, '{}'])) };
    const annotations: Record<string, string> = { other: 'x' };
    for (const [key, value] of Object.entries(entries)) annotations[`csi-provisioner.journal/${key}`] = value;
    const metadata = { namespace: 'ns1', name: `${journalLock(lease, node)}-journal-${number}` };
    this.api.own.create(leases, { metadata: { ...metadata, annotations } });
  }

  goneNodes(nodeName = 'own'): GoneNodes {
    return new GoneNodes({
      client: this.api.client,
      transport: this.api.transport,
      namespace: 'ns1',
      lease: lock,
      nodeName,
      onReported: () => (this.reported += 1),
      clock: systemClock,
      logger: recordedLogger(this.lines),
    });
  }

  get warnings(): object[] {
    return this.lines.filter((line) => line.level === 'warn' && line.message === message).map(({ fields }) => fields);
  }

  /** Names of the nodes that were read. */
  get nodesRead(): string[] {
    const entries = this.api.server.requestLog.entries({ resource: 'nodes', verb: 'get' });
    return entries.map(({ path }) => path.split('/').at(-1) ?? '');
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.api[Symbol.asyncDispose]();
  }
}

describe('the records of a node that does not exist any more', () => {
  test('are logged once, with the Leases that hold them', async () => {
    await using scene = await Scene.start();
    scene.addJournal('gone', ['u1', 'u2']);
    scene.addJournal('gone', ['u3'], { number: 1 });
    scene.addJournal('gone', [], { number: 2 });
    const goneNodes = scene.goneNodes();
    await goneNodes.check(signal);
    await goneNodes.check(signal);
    const objects = [`${lock}.gone-journal-0`, `${lock}.gone-journal-1`];
    assert.deepEqual(scene.warnings, [{ node: 'gone', records: 3, objects }]);
    assert.equal(scene.reported, 1);
  });

  test('are logged again once they are others', async () => {
    await using scene = await Scene.start();
    scene.addJournal('gone', ['u1']);
    const goneNodes = scene.goneNodes();
    await goneNodes.check(signal);
    scene.addJournal('gone', ['u2'], { number: 1 });
    await goneNodes.check(signal);
    assert.equal(scene.warnings.length, 2);
  });

  test('are told from those of nodes that exist, of other drivers, and from journals without records', async () => {
    await using scene = await Scene.start({ existing: ['own', 'other'] });
    scene.addJournal('own', ['u1']);
    scene.addJournal('other', ['u2']);
    scene.addJournal('gone', ['u3'], { lease: 'another-csi' });
    scene.addJournal('gone', []);
    await scene.goneNodes().check(signal);
    assert.deepEqual(scene.warnings, []);
    assert.deepEqual(scene.nodesRead, ['other'], 'nodes are read only for records');
  });

  test('are reported by a few of many nodes, and by no node without a journal then', async () => {
    const others = Array.from({ length: 40 }, (_, index) => `n${index}`);
    await using scene = await Scene.start({ existing: others });
    for (const node of others) scene.addJournal(node, []);
    scene.addJournal('gone', ['u1']);
    for (const node of others) await scene.goneNodes(node).check(signal);
    assert.equal(scene.warnings.length, 8);
    assert.equal(scene.nodesRead.length, 8);
    await scene.goneNodes('without-journal').check(signal);
    assert.equal(scene.warnings.length, 8);
  });

  for (const [resource, verb] of [
    ['leases', 'list'],
    ['nodes', 'get'],
  ] as const) {
    test(`cannot be found without the right to ${verb} ${resource}, and nothing is reported`, async () => {
      await using scene = await Scene.start();
      scene.addJournal('gone', ['u1']);
      const action = { type: 'status', code: 403, reason: 'Forbidden' } as const;
      scene.api.server.faults.add({ match: { verb, resource }, action });
      await assert.rejects(scene.goneNodes().check(signal), ForbiddenError);
      assert.equal(scene.reported, 0);
    });
  }

  test('of a thousand nodes the event loop gets its turns while it is decided who watches whom', async () => {
    await using scene = await Scene.start();
    scene.addJournal('own', ['uid-own']);
    for (let index = 0; index < 1000; index += 1) scene.addJournal(`node-${index}`, ['uid-a']);
    const gone = scene.goneNodes();
    const turnsMs: number[] = [];
    let [lastMs, isDone] = [ownCpuMs(), false];
    const startMs = lastMs;
    const turn = (): void => {
      const nowMs = ownCpuMs();
      turnsMs.push(nowMs - lastMs);
      lastMs = nowMs;
      if (!isDone) setImmediate(turn);
    };
    setImmediate(turn);
    await gone.check(signal);
    isDone = true;
    const totalMs = ownCpuMs() - startMs;
    assert.ok(scene.nodesRead.length < 100, 'each node is watched by a few');
    const [, , third = 0] = turnsMs.toSorted((a, b) => b - a); // one or two may be those that collect garbage
    assert.ok(third < totalMs / 7, `the third longest turn has ${third} ms, of ${totalMs} ms in all`);
  });
});

/* When a node looks for the records of nodes that are gone. */

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

async function scene(flags: readonly string[], random = 0.5) {
  const api = await SandboxApi.start();
  const clock = new ManualClock({ turns: 60 });
  const lines: LogLine[] = [];
  const environment = { NODE_NAME: 'own', POD_NAMESPACE: 'ns1' };
  const parsed = parseCommandLine({ argv0: 'x', args: flags, environment, version: 'v0' });
  assert.equal(parsed.kind, 'run');
  const { config } = parsed;
  const registry = createRegistry();
  const stop = new AbortController();
  const feature = goneNodesFeature({
    config,
    driver: { name: 'local.csi' },
    client: api.client,
    transport: api.transport,
    metrics: controllerMetrics(registry, config, clock),
    random: () => random,
    clock,
    logger: recordedLogger(lines),
  } as unknown as FeatureOptions);
  const running = feature?.run?.({ stop: stop.signal, abort: stop.signal });
  const lists = () => api.server.requestLog.entries({ resource: 'leases', verb: 'list' }).length;
  return {
    ...{ api, clock, lines, registry, feature, lists },
    addJournal: (node: string): void => {
      const metadata = { namespace: 'ns1', name: `local-csi.${node}-journal-0` };
      api.own.create(leases, { metadata: { ...metadata, annotations: { 'csi-provisioner.journal/u1': '{}' } } });
    },
    warnings: () => lines.filter(({ level }) => level === 'warn').length,
    async [Symbol.asyncDispose]() {
      stop.abort(new Error('the test is over'));
      await running;
      await api[Symbol.asyncDispose]();
    },
  };
}

describe('a node', () => {
  test('looks for records of nodes that are gone after a random delay, then once a day', async () => {
    await using rig = await scene(['--node-deployment']);
    const { clock, lists, addJournal, warnings } = rig;
    addJournal('gone');
    await clock.advance(5 * minuteMs - 1);
    assert.equal(lists(), 0);
    await clock.advance(1);
    await eventually(() => assert.equal(warnings(), 1));
    addJournal('later-gone');
    await clock.advance(dayMs - 1);
    assert.equal(lists(), 1);
    await clock.advance(1);
    await eventually(() => assert.equal(warnings(), 2));
    assert.equal(lists(), 2);
    assert.match(await rig.registry.metrics(), /^intent_journal_reported_total\{reason="node-gone"\} 2$/m);
  });

  test('looks again after an hour when the API server did not answer', async () => {
    await using rig = await scene(['--node-deployment']);
    const { api, clock, lines } = rig;
    api.server.faults.add({ match: { verb: 'list' }, action: { type: 'status', code: 500 } });
    await clock.advance(5 * minuteMs);
    const failures = () => lines.filter(({ message }) => message.includes('could not be looked for')).length;
    await eventually(() => assert.equal(failures(), 1));
    await clock.advance(60 * minuteMs);
    await eventually(() => assert.equal(failures(), 2));
  });

  for (const flags of [[], ['--leader-election'], ['--node-deployment', '--intent-journal=off']]) {
    test(`does not look with ${flags.join(' ') || 'no flag'}`, async () => {
      await using rig = await scene(flags);
      assert.equal(rig.feature, undefined);
    });
  }
});
