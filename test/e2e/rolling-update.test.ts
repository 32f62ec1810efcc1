import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { watchLease, type LeaseWatch } from './lease-watch.ts';
import { openScene, type Scene } from '../support/scene.ts';
import { canFakeHostName } from '../support/sidecar-process.ts';
import type { StartedProcess } from '../support/started-process.ts';

const skip = canFakeHostName() ? false : 'two rivals on one machine need `unshare --uts`, which is not permitted here';
/** Long enough for a leader on a busy machine. */
const leaseSeconds = 8;

describe('two sidecars, of which one leads', { skip }, () => {
  let scene: Scene;
  let lease: LeaseWatch;
  /** By host name, the sidecar that runs there now. */
  const sidecars = new Map<string, StartedProcess>();
  before(async () => {
    scene = await openScene({
      hostName: 'left',
      rbac: ['components/leader-election/rbac.yaml'],
      sidecarFlags: [
        '--leader-election',
        `--leader-election-lease-duration=${leaseSeconds}s`,
        `--leader-election-renew-deadline=${leaseSeconds - 1}s`,
        '--leader-election-retry-period=500ms',
        '--worker-threads=5',
      ],
    });
    const leaseName = scene.driver.driverName.replaceAll(/[^a-zA-Z0-9-]/g, '-');
    lease = await watchLease(scene.cluster.adminKubeconfig, scene.cluster.sidecarNamespace, leaseName);
    sidecars.set('left', scene.sidecar);
    await scene.eventually(() => assert.equal(lease.states.at(-1)?.holder, 'left'));
    await startStandby('right');
  });
  afterEach((context) => scene.report(context));
  after(() => scene.close());
  after(() => lease[Symbol.dispose]());

  /** Starts a sidecar and waits until it has seen that another one leads. */
  async function startStandby(hostName: string): Promise<void> {
    const standby = await scene.startSidecar([], hostName);
    sidecars.set(hostName, standby);
    await scene.eventually(() => assert.match(standby.log(), /is held by another and has not yet expired/));
  }

  /**
   * Ends the leader while it works on 50 claims, waits until all are bound, and checks that each has one volume. All
   * times are milliseconds since the signal, as those who acted noted them.
   */
  async function endLeaderUnderLoad(leader: string, follower: string, signal: NodeJS.Signals) {
    const callsBefore = (await scene.driver.calls('CreateVolume')).length;
    const callsSince = async () => (await scene.driver.calls('CreateVolume')).slice(callsBefore);
    const className = await scene.createClass();
    // a fault with nothing in it lets 10 calls through; the next 5, one of each worker, wait for the signal
    await scene.driver.setFaults([
      { method: 'CreateVolume', times: 10 },
      { method: 'CreateVolume', hold: true },
    ]);
    const claims = await Promise.all(Array.from({ length: 50 }, () => scene.createClaim({ className })));
    await scene.eventually(async () => assert.equal((await callsSince()).length, 10));
    const statesBefore = lease.states.length;
    const signalMs = Date.now();
    const ended = sidecars.get(leader)?.stop(signal);
    await scene.driver.setFaults([{ method: 'CreateVolume', delayMs: 500 }]); // 35 claims, 5 workers: 3.5 s for the signal
    await ended;
    assert.ok((await callsSince()).length < 50, 'the load was over before the leader ended');
    await scene.driver.setFaults([]);
    const taken = await scene.eventually(() => {
      const state = lease.states.slice(statesBefore).find(({ holder }) => holder === follower);
      assert.ok(state, 'the lease has not changed hands');
      return state;
    });
    const renewed = lease.states.findLast(({ holder }) => holder === leader);
    const released = lease.states.slice(statesBefore).find(({ holder }) => holder === '');

    const bound = await Promise.all(claims.map((claim) => scene.bound(claim.metadata?.name ?? '')));
    assert.deepEqual(
      bound.map(({ volume }) => volume.spec?.csi?.volumeHandle).toSorted(),
      (await scene.driver.volumeIds()).toSorted(),
    );
    const calls = await callsSince();
    const callsOf = Map.groupBy(calls, ({ request }) => request.name ?? '');
    assert.deepEqual([...callsOf.keys()].toSorted(), bound.map(({ volume }) => volume.metadata?.name).toSorted());
    const callTimes = calls.map(({ time }) => Date.parse(time)).toSorted((a, b) => a - b);
    const first = callTimes.find((atMs) => atMs >= taken.acquiredMs);
    assert.ok(first !== undefined, 'the new leader had nothing to do');
    for (const { metadata } of claims) await scene.deleteClaim(metadata?.name ?? '');
    await scene.eventually(async () => assert.deepEqual(await scene.driver.volumeIds(), []));
    return {
      takenFrom: lease.states[lease.states.indexOf(taken) - 1]?.holder,
      renewedMs: (renewed?.renewedMs ?? NaN) - signalMs,
      releasedMs: released === undefined ? undefined : released.renewedMs - signalMs,
      takenMs: taken.acquiredMs - signalMs,
      firstCallMs: first - signalMs,
      callsPerVolume: Array.from(callsOf.values(), ({ length }) => length),
    };
  }

  test('change places at once when the leader is told to end', async (t) => {
    const turn = await endLeaderUnderLoad('left', 'right', 'SIGTERM');
    const { takenFrom, releasedMs, takenMs, firstCallMs, callsPerVolume } = turn;
    assert.ok(releasedMs !== undefined, 'the leader did not let go of the lease');
    t.diagnostic(
      `SIGTERM: lease released ${releasedMs} ms later, taken after ${takenMs}, first CreateVolume after ${firstCallMs}`,
    );
    // That this takes a moment is checked with a clock of the tests' own, in test/integration/kube/leader-election.test.ts.
    assert.equal(takenFrom, '', 'the lease was held by nobody when it was taken');
    // The first one saw its calls through, so there was nothing to repeat.
    assert.deepEqual(new Set(callsPerVolume), new Set([1]));
  });

  test('change places when the lease runs out after the leader was killed', async (t) => {
    await startStandby('left');
    const { renewedMs, ...turn } = await endLeaderUnderLoad('right', 'left', 'SIGKILL');
    assert.equal(turn.releasedMs, undefined);
    const waitedMs = turn.takenMs - renewedMs;
    t.diagnostic(
      `SIGKILL: lease taken ${turn.takenMs} ms later, ${waitedMs} after its last renewal; ` +
        `first CreateVolume after ${turn.firstCallMs}`,
    );
    const takenFromMs = (leaseSeconds + 1) * 1000; // a standby waits a second beyond the lease
    assert.ok(waitedMs >= takenFromMs - 10, `taken ${waitedMs} ms after the last renewal, too early`);
    // Only what was under way at the kill is asked for again, under its old name: 5 workers.
    assert.ok(turn.callsPerVolume.every((calls) => calls === 1 || calls === 2));
    assert.ok(turn.callsPerVolume.filter((calls) => calls === 2).length <= 5);
  });
});
