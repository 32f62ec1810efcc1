/** Plans are undone: the volume that may be there is found and deleted. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { status } from '@grpc/grpc-js';
import type { ProvisionError } from '../../../src/provision/provisioner.ts';
import type { Plan, RevokeContext } from '../../../src/provision/recoverable.ts';
import { codeName } from '../../../src/csi/call-error.ts';
import { DriverFailure } from '../../support/fakes/recording-driver.ts';
import { makeClaim, Rig } from '../../support/csi-rig.ts';
import { ScriptedPermit } from '../provision/scripted-permit.ts';
import { makePlan, secretPath, sourcePath, startFullRig, storedPlan } from '../../support/full-plan.ts';

const { signal } = new AbortController();

/** What the controller was told before a deletion. */
class Announced {
  readonly handles: string[] = [];

  context(handle?: string): RevokeContext {
    const beforeDelete = (announced: string): Promise<void> => {
      this.handles.push(announced);
      return Promise.resolve();
    };
    return { handle, beforeDelete, signal };
  }
}

function deletes(rig: Rig): unknown[] {
  return rig.driver.callsOf('DeleteVolume').map(({ request }) => request);
}

async function planOf(rig: Rig, claim = makeClaim()): Promise<Plan> {
  return (await rig.provisioner.plan(rig.options(claim), { signal })).plan;
}

/** What the failed revoke says, if not that nothing is known. */
async function failureOf(revoked: Promise<void>): Promise<Pick<ProvisionError, 'state' | 'afterUnclear'>> {
  const error = await revoked.then(
    () => assert.fail('should have failed'),
    (reason: unknown) => reason as ProvisionError,
  );
  assert.equal(error.name, 'ProvisionError');
  return { state: error.state, afterUnclear: error.afterUnclear };
}

describe('CsiProvisioner, revoking a plan', () => {
  test('sends CreateVolume as it was, and deletes what it gives with the same secrets', async () => {
    await using rig = await startFullRig();
    const plan = await makePlan(rig);
    await rig.provisioner.fulfil(plan, { ...new Announced().context(), mayExist: false });
    const before = rig.api.log.length;
    rig.api.remove(sourcePath);
    rig.claims.delete('ns1/src');
    const announced = new Announced();
    await rig.provisioner.revoke(storedPlan(plan), announced.context());
    const [made, found] = rig.driver.callsOf('CreateVolume');
    assert.equal(JSON.stringify(found?.request), JSON.stringify(made?.request));
    assert.deepEqual(deletes(rig), [{ volume_id: 'vol-1', secrets: { user: 'hush' } }]);
    assert.deepEqual(announced.handles, ['vol-1']);
    assert.deepEqual(rig.api.log.slice(before), [`GET ${secretPath}`], 'neither looks a source up nor protects it');
  });

  for (const what of ['its attempt', 'an earlier call to revoke it'] as const) {
    test(`sends the Secret that was read for ${what} where it is gone, until the claim is settled`, async () => {
      await using rig = await startFullRig();
      const plan = await makePlan(rig);
      if (what === 'its attempt') {
        await rig.provisioner.fulfil(plan, { ...new Announced().context(), mayExist: false });
      } else await rig.provisioner.revoke(storedPlan(plan), new Announced().context('vol-0'));
      rig.api.remove(secretPath);
      await rig.provisioner.revoke(storedPlan(plan), new Announced().context('vol-1'));
      assert.deepEqual(deletes(rig).at(-1), { volume_id: 'vol-1', secrets: { user: 'hush' } });
      rig.provisioner.forget((plan as { claim: { uid: string } }).claim.uid);
      const failure = await failureOf(rig.provisioner.revoke(storedPlan(plan), new Announced().context('vol-1')));
      assert.equal(failure.afterUnclear, 'undecidable');
    });
  }

  test('only deletes where the volume is known', async () => {
    await using rig = await Rig.start();
    const announced = new Announced();
    await rig.provisioner.revoke(storedPlan(await planOf(rig)), announced.context('vol-7'));
    assert.deepEqual(rig.driver.callsOf('CreateVolume'), []);
    assert.deepEqual(deletes(rig), [{ volume_id: 'vol-7' }]);
    assert.deepEqual(announced.handles, ['vol-7']);
  });

  test('deletes nothing when the controller refuses, whose error passes as it is', async () => {
    await using rig = await Rig.start();
    const refusal = new Error('the claim is back');
    const beforeDelete = () => Promise.reject(refusal);
    const revoked = rig.provisioner.revoke(await planOf(rig), { handle: undefined, beforeDelete, signal });
    await assert.rejects(revoked, (error) => error === refusal);
    assert.deepEqual(deletes(rig), []);
  });

  test('deletes nothing after a pause during the look at the volumes, if another look refuses it', async () => {
    await using rig = await Rig.start();
    const permit = new ScriptedPermit();
    const refusal = new Error('somebody has kept it');
    let looks = 0;
    const beforeDelete = (): Promise<void> => {
      if (++looks > 1) return Promise.reject(refusal);
      permit.lose(() => undefined);
      return Promise.resolve();
    };
    const revoked = rig.provisioner.revoke(await planOf(rig), { handle: 'vol-7', beforeDelete, signal, permit });
    await assert.rejects(revoked, (error) => error === refusal);
    assert.deepEqual(deletes(rig), []);
  });

  test('a volume that does not fit is deleted as well', async () => {
    await using rig = await Rig.start();
    rig.driver.next('CreateVolume', { volume: { volume_id: 'small', capacity_bytes: '1' } });
    await rig.provisioner.revoke(await planOf(rig), new Announced().context());
    assert.deepEqual(deletes(rig), [{ volume_id: 'small' }]);
  });

  for (const [what, answer] of [
    ['without an id', { volume: { volume_id: '' } }],
    ['without a volume', {}],
  ] as const) {
    test(`an answer ${what} is undecidable: nothing is deleted by an empty id`, async () => {
      await using rig = await Rig.start();
      rig.driver.next('CreateVolume', answer);
      const announced = new Announced();
      const plan = await planOf(rig);
      assert.deepEqual(await failureOf(rig.provisioner.revoke(plan, announced.context())), {
        state: 'in-background',
        afterUnclear: 'undecidable',
      });
      assert.deepEqual([deletes(rig), announced.handles], [[], []]);
    });
  }

  test('a request that never left the process changes nothing', async () => {
    await using rig = await Rig.start();
    const aborted = { ...new Announced().context(), signal: AbortSignal.abort() };
    assert.deepEqual(await failureOf(rig.provisioner.revoke(await planOf(rig), aborted)), {
      state: 'no-change',
      afterUnclear: 'nothing',
    });
  });
});

describe('CsiProvisioner, what a failed CreateVolume of a revoke reveals', () => {
  const codes = Object.values(status).filter((code) => typeof code === 'number' && code !== status.OK) as status[];
  const unclear = ['Canceled', 'DeadlineExceeded', 'Aborted', 'Unavailable'];
  const evidence = new Map([
    ['AlreadyExists', 'undecidable'],
    ['ResourceExhausted', 'absent-if-repeated'],
  ]);
  const ofSource = new Map([...evidence, ['NotFound', 'undecidable'], ['InvalidArgument', 'undecidable']]);

  test('of a volume without source, and of a clone, in every code', async () => {
    await using plain = await Rig.start();
    await using clones = await startFullRig();
    for (const [rig, plan, known] of [
      [plain, await planOf(plain), evidence],
      [clones, await makePlan(clones), ofSource],
    ] as const) {
      for (const code of codes) {
        const name = codeName(code);
        rig.driver.next('CreateVolume', new DriverFailure(code, 'x'));
        const expected = {
          state: unclear.includes(name) ? 'in-background' : 'finished',
          afterUnclear: known.get(name) ?? 'nothing',
        };
        const context = new Announced().context();
        assert.deepEqual(await failureOf(rig.provisioner.revoke(plan, context)), expected, name);
        if (rig !== plain) continue;
        rig.driver.next('CreateVolume', new DriverFailure(code, 'x'));
        const fulfilled = rig.provisioner.fulfil(plan, { ...context, mayExist: true }).then(() => undefined);
        assert.deepEqual(await failureOf(fulfilled), expected, `${name}, fulfilled`);
      }
      assert.deepEqual(deletes(rig), []);
    }
  });

  test('a full backend reveals as much where the node may be changed', async () => {
    await using rig = await startFullRig();
    rig.driver.next('CreateVolume', new DriverFailure(status.RESOURCE_EXHAUSTED, 'full'));
    const context = { ...new Announced().context(), mayExist: true };
    const fulfilled = rig.provisioner.fulfil(await makePlan(rig), context);
    assert.deepEqual(await failureOf(fulfilled.then(() => undefined)), {
      state: 'reschedule',
      afterUnclear: 'absent-if-repeated',
    });
  });
});

describe('CsiProvisioner, a revoke that cannot delete', () => {
  for (const code of [status.INTERNAL, status.NOT_FOUND, status.UNAVAILABLE, status.FAILED_PRECONDITION]) {
    test(`after ${codeName(code)} of DeleteVolume the volume may be there still`, async () => {
      await using rig = await Rig.start();
      rig.driver.next('DeleteVolume', new DriverFailure(code, 'x'));
      const plan = await planOf(rig);
      const error = `deleting volume vol-1 failed: rpc error: code = ${codeName(code)} desc = x`;
      await assert.rejects(rig.provisioner.revoke(plan, new Announced().context()), {
        message: error,
        state: 'in-background',
        afterUnclear: 'nothing',
      });
      await rig.provisioner.revoke(plan, new Announced().context());
    });
  }

  test('a secret that is gone makes it undecidable, with and without the id of the volume', async () => {
    await using rig = await startFullRig();
    const plan = await makePlan(rig);
    rig.api.remove(secretPath);
    for (const handle of [undefined, 'vol-1']) {
      await assert.rejects(rig.provisioner.revoke(plan, new Announced().context(handle)), {
        message: 'error getting secret s in namespace ns: secrets "s" not found',
        state: 'no-change',
        afterUnclear: 'undecidable',
      });
    }
    assert.deepEqual(rig.driver.calls, []);
  });

  test('a secret that cannot be read for now leaves everything open', async () => {
    await using rig = await startFullRig();
    const plan = await makePlan(rig);
    for (const [code, reason] of [
      [403, 'Forbidden'],
      [500, 'InternalError'],
      [404, 'NotFound'], // names no secret: an address that serves no secrets
    ] as const) {
      rig.api.fail({ method: 'GET', path: secretPath, code, reason, message: 'x' });
      assert.deepEqual(await failureOf(rig.provisioner.revoke(plan, new Announced().context())), {
        state: 'no-change',
        afterUnclear: 'nothing',
      });
    }
  });

  test('a plan that was edited is undecidable', async () => {
    await using rig = await Rig.start();
    const plan = { ...(await planOf(rig)), driverName: 'other.example.com' };
    await assert.rejects(rig.provisioner.revoke(plan, new Announced().context('vol-1')), {
      state: 'no-change',
      afterUnclear: 'undecidable',
      message: /field driverName should be the driver "d.example.com", but is "other.example.com"/,
    });
    assert.deepEqual(rig.driver.calls, []);
  });
});
