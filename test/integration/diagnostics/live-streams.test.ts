import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, test } from 'node:test';
import { silentLogger } from '../../../src/base/logger.ts';
import { LiveStreams } from '../../../src/diagnostics/status-page/live-streams.ts';
import { digested } from '../../../src/diagnostics/status-page/status-view.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';
import { statusReport } from '../../support/fakes/status-reports.ts';
import { LiveReader } from '../../support/live-reader.ts';

describe('live streams', () => {
  test('leave no timer behind where the last reader leaves during a report', async () => {
    const clock = new ManualClock();
    const proceed = Promise.withResolvers<undefined>();
    const report = async () => {
      await proceed.promise;
      return await digested(statusReport([]));
    };
    using streams = new LiveStreams({ report, explain: () => undefined, clock, logger: silentLogger });
    const left = Promise.withResolvers<undefined>();
    await using server = createServer((request, response) => {
      streams.open(request, response);
      response.once('close', () => left.resolve(undefined));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const reader = await LiveReader.open(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    reader.leave();
    await left.promise;
    proceed.resolve(undefined);
    await clock.settle();
    assert.equal(clock.pending, 0);
  });
});
