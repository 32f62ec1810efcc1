/** The rows of docs/stuck-claims.md on one control plane, with no more rights than docs/why.md asks for: `why`, the cure, and the end. */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { Explanation } from '../../src/explain/explanation.ts';
import { checkRow, objectOf } from '../support/claim-rows/check-row.ts';
import { ClusterOfRows } from '../support/claim-rows/cluster-of-rows.ts';
import type { HealthyRow, Row, StuckRow, World } from '../support/claim-rows/row.ts';
import { rows } from '../support/claim-rows/rows.ts';

const isReal = process.env['E2E_TARGET'] === 'kubernetes';
/** What `why` names in the end. */
const endings = { bound: 'bound', gone: 'not-found' } as const;
/** Between two looks at what is healthy, in milliseconds. */
const pauseMs = 200;

describe('why on a control plane', { concurrency: 12, skip: !isReal && 'the sandbox has the recorded sets' }, () => {
  let cluster: ClusterOfRows;
  before(async () => {
    cluster = await ClusterOfRows.start();
  });
  afterEach((context) => cluster.report(context));
  after(() => cluster[Symbol.asyncDispose]());

  for (const row of rows) {
    if (typeof row.cluster === 'object') continue;
    test(row.title, async (t) => {
      if (row.needs !== undefined && !(await cluster.hasAttributesClasses())) {
        t.skip('attributes classes are not served');
        return;
      }
      const world = await cluster.world();
      await row.arrange(world);
      await ('healthy' in row ? checkHealthy(world, row) : checkStuck(world, row));
    });
  }

  const look = (world: World, row: Row): Promise<Explanation> =>
    cluster.explain(world, objectOf(row, world), row.laterMs);

  async function goOn(world: World, { cluster }: Row): Promise<void> {
    if (typeof cluster === 'function') await cluster(world);
  }

  async function ended(world: World, { ends }: Row, lookNow: () => Promise<Explanation>): Promise<void> {
    if (ends === undefined) return;
    await world.eventually(async () => {
      const explanation = await lookNow();
      assert.equal(explanation.cause, endings[ends], JSON.stringify(explanation));
    });
  }

  async function checkStuck(world: World, row: StuckRow): Promise<void> {
    await goOn(world, row);
    await world.eventually(async () => checkRow(await look(world, row), row));
    await row.cure?.(world);
    await ended(world, row, () => look(world, row));
  }

  async function checkHealthy(world: World, row: HealthyRow): Promise<void> {
    const looks: Explanation[] = [];
    const lookNow = async (): Promise<Explanation> => {
      const explanation = await look(world, row);
      looks.push(explanation);
      return explanation;
    };
    const over = new AbortController();
    const watching = (async () => {
      while (!over.signal.aborted) {
        await lookNow();
        await delay(pauseMs);
      }
    })();
    try {
      await goOn(world, row);
      await lookNow();
      await row.cure?.(world);
      await ended(world, row, lookNow);
    } finally {
      over.abort();
      await watching;
    }
    for (const explanation of looks) checkRow(explanation, row);
  }
});
