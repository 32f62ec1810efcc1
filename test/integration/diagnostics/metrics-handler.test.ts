import assert from 'node:assert/strict';
import { request } from 'node:http';
import { describe, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { silentLogger } from '../../../src/base/logger.ts';
import { createRegistry, gauge } from '../../../src/base/metrics.ts';
import { startDiagnosticsServer, type DiagnosticsServer } from '../../../src/diagnostics/http-server.ts';
import { metricsHandler } from '../../../src/diagnostics/metrics-handler.ts';

interface Answer {
  status: number;
  headers: Record<string, unknown>;
  body: Buffer;
}

/** A scrape whose headers are exactly the given ones. */
async function scrape(server: DiagnosticsServer, headers: Record<string, string> = {}, query = ''): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const sent = request({ host: '127.0.0.1', port: server.port, path: `/metrics${query}`, headers, agent: false });
  sent.on('error', reject).on('response', (response) => {
    const parts: Buffer[] = [];
    response
      .on('data', (part: Buffer) => parts.push(part))
      .on('end', () => {
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(parts) });
      });
  });
  sent.end();
  return await promise;
}

async function serving(collect: () => number = () => 7): Promise<DiagnosticsServer> {
  const registry = createRegistry();
  gauge({ registry, name: 'answer', help: 'Answer.', collect: (family) => family.set(collect()) });
  const server = await startDiagnosticsServer({ address: '127.0.0.1:0', logger: silentLogger });
  server.handle('/metrics', metricsHandler(registry));
  return server;
}

describe('metricsHandler', () => {
  test('serves text with the content type of the original, whatever is accepted', async () => {
    await using server = await serving();
    for (const accept of ['*/*', 'application/openmetrics-text; version=1.0.0']) {
      const { status, headers, body } = await scrape(server, { accept });
      assert.equal(status, 200);
      assert.equal(headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8; escaping=underscores');
      assert.equal(headers['content-encoding'], undefined);
      assert.equal(headers['content-length'], String(body.length));
      assert.match(body.toString(), /^answer 7$/m);
    }
  });

  for (const coding of ['gzip', 'deflate, GZIP', 'gzip;q=0.5', 'br;q=1.0, gzip; q=0.8, *;q=0.1']) {
    test(`compresses for "${coding}"`, async () => {
      await using server = await serving();
      const { headers, body } = await scrape(server, { 'accept-encoding': coding });
      assert.equal(headers['content-encoding'], 'gzip');
      assert.match(gunzipSync(body).toString(), /^answer 7$/m);
    });
  }

  for (const coding of ['', 'identity', 'gzip;q=0', 'gzip;q=0.0', 'xgzip']) {
    test(`does not compress for "${coding}"`, async () => {
      await using server = await serving();
      assert.equal((await scrape(server, { 'accept-encoding': coding })).headers['content-encoding'], undefined);
    });
  }

  const inFlight = 'promhttp_metric_handler_requests_in_flight';
  for (const { query, names } of [
    { query: '?', names: ['answer', inFlight, 'promhttp_metric_handler_requests_total'] },
    { query: '?name=answer', names: ['answer', inFlight, 'promhttp_metric_handler_requests_total'] },
    { query: '?name[]=answer', names: ['answer'] },
    { query: '?name%5B%5D=answer&x=y&name[]=promhttp_metric_handler_requests_in_flight', names: ['answer', inFlight] },
    { query: '?name[]=answer&name[]=answer&name[]=no_such', names: ['answer'] },
    { query: '?name[]=no_such', names: [] },
    { query: '?name[]=', names: [] },
    { query: '?name[]=answ', names: [] },
    { query: '?name[]=%ff%zz', names: [] },
    { query: '?name[]=constructor&name[]=__proto__', names: [] },
  ]) {
    test(`with the query "${query}" has the families ${names.join(', ') || 'of none'}`, async () => {
      await using server = await serving();
      const { status, headers, body } = await scrape(server, {}, query);
      assert.equal(status, 200);
      assert.equal(headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8; escaping=underscores');
      const found = [...body.toString().matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name);
      assert.deepEqual(found, names);
      const zipped = await scrape(server, { 'accept-encoding': 'gzip' }, query);
      assert.equal(zipped.headers['content-encoding'], 'gzip');
      const inside = [
        ...gunzipSync(zipped.body)
          .toString()
          .matchAll(/^# TYPE (\S+)/gm),
      ].map(([, name]) => name);
      assert.deepEqual(inside, names);
    });
  }

  test('serves a whole and a part of one rendering at the same time', async () => {
    await using server = await serving();
    const all = [scrape(server), scrape(server, {}, '?name[]=answer'), scrape(server)];
    const [whole, part] = await Promise.all(all);
    assert.match(whole?.body.toString() ?? '', /promhttp_/);
    assert.match(part?.body.toString() ?? '', /^# HELP answer Answer\.\n# TYPE answer gauge\nanswer 7\n$/);
  });

  test('counts scrapes by code after the answer, with all codes there from the start', async () => {
    await using server = await serving();
    const first = (await scrape(server)).body.toString();
    assert.match(first, /^promhttp_metric_handler_requests_in_flight 1$/m);
    for (const code of [200, 500, 503]) {
      assert.match(first, new RegExp(`^promhttp_metric_handler_requests_total\\{code="${code}"\\} 0$`, 'm'));
    }
    assert.match((await scrape(server)).body.toString(), /_requests_total\{code="200"\} 1$/m);
  });

  test('a metric that cannot be collected gives 500, and counts as such', async () => {
    let broken = true;
    await using server = await serving(() => {
      if (broken) throw new Error('broken');
      return 1;
    });
    assert.equal((await scrape(server)).status, 500);
    broken = false;
    const { status, body } = await scrape(server);
    assert.equal(status, 200);
    assert.match(body.toString(), /_requests_total\{code="500"\} 1$/m);
  });
});
