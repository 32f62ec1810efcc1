/** What the health paths answer while watches are quiet and while the API server is away. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createRegistry } from '../../../src/base/metrics.ts';
import { checkCaches, Health } from '../../../src/run/health.ts';
import { startEndpoint } from '../../../src/run/endpoint.ts';
import { recordedLogger } from '../../support/fakes/recorded-logger.ts';
import { bookmark, configMap, listOf, lists, Rig, watches } from '../kube/rig.ts';
import { freePort } from '../../support/free-ports.ts';

const minuteMs = 60_000;

/** An instance with one cache, whose watches bring nothing and end when they were asked to. */
async function start() {
  await using opened = new AsyncDisposableStack();
  const rig = opened.use(await Rig.start());
  rig.random = 0.999; // watches of ten minutes
  rig.server.next(lists, (reply) => reply.json(200, listOf([configMap('a', 1)], 10)));
  rig.server.otherwise((reply, { query }) => {
    reply.open();
    rig.clock.after(Number(query.get('timeoutSeconds')) * 1000, () => reply.end());
  });
  const ready = new Health();
  const informer = rig.informer();
  opened.use(checkCaches({ ready, clock: rig.clock }, { claims: informer }));
  const port = await freePort();
  const endpoint = opened.use(
    await startEndpoint({
      http: { address: `127.0.0.1:${port}`, metricsPath: '/metrics', health: true, profiles: false },
      logger: recordedLogger(rig.log),
      registry: createRegistry(),
      ready,
    }),
  );
  await rig.clock.until(() => informer.hasSynced);
  const stack = opened.move();
  const get = async (path: string): Promise<string> => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`);
    return `${answer.status} ${(await answer.text()).trim()}`;
  };
  return { rig, endpoint, get, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

describe('health', () => {
  test('two hours without an event or a bookmark are no reason to be unready', async () => {
    await using started = await start();
    const { rig, get } = started;
    for (let minute = 0; minute < 120; minute++) {
      await rig.clock.advance(minuteMs);
      assert.equal(await get('/readyz'), '200 ok', `after ${minute} minutes`);
    }
    assert.equal(rig.server.matching(lists).length, 1);
    assert.ok(rig.server.matching(watches).length >= 12);
  });

  test('an API server that is away for half an hour makes an instance unready, and restarts it never', async () => {
    await using started = await start();
    const { rig, get } = started;
    await rig.clock.advance(13 * minuteMs); // the silence of two watches is not believed, the third has ended
    await rig.server.down();
    await rig.clock.advance(14 * minuteMs);
    assert.equal(await get('/readyz'), '200 ok');
    await rig.clock.advance(16 * minuteMs);
    assert.match(await get('/readyz'), /^500 .*nothing received about claims for \d{4} seconds: .*ECONNREFUSED/);
    assert.equal(await get('/healthz'), '200 ok');
    await rig.server.up();
    await rig.clock.advance(minuteMs);
    assert.equal(await get('/readyz'), '200 ok');
  });

  test('where bookmarks come, two and a half silent minutes make an instance unready', async () => {
    await using started = await start();
    const { rig, get } = started;
    rig.server.otherwise((reply) => {
      reply.open();
      const next = (): void => {
        if (!reply.isClosed) reply.event('BOOKMARK', bookmark(20));
        rig.clock.after(minuteMs, next);
      };
      rig.clock.after(minuteMs, next);
    });
    await rig.clock.advance(20 * minuteMs);
    assert.equal(await get('/readyz'), '200 ok');
    rig.server.otherwise(() => undefined);
    await rig.server.down();
    await rig.server.up();
    await rig.clock.advance(2 * minuteMs);
    assert.equal(await get('/readyz'), '200 ok');
    await rig.clock.advance(minuteMs);
    assert.match(await get('/readyz'), /^500 .*nothing received about claims for 1\d\d seconds/);
  });

  test('a leader that no longer renews its lease fails on both liveness paths', async () => {
    await using started = await start();
    const { endpoint, get } = started;
    assert.equal(await get('/healthz'), '200 ok');
    endpoint.serveHealth(() => 'failed election to renew leadership on lease lock');
    for (const path of ['/healthz', '/healthz/leader-election'])
      assert.equal(await get(path), '500 internal server error: failed election to renew leadership on lease lock');
  });
});
