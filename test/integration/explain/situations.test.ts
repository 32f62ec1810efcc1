/** The rows of docs/stuck-claims.md on recorded sets of objects. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { checkRow, objectOf } from '../../support/claim-rows/check-row.ts';
import { RowWorld } from '../../support/claim-rows/world.ts';
import { ObjectApi } from '../../support/claim-rows/object-api.ts';
import { rows } from '../../support/claim-rows/rows.ts';
import { driverName } from '../../support/api-scene.ts';
import { ExplainRig } from './rig.ts';

describe('why of a recorded set of objects', () => {
  for (const row of rows) {
    const { recorded } = row;
    if (recorded === undefined) continue;
    test(row.title, async () => {
      await using rig = await ExplainRig.start();
      using api = new ObjectApi({ url: rig.url });
      const world = new RowWorld({
        ...{ api, level: 'recorded', namespace: 'ns1', driver: driverName },
        fault: () => Promise.resolve(),
        startProvisioner: (name) => {
          rig.addProvisioner({ name });
          return Promise.resolve();
        },
        eventually: async (check) => await check(),
      });
      rig.addProvisioner();
      await row.arrange(world);
      await recorded(world);
      const [claim = '', volume] = objectOf(row, world).split('pv/');
      const explanation = await rig.explain(volume === undefined ? { claim } : { volume }, {
        laterMs: row.laterMs ?? 0,
      });
      checkRow(explanation, row);
      // a bound claim costs little, however it fares
      if (explanation.cause === 'bound') assert.ok(rig.requests.length <= 6, rig.requests.join(', '));
    });
  }
});
