import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { silentLogger } from '../../../../src/base/logger.ts';
import { ClaimBudget, isPartialClaim } from '../../../../src/provision/cache/cached-claim.ts';
import { provisionInformers } from '../../../../src/provision/cache/informers.ts';
import { eventually } from '../../../support/eventually.ts';
import { annotation, Rig } from '../rig.ts';

describe('a cache that claims of others have filled', () => {
  test('has all of them, those beyond the budget in part, and the budget is free again once they are gone', async () => {
    const budget = new ClaimBudget({ maxChars: 50_000 });
    await using rig = await Rig.prepare();
    const options = { transport: rig.transport, isKnownProvisioner: () => true, logger: silentLogger, freeze: true };
    const { claims } = provisionInformers(options, budget);
    const names = Array.from({ length: 200 }, (_, index) => `other-${index}`);
    const sketch = { annotations: { [annotation.provisioner]: 'other', notes: 'x'.repeat(1000) }, finalizers: [] };
    const add = (from: number, to: number): void => names.slice(from, to).forEach((name) => rig.addClaim(name, sketch));
    const ending = new AbortController();
    add(0, 100);
    const running = claims.run(ending.signal);
    try {
      await claims.synced;
      add(100, 200);
      await eventually(() => assert.equal(claims.size, 200));
      const whole = [...claims.list()].filter((claim) => !isPartialClaim(claim)).length;
      assert.ok(whole > 10 && whole < 40, `${whole} are whole`);
      assert.ok(budget.storedChars > 40_000 && budget.storedChars <= 50_000);
      assert.deepEqual(budget.top(), [['ns', budget.storedChars]]);
      for (const name of names) rig.deleteClaim(name);
      await eventually(() => assert.equal(claims.size, 0));
      assert.deepEqual([budget.storedChars, budget.top()], [0, []]);
    } finally {
      ending.abort(new Error('the end of the test'));
      await running;
    }
  });

  test('has a claim that it keeps in part provisioned as the API server has it', async () => {
    await using rig = await Rig.prepare();
    const options = {
      transport: rig.transport,
      isKnownProvisioner: (name: string) => name === 'drv',
      logger: silentLogger,
    };
    const informers = provisionInformers(options, new ClaimBudget({ maxChars: 0 }));
    await using served = await Rig.prepare({ controller: { transport: rig.transport, informers } });
    rig.addClass();
    rig.addClaim('a', { annotations: { [annotation.provisioner]: 'drv', notes: 'kept' } });
    const ending = new AbortController();
    const caches = [informers.claims, informers.volumes, informers.classes].map(async (each) =>
      each.run(ending.signal),
    );
    try {
      served.startOnly();
      await eventually(() =>
        assert.equal(served.provisioner.provisions[0]?.claim.metadata.annotations?.['notes'], 'kept'),
      );
    } finally {
      ending.abort(new Error('the end of the test'));
      await Promise.all(caches);
    }
  });
});
