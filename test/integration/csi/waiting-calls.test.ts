/** Calls that wait for a connection, or are sent a second time: what allowed them is checked again directly before they are sent. */
import assert from 'node:assert/strict';
import http2 from 'node:http2';
import { describe, test } from 'node:test';
import type { Permit } from '../../../src/base/permit.ts';
import { type Clock, systemClock } from '../../../src/base/clock.ts';
import { silentLogger } from '../../../src/base/logger.ts';
import type { ControllerCalls } from '../../../src/csi/csi-calls.ts';
import { CsiProvisioner } from '../../../src/csi/csi-provisioner.ts';
import { Driver } from '../../../src/csi/driver.ts';
import type { PersistentVolume } from '../../../src/provision/objects.ts';
import { VolumeInUseError } from '../../../src/provision/provisioner.ts';
import { driverName, Rig } from '../../support/csi-rig.ts';
import { patienceMs } from '../../support/patience.ts';
import { ScriptedPermit } from '../provision/scripted-permit.ts';
import { startAnswers } from './encoded-answers.ts';
import { answerWith, RawGrpcServer } from './raw-grpc-server.ts';

const { signal } = new AbortController();

const released: PersistentVolume = {
  metadata: { name: 'pv-1', uid: 'uid-pv-1' },
  spec: { csi: { driver: driverName, volumeHandle: 'vol-1' }, persistentVolumeReclaimPolicy: 'Delete' },
  status: { phase: 'Released' },
};

type Send = (rig: WaitingRig, permit?: Permit) => Promise<unknown>;

const proved = (): Promise<void> => Promise.resolve();

const revoke = async (
  { rig, provisioner }: WaitingRig,
  { permit, beforeDelete = proved }: { permit?: Permit | undefined; beforeDelete?: () => Promise<void> },
): Promise<void> => {
  const { plan } = await provisioner.plan(rig.options(), { signal });
  await provisioner.revoke(plan, { handle: 'vol-1', beforeDelete, signal, permit });
};

const kinds: Record<string, { method: 'CreateVolume' | 'DeleteVolume'; send: Send }> = {
  'the creation of a volume': {
    method: 'CreateVolume',
    send: async ({ rig, provisioner }, permit) => {
      const planned = await provisioner.plan(rig.options(), { signal });
      const context = { planned, mayExist: false, beforeDelete: proved, signal, permit };
      return await provisioner.fulfil(planned.plan, context);
    },
  },
  'the deletion of what no claim wants': { method: 'DeleteVolume', send: (rig, permit) => revoke(rig, { permit }) },
  'the deletion of a released volume': {
    method: 'DeleteVolume',
    send: ({ provisioner }, permit) => provisioner.delete(released, { signal, permit }),
  },
};

describe('a call that waits for a connection', { concurrency: true }, () => {
  for (const [what, { method, send }] of Object.entries(kinds)) {
    test(`${what} is not sent if the lease is lost meanwhile`, async () => {
      await using rig = await WaitingRig.start();
      const permit = new ScriptedPermit();
      await rig.beginRenewal();
      const sending = send(rig, permit);
      await rig.waits(sending);
      permit.lose(loseLease);
      rig.finishRenewal();
      await assert.rejects(sending, /the lease is lost/);
      assert.deepEqual(rig.rig.driver.callsOf(method), []);
    });

    test(`${what} is sent once the lease is renewed`, async () => {
      await using rig = await WaitingRig.start();
      const permit = new ScriptedPermit();
      await rig.beginRenewal();
      const sending = send(rig, permit);
      await rig.waits(sending);
      permit.lose(() => undefined);
      rig.finishRenewal();
      await sending;
      assert.equal(permit.isValid, true);
      assert.equal(rig.rig.driver.callsOf(method).length, 1);
    });
  }

  test('deletes nothing if it cannot be proved any more that this is allowed', async () => {
    await using rig = await WaitingRig.start();
    const refusal = new Error('somebody has kept it');
    let proofs = 0;
    const beforeDelete = (): Promise<void> => (++proofs > 1 ? Promise.reject(refusal) : Promise.resolve());
    await rig.beginRenewal();
    const sending = revoke(rig, { beforeDelete });
    await rig.waits(sending);
    rig.finishRenewal();
    await assert.rejects(sending, (error) => error === refusal);
    assert.deepEqual(rig.rig.driver.callsOf('DeleteVolume'), []);
  });

  test('does not delete a volume that is attached meanwhile', async () => {
    await using rig = await WaitingRig.start();
    await rig.beginRenewal();
    const sending = rig.provisioner.delete(released, { signal });
    await rig.waits(sending);
    rig.rig.attachments.set({
      metadata: { name: 'a', resourceVersion: '1' },
      spec: { nodeName: 'n', source: { persistentVolumeName: released.metadata.name } },
    });
    rig.finishRenewal();
    await assert.rejects(sending, VolumeInUseError);
    assert.deepEqual(rig.rig.driver.callsOf('DeleteVolume'), []);
  });
});

describe('a call that the driver has refused to begin (REFUSED_STREAM)', { concurrency: true }, () => {
  for (const [what, { method, send }] of Object.entries(kinds)) {
    test(`${what} is not sent again if the lease is lost meanwhile`, async () => {
      const permit = new ScriptedPermit();
      await using server = await refusing(() => permit.lose(loseLease));
      await using rig = await WaitingRig.start(server.socketPath);
      await assert.rejects(send(rig, permit), /the lease is lost/);
      assert.equal(server.callsOf(method).length, 1);
    });
  }

  test('is not sent again if the deletion cannot be proved any more', async () => {
    const refusal = new Error('somebody has kept it');
    let isKept = false;
    await using server = await refusing(() => (isKept = true));
    await using rig = await WaitingRig.start(server.socketPath);
    const beforeDelete = (): Promise<void> => (isKept ? Promise.reject(refusal) : Promise.resolve());
    await assert.rejects(revoke(rig, { beforeDelete }), (error) => error === refusal);
    assert.equal(server.callsOf('DeleteVolume').length, 1);
  });

  test('is proved and sent twice, however often it is refused', async () => {
    await using server = await refusing(() => undefined);
    await using rig = await WaitingRig.start(server.socketPath);
    let proofs = 0;
    const beforeDelete = (): Promise<void> => {
      proofs += 1;
      return Promise.resolve();
    };
    await assert.rejects(revoke(rig, { beforeDelete }), { name: 'ProvisionError', state: 'in-background' });
    assert.deepEqual([proofs, server.callsOf('DeleteVolume').length], [2, 2]);
  });
});

function loseLease(): never {
  throw new Error('the lease is lost');
}

function refusing(onRefused: () => void): Promise<RawGrpcServer> {
  return RawGrpcServer.start((call) => {
    const answer = startAnswers[call.method];
    if (answer !== undefined) {
      answerWith(call, answer);
      return;
    }
    onRefused();
    call.stream.close(http2.constants.NGHTTP2_REFUSED_STREAM);
  });
}

/** The provisioner on a connection that is replaced when its driver closes it. */
class WaitingRig implements AsyncDisposable {
  readonly rig: Rig;
  readonly provisioner: CsiProvisioner;
  readonly #driver: Driver;
  readonly #time: { passedMs: number };
  readonly #handedOver = Promise.withResolvers<undefined>();
  readonly #queried = Promise.withResolvers<object>();

  private constructor(rig: Rig, driver: Driver, time: { passedMs: number }) {
    this.rig = rig;
    this.#driver = driver;
    this.#time = time;
    const noting = <A extends unknown[], R>(call: (...given: A) => R) => {
      return (...given: A): R => {
        const result = call(...given);
        this.#handedOver.resolve(undefined);
        return result;
      };
    };
    const { calls } = driver;
    const controller: ControllerCalls = {
      createVolume: noting((request, options) => calls.createVolume(request, options)),
      deleteVolume: noting((request, options) => calls.deleteVolume(request, options)),
    };
    this.provisioner = new CsiProvisioner({ ...rig.settings, controller });
  }

  /** @param socketPath - of another driver than the rig's. */
  static async start(socketPath?: string): Promise<WaitingRig> {
    const rig = await Rig.start();
    const time = { passedMs: 0 };
    const clock: Clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + time.passedMs };
    const driver = await Driver.connect({
      address: socketPath ?? rig.driver.socketPath,
      timeoutMs: patienceMs,
      clock,
      logger: silentLogger,
      onGone: () => undefined,
      signal,
    });
    return new WaitingRig(rig, driver, time);
  }

  /** The driver closes the connection; on the next one it does not respond to the first query yet. */
  async beginRenewal(): Promise<void> {
    const { driver } = this.rig;
    driver.next('GetPluginInfo', () => this.#queried.promise);
    this.#time.passedMs += 3000; // only a connection that has held is replaced
    driver.retireConnections();
    await driver.called('GetPluginInfo', 2);
  }

  /** Resolves once the call is left to the connection. */
  async waits(sending: Promise<unknown>): Promise<void> {
    await Promise.race([this.#handedOver.promise, sending]);
  }

  finishRenewal(): void {
    this.#queried.resolve({ name: driverName, vendor_version: '1.2.3' });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#driver[Symbol.asyncDispose]();
    await this.rig[Symbol.asyncDispose]();
  }
}
