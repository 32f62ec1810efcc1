/** Leaders of an API server that stands still for most of the renew deadline, at all phases of their renewals. */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { silentLogger } from '../../src/base/logger.ts';
import { connect } from '../../src/kube/client/connect.ts';
import { type ElectionOutcome, LeaderElector } from '../../src/kube/election/leader-elector.ts';
import { openScene, type Scene } from '../support/scene.ts';

const retryPeriodMs = 5000;
const candidates = 10;

interface Leader {
  leads: boolean;
  outcome: ElectionOutcome | undefined;
  end(): Promise<void>;
}

/** Leads a Lease of its own with the times of the sidecar. */
function startLeader(scene: Scene, name: string): Leader {
  const transport = connect({ kubeconfig: scene.cluster.adminKubeconfig, environment: {}, logger: silentLogger });
  const elector = new LeaderElector({
    transport,
    namespace: scene.namespace,
    name,
    identity: name,
    retryPeriodMs,
    logger: silentLogger,
  });
  const stop = new AbortController();
  const leader: Leader = {
    leads: false,
    outcome: undefined,
    async end() {
      stop.abort(new Error('the test is over'));
      await ended;
      await transport[Symbol.asyncDispose]();
    },
  };
  const work = async (lost: AbortSignal): Promise<void> => {
    leader.leads = true;
    const over = AbortSignal.any([lost, stop.signal]);
    if (!over.aborted) await new Promise((resolve) => over.addEventListener('abort', resolve));
  };
  const ended = elector.run({ stop: stop.signal, work }).then((outcome) => (leader.outcome = outcome));
  return leader;
}

describe('an API server that stands still', () => {
  let scene: Scene;
  const leaders: Leader[] = [];
  before(async () => {
    scene = await openScene({
      restartsApiServer: true,
      cluster: { ownCluster: true },
      rbac: ['components/leader-election/rbac.yaml'],
      sidecarFlags: ['--leader-election'],
    });
  });
  afterEach((context) => scene.report(context));
  after(async () => {
    scene.cluster.apiServer?.goOn();
    await Promise.all(leaders.map((leader) => leader.end()));
    await scene.close();
  });

  for (const stallMs of [3000, 7000]) {
    test(`for ${stallMs / 1000} of the 10 s of the renew deadline ends no leader, and changes none`, async () => {
      const { apiServer } = scene.cluster;
      assert.ok(apiServer);
      while (leaders.length < candidates) {
        leaders.push(startLeader(scene, `standing-${leaders.length}`));
        await delay(retryPeriodMs / candidates); // renewals at all phases
      }
      await scene.eventually(() => assert.ok(leaders.every(({ leads }) => leads)));
      const className = await scene.createClass();
      await scene.bound((await scene.createClaim({ className })).metadata?.name ?? '');
      apiServer.standStill();
      await delay(stallMs);
      apiServer.goOn();
      const { metadata } = await scene.createClaim({ className });
      await scene.bound(metadata?.name ?? '');
      await delay(10_000); // whoever could not renew has given up by then
      assert.deepEqual(
        leaders.map(({ outcome }) => outcome),
        leaders.map(() => undefined),
      );
      assert.equal(scene.sidecar.running(), true, scene.sidecar.log());
      const { items } = await scene.admin.coordination.listNamespacedLease({ namespace: scene.namespace });
      const held = items.filter(({ metadata }) => metadata?.name?.startsWith('standing-'));
      assert.deepEqual(
        held.map(({ metadata, spec }) => [spec?.holderIdentity, spec?.leaseTransitions, metadata?.name]),
        held.map(({ metadata }) => [metadata?.name, 0, metadata?.name]),
      );
      assert.equal(held.length, candidates);
    });
  }
});
