/** The status page over real HTTP: what it shows, what it never shows, and who may read it. */
import assert from 'node:assert/strict';
import { request } from 'node:http';
import { describe, test } from 'node:test';
import { type Clock, systemClock } from '../../../src/base/clock.ts';
import { type Logger, silentLogger } from '../../../src/base/logger.ts';
import { type DiagnosticsServer, startDiagnosticsServer } from '../../../src/diagnostics/http-server.ts';
import { maxStreams } from '../../../src/diagnostics/status-page/live-streams.ts';
import { StatusPage } from '../../../src/diagnostics/status-page/status-page.ts';
import type { StatusReport } from '../../../src/diagnostics/status-page/status-report.ts';
import { eventually } from '../../support/eventually.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';
import { recordedLogger, type LogLine } from '../../support/fakes/recorded-logger.ts';
import { LiveReader } from '../../support/live-reader.ts';
import {
  reportedAtMs,
  reportedClaim,
  reportedVolume,
  statusReport,
  withReleased,
} from '../../support/fakes/status-reports.ts';

interface ServedPage extends AsyncDisposable {
  readonly url: string;
  readonly page: StatusPage;
  readonly server: DiagnosticsServer;
}

async function served(
  report: () => StatusReport | Promise<StatusReport>,
  { logger = silentLogger, clock = systemClock }: { logger?: Logger; clock?: Clock } = {},
): Promise<ServedPage> {
  const server = await startDiagnosticsServer({ address: '127.0.0.1:0', logger: silentLogger });
  const page = new StatusPage({ collect: async () => await report(), logger, clock });
  page.serveOn(server);
  return {
    url: `http://127.0.0.1:${server.port}/status`,
    page,
    server,
    [Symbol.asyncDispose]: async () => {
      await page[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

const many = (count: number) => Array.from({ length: count }, (_, number) => reportedClaim(number));

async function html(report: StatusReport, query = ''): Promise<string> {
  await using page = await served(() => report);
  const answer = await fetch(page.url + query);
  assert.equal(answer.status, 200);
  return await answer.text();
}

/** Status and headers as they are sent; `fetch` would not let some of the headers of the request pass. */
async function statusOf(url: string, options: { method?: string; headers?: Record<string, string> }): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const sent = request(url, { ...options, agent: false }, (answer) => {
    resolve(answer.statusCode ?? 0);
    answer.destroy();
  });
  sent.on('error', reject).end();
  return await promise;
}

describe('the status page', () => {
  test('says what the process is, what waits and why, without any script', async () => {
    const page = await html(statusReport(many(20)));
    assert.match(page, /<title>! 7 failing, 3 stuck – block\.csi\.example\.com – csi-provisioner<\/title>/);
    assert.match(page, /7 of 20 waiting claims failing, 3 records of the journal stuck/);
    assert.match(page, /has been leading for 27 h\.\nDriver block\.csi\.example\.com 2\.4\.1 is connected/);
    assert.match(page, /<caption>20 claims, those that fail first, then the oldest<\/caption>/);
    assert.match(
      page,
      /team-web\/old-data<p class="e">unproved: the class retains its volumes, and one may have been saved/,
    );
    assert.match(page, /<th scope="row">CreateVolume<td>claim team-web\/data-postgres-3<td class="n">8\.2 s/);
    assert.match(page, /<code>CREATE_DELETE_VOLUME<\/code>/);
    assert.match(page, /4×<\/b> <a [^>]*>ResourceExhausted: pool &quot;…&quot; has … GiB left/);
  });

  test('says that all is well when nothing waits', async () => {
    const page = await html(statusReport([]));
    assert.match(page, /✓<\/span> Healthy/);
    assert.match(page, /No claim waits for a volume\./);
  });

  test('of a standby says so, and sends nobody to empty lists', async () => {
    const role = { name: 'standby', sinceMs: reportedAtMs - 5000 } as const;
    const page = await html(statusReport([], { role, work: undefined }));
    assert.match(page, /Standby: this instance waits for the lease of the leader/);
    assert.match(page, /This instance is a standby: the leader has the list/);
  });

  test('says first that the driver is away, and why the process is not ready', async () => {
    const report = statusReport(many(3));
    const away = await html({ ...report, driver: { ...report.driver, connected: false } });
    assert.match(away, /!<\/span> The driver does not respond/);
    const unready = await html({ ...report, unhealthyReason: 'persistentvolumeclaims: no answer for 20 minutes' });
    assert.match(unready, /Not ready: persistentvolumeclaims: no answer for 20 minutes/);
    const unfilled = await html(statusReport([], { unhealthyReason: 'persistentvolumeclaims: not filled' }));
    assert.match(unfilled, /No waiting claim is known yet/);
    assert.doesNotMatch(unfilled, /No claim waits|Healthy/, 'nobody knows');
  });

  for (const count of [0, 20, 10_000]) {
    test(`takes less than 64 kB with ${count} waiting claims`, async () => {
      const page = await html(statusReport(many(count)));
      assert.ok(Buffer.byteLength(page) < 64_000, `${Buffer.byteLength(page)} bytes`);
    });
  }

  test('stays small with the longest names and errors, and no claim is passed over between its pages', async () => {
    const claims = Array.from({ length: 400 }, (_, number) =>
      reportedClaim(number, {
        namespace: `${number}-${'n'.repeat(58)}`,
        name: `${number}-${'p'.repeat(245)}`,
        lastError: { message: '"<&>'.repeat(250), kind: 'failed', atMs: reportedAtMs },
      }),
    );
    const volumes = claims.slice(0, 50).map(({ name, lastError }, number) => {
      const error = lastError && { ...lastError, sinceMs: 0 };
      return reportedVolume(number, { name, claim: `${'n'.repeat(63)}/${name}`, lastError: error });
    });
    const report = withReleased(statusReport(claims), { total: 400, failing: 400, first: volumes });
    await using page = await served(() => report);
    const seen: string[] = [];
    for (let next: string | undefined = '?'; next !== undefined;) {
      const text = await (await fetch(page.url + next)).text();
      assert.ok(Buffer.byteLength(text) < 64_000, `${Buffer.byteLength(text)} bytes`);
      seen.push(...[...text.matchAll(/<th scope="row"><a href="[^"]*">([^<]*)</g)].map(([, name]) => name ?? ''));
      next = /<a href="([^"]*)" rel="next">/.exec(text)?.[1];
    }
    assert.deepEqual(seen.toSorted(), claims.map(({ namespace, name }) => `${namespace}/${name}`).toSorted());
  });

  test('shows the 200 most urgent of many claims and leads to the others by links', async () => {
    const waiting = Array.from({ length: 450 }, (_, number) =>
      reportedClaim(number, { step: 'queued', lastError: undefined }),
    );
    const report = statusReport(waiting);
    await using page = await served(() => report);
    const text = async (query: string): Promise<string> => (await fetch(page.url + query)).text();
    const first = await text('');
    assert.match(first, /1 to 200 of 450 claims, those that fail first, then the oldest/);
    assert.match(first, /href="\?from=200" rel="next"/);
    const last = await text('?from=400');
    assert.match(last, /401 to 450 of 450 claims/);
    assert.match(last, /href="\?from=200" rel="prev"/);
    assert.doesNotMatch(last, /rel="next"/);
    assert.match(await text('?from=999999'), /401 to 450 of 450/, 'beyond the end the last page is shown');
  });

  test('is searched by name, class, UID and error, and filtered by step, also both', async () => {
    const report = statusReport(many(40));
    await using page = await served(() => report);
    const found = async (query: string): Promise<number> => {
      const text = await (await fetch(page.url + query)).text();
      return [...text.matchAll(/<th scope="row"><a href="\?[^"]*claim=/g)].length;
    };
    assert.equal(await found('?q=TEAM-web'), 10);
    assert.equal(await found('?q=data-postgres-39'), 1);
    assert.equal(await found('?q=archive'), 13);
    assert.equal(await found('?q=000000000007'), 1);
    assert.equal(await found('?q=nvme-a'), 7);
    assert.equal(await found('?step=syncing'), 7);
    assert.equal(await found('?step=retrying&q=deadline'), 6);
    assert.equal(await found('?q=nothing+has+this'), 0);
    assert.equal(await found('?step=nonsense&from=-3&claim='), 40, 'what makes no sense is left out');
  });

  test('each reason leads to the claims that fail for it', async () => {
    const report = statusReport(many(40));
    await using page = await served(() => report);
    const text = await (await fetch(page.url)).text();
    const reasons = [...text.matchAll(/<li><b>(\d+)×<\/b> <a href="([^"]*)">/g)];
    assert.equal(reasons.length, 2);
    for (const [, count, href = ''] of reasons) {
      const answer = await (await fetch(page.url + href.replaceAll('&amp;', '&'))).text();
      assert.match(answer, new RegExp(`>${count ?? ''} claims, those that fail first, then the oldest<`));
    }
  });

  test('of one claim shows the whole error, and of one that does not wait that it does not', async () => {
    const report = statusReport(many(20));
    await using page = await served(() => report);
    const one = await (await fetch(`${page.url}?claim=team-payments/data-postgres-0`)).text();
    assert.match(one, /<dt>Last error<dd>failed to provision volume with StorageClass &quot;fast-ssd&quot;: rpc error/);
    assert.match(one, /<dt>Last error was<dd>42 s ago/);
    const none = await (await fetch(`${page.url}?claim=team-payments/other`)).text();
    assert.match(none, /This claim does not wait here/);
  });

  test('opens a claim below its row, with an address of its own, and closes it to the same list', async () => {
    const report = statusReport(many(40));
    await using page = await served(() => report);
    for (const query of ['', 'q=data-postgres-0', 'step=retrying', 'from=0']) {
      const text = await (await fetch(`${page.url}?${query}&claim=team-payments/data-postgres-0`)).text();
      const list = query === 'from=0' ? '' : query;
      assert.match(
        text,
        /data-postgres-0<\/a><td>[^\n]*\n<tr id="claim" class="detail"><td colspan="4"><h3>team-payments\/data-postgres-0</,
      );
      assert.match(text, new RegExp(`<a href="\\?${list}">Close</a>`));
      if (list === '') assert.match(text, /<a href="[^"]*claim=team-\w+\/data-postgres-[1-9]#claim">/);
      assert.equal([...text.matchAll(/ aria-expanded="true"/g)].length, 1);
    }
    const elsewhere = await (await fetch(`${page.url}?step=queued&claim=team-payments/data-postgres-0`)).text();
    assert.match(
      elsewhere,
      /<div id="claim" class="detail"><h3>team-payments\/data-postgres-0</,
      'above a list without it',
    );
  });

  test('shows claims that fail before those that only wait for a Pod, each oldest first', async () => {
    const steps = ['waiting-for-consumer', 'queued', 'retrying', 'waiting-for-consumer', 'class-missing'] as const;
    const text = await html(statusReport(steps.map((step, number) => reportedClaim(number, { step }))));
    const names = [...text.matchAll(/<th scope="row"><a href="[^"]*claim=[^"]*">[^<]*-(\d)</g)].map(([, name]) => name);
    assert.deepEqual(names, ['2', '4', '1', '0', '3']);
  });

  test('what others wrote cannot become markup, nor turn the direction of writing', async () => {
    const evil = `</td><script>alert(1)</script>"'&\u202egnp.exe\u0007`;
    const claims = [reportedClaim(0, { namespace: evil, name: evil, className: evil, createdAt: evil })];
    const calls = [{ method: evil, about: evil, seconds: 1 }];
    const volume = reportedVolume(0, { name: evil, claim: evil, waitText: evil, releasedAt: evil });
    const first = [{ ...volume, lastError: { message: evil, atMs: 0, sinceMs: 0 } }];
    const report = withReleased(statusReport(claims, { calls, unhealthyReason: evil }), {
      total: 1,
      failing: 1,
      first,
    });
    report.work?.claims.forEach((claim) => Object.assign(claim, { lastError: { message: evil, atMs: 0 } }));
    for (const query of ['', `?claim=${encodeURIComponent(`${evil}/${evil}`)}`, `?q=${encodeURIComponent(evil)}`]) {
      const page = await html(report, query);
      assert.doesNotMatch(page, /<script>|\u202e|\p{Cc}(?<!\n)/u);
      assert.equal(page.match(/<script/g)?.length, 1, 'only its own');
    }
  });

  test('lists released volumes whose deletion fails with error, age and next attempt, and counts them in the headline', async () => {
    const first = Array.from({ length: 50 }, (_, number) => reportedVolume(number));
    const page = await html(withReleased(statusReport([]), { total: 2000, failing: 1999, first }));
    assert.match(page, /!<\/span> The deletion of 1,999 of 2,000 released volumes failing/);
    assert.match(page, /<b>2,000<\/b> released volumes.*<b>1,999<\/b> deletions failing/);
    assert.match(page, /<caption>\d+ of 2,000 volumes, those that fail first, then the oldest; 1,999 of all fail</);
    assert.match(
      page,
      /000000000000<p class="e">of claim team-web\/old-data-0<td><b class="bad">waits for next attempt<\/b>, failed 4× for 10 min<p class="e">FailedPrecondition: volume is still attached[^<]*<td>in 90 s<td>2 h ago/,
    );
    assert.match(await html(statusReport([])), /No released volume is to be deleted/);
  });

  test('says what is waited for deliberately, and until when', async () => {
    const { work, ...rest } = statusReport([
      reportedClaim(1, { step: 'idle', wait: { reason: 'late-save', endsInMs: 41_000 } }),
    ]);
    assert.ok(work !== undefined);
    const waits = work.waits.map((wait) =>
      wait.reason === 'earlier-call'
        ? { ...wait, count: 12, firstEndsInMs: 4000, lastEndsInMs: 41_000, example: 'claim ns/<a>' }
        : wait.reason === 'other-process'
          ? { ...wait, count: 1 }
          : wait,
    );
    const shared = reportedVolume(1, {
      step: 'shared-storage',
      lastError: undefined,
      failures: 0,
      waitText: 'has the same storage as persistentvolume <b>, which is not to be deleted',
    });
    const released = { total: 1, failing: 0, first: [shared] };
    const page = await html({ ...rest, work: { ...work, waits, released } });
    assert.match(
      page,
      /for the end of an earlier call, [^<]*<td class="n">12<td>in 4 s to 41 s<td>claim ns\/&lt;a&gt;/,
    );
    assert.match(page, /record of another process<td class="n">1<td>once it is closed, or silent for 30 s/);
    assert.match(
      page,
      /not queued<\/b><p class="e">a former attempt is undone first, [^<]*late save[^<]*\(ends in 41 s\)/,
    );
    assert.match(
      page,
      /waits for another volume<\/b><p class="e">has the same storage as persistentvolume &lt;b&gt;, which/,
    );
  });

  test('says of a released volume that is worked on, or queued, that its turn is now', async () => {
    const steps = ['syncing', 'queued', 'earlier-call', 'shared-storage', 'idle'] as const;
    const first = steps.map((step, number) => reportedVolume(number, { step, nextTryInMs: undefined }));
    const page = await html(withReleased(statusReport([]), { total: steps.length, failing: 0, first }));
    const next = first.map(({ name }) => new RegExp(`${name}.*<td>(now|–)<td>`).exec(page)?.[1]);
    assert.deepEqual(next, ['now', 'now', '–', '–', '–']);
  });

  test('has a picture of the last hour that needs no script', async () => {
    const page = await html(statusReport(many(20)));
    assert.equal(page.match(/<svg role="img"/g)?.length, 4);
    assert.match(page, /<desc id="hour-made-words">522 in the last hour/);
  });

  test('has few words for a tab that nobody looks at', async () => {
    await using page = await served(() => statusReport(many(20)));
    assert.deepEqual(await (await fetch(`${page.url}/headline`)).json(), {
      time: '2026-11-20T09:30:12.000Z',
      text: '7 of 20 waiting claims failing, 3 records of the journal stuck',
      mark: '! 7 failing, 3 stuck',
    });
  });

  test('nothing but its own files may be loaded, no frame may hold it, and other sites read nothing', async () => {
    await using page = await served(() => statusReport(many(2)));
    for (const path of ['', '/style.css', '/live.js', '/icon.svg', '/live']) {
      const answer = await fetch(page.url + path, { method: 'HEAD', headers: { origin: 'https://evil.example.com' } });
      assert.equal(answer.status, 200, path);
      const policy = answer.headers.get('content-security-policy') ?? '';
      assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self';/);
      assert.match(policy, /frame-ancestors 'none'$/);
      assert.doesNotMatch(policy, /unsafe|data:|\*/);
      assert.equal(answer.headers.get('x-content-type-options'), 'nosniff');
      assert.equal(answer.headers.get('cross-origin-resource-policy'), 'same-origin');
      assert.equal(answer.headers.get('access-control-allow-origin'), null);
    }
    assert.doesNotMatch(
      await (await fetch(page.url)).text(),
      /\son\w+=|style=/,
      'nothing inline that the policy refuses',
    );
  });

  test('is read only: other methods are refused, unknown files too', async () => {
    await using page = await served(() => statusReport([]));
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
      const answer = await fetch(page.url, { method });
      assert.deepEqual([answer.status, answer.headers.get('allow')], [405, 'GET, HEAD']);
    }
    assert.equal((await fetch(`${page.url}/other`)).status, 404);
    assert.equal((await fetch(`${page.url}/`)).status, 404);
  });

  const hosts = {
    'an address of the Pod or a forwarded port': ['10.0.3.7:8080', '127.0.0.1', '[fd00::7]:8080', '[::1]'],
    'a name that no public DNS zone has': [
      ...['localhost:8080', 'LOCALHOST', 'localhost.', 'a.localhost:1', 'devbox:9999'],
      ...['csi.kube-system.svc', 'csi.kube-system.svc:80', 'csi.kube-system.svc.cluster.local.'],
    ],
  };
  for (const [kind, names] of Object.entries(hosts)) {
    test(`answers at ${kind}`, async () => {
      await using page = await served(() => statusReport([]));
      for (const host of names) assert.equal(await statusOf(page.url, { headers: { host } }), 200, host);
    });
  }

  const strangers = [
    ...['status.example.com', 'STATUS.example.com.:8080', 'localhost.example.com', 'svc.example', 'a.svc.example.com'],
    ...['127.0.0.1.example.com', 'cluster.local.example', 'xlocalhost.example', '[evil.example.com]:80', '256.1.1.1'],
  ];
  test('is refused at a name that the DNS of a stranger may have given the address, with all its files', async () => {
    await using page = await served(() => statusReport(many(2)));
    for (const host of strangers) {
      for (const file of ['', '/live', '/live.js', '/']) {
        assert.equal(await statusOf(page.url + file, { headers: { host } }), 403, host + file);
      }
    }
  });

  test('answers at any name over https, where browsers say which site asks', async () => {
    await using page = await served(() => statusReport([]));
    for (const site of ['none', 'same-origin', 'cross-site']) {
      const headers = { host: 'status.example.com', 'sec-fetch-site': site };
      assert.equal(await statusOf(page.url, { headers }), 200, site);
    }
  });

  test('readers share a report, and a failed one is not kept', async () => {
    let collected = 0;
    const clock = new ManualClock();
    const report = (): StatusReport => {
      collected += 1;
      if (collected === 1) throw new Error('not now');
      return statusReport([]);
    };
    await using page = await served(report, { clock });
    assert.equal((await fetch(page.url)).status, 500);
    await Promise.all(Array.from({ length: 20 }, async () => (await fetch(page.url)).text()));
    assert.equal(collected, 2);
    await clock.advance(1000);
    await (await fetch(page.url)).text();
    assert.equal(collected, 3);
  });
});

describe('the live stream of the status page', () => {
  test('brings all parts first, then only those that have changed', async () => {
    let report = statusReport(many(3));
    await using page = await served(() => report);
    await using reader = await LiveReader.open(`${page.url}/live`);
    await eventually(() => assert.equal(reader.messages.length, 1));
    assert.deepEqual(Object.keys(reader.messages[0]?.parts ?? {}).sort(), [
      'audit',
      'calls',
      'claim-list',
      'hour',
      'intents',
      'misfits',
      'process',
      'queues',
      'reasons',
      'released',
      'requests',
      'summary',
      'waits',
    ]);
    report = { ...report, calls: [] };
    await eventually(() => assert.equal(reader.messages.length, 2));
    assert.deepEqual(Object.keys(reader.messages[1]?.parts ?? {}).sort(), ['calls', 'summary']);
  });

  test('says at least every 20 seconds that nothing has changed, also where reports take long', async () => {
    for (const reportMs of [0, 500]) {
      const clock = new ManualClock();
      const report = async (): Promise<StatusReport> => {
        if (reportMs > 0) await clock.sleep(reportMs);
        return statusReport([]);
      };
      await using page = await served(report, { clock });
      await using reader = await LiveReader.open(`${page.url}/live`);
      let seen = 0;
      for (let silentMs = 0; seen < 6; silentMs += 500) {
        assert.ok(silentMs < 19_000, `no message for ${silentMs} ms`);
        await clock.advance(500);
        if (reader.messages.length > seen) silentMs = 0;
        seen = reader.messages.length;
      }
    }
  });

  test('follows the search of its page', async () => {
    await using page = await served(() => statusReport(many(20)));
    await using reader = await LiveReader.open(`${page.url}/live?q=team-web`);
    await eventually(() => assert.match(reader.messages[0]?.parts['claim-list'] ?? '', /<caption>5 claims/));
  });

  test('nothing is collected while nobody reads', async () => {
    let collected = 0;
    const clock = new ManualClock();
    const report = (): StatusReport => {
      collected += 1;
      return statusReport([], { atMs: reportedAtMs + collected * 1000 });
    };
    await using page = await served(report, { clock });
    const reader = await LiveReader.open(`${page.url}/live`);
    await eventually(async () => {
      await clock.advance(1000);
      assert.ok(collected >= 3);
    });
    reader.leave();
    await eventually(async () => {
      const before = collected;
      await clock.advance(60_000);
      assert.equal(collected, before);
    });
  });

  test(`is open to ${maxStreams} readers; a further one is sent away until one leaves`, async () => {
    await using page = await served(() => statusReport([]));
    const readers = await Promise.all(Array.from({ length: maxStreams }, () => LiveReader.open(`${page.url}/live`)));
    const answer = await fetch(`${page.url}/live`);
    assert.deepEqual([answer.status, answer.headers.get('retry-after')], [503, '15']);
    assert.equal((await fetch(page.url)).status, 200, 'the page itself is there for everybody');
    readers[0]?.leave();
    await eventually(async () => {
      await using next = await LiveReader.open(`${page.url}/live`);
      await eventually(() => assert.ok(next.messages.length > 0));
    });
    for (const reader of readers) reader.leave();
  });

  test('is not open to other sites, which could occupy it', async () => {
    await using page = await served(() => statusReport([]));
    for (const [site, status] of [
      ['cross-site', 403],
      ['same-site', 403],
      ['same-origin', 200],
      ['none', 200],
    ] as const) {
      assert.equal(await statusOf(`${page.url}/live`, { headers: { 'sec-fetch-site': site } }), status, site);
    }
  });

  test('ends at a shutdown, before the server has to cut it', async () => {
    const page = await served(() => statusReport([]));
    const reader = await LiveReader.open(`${page.url}/live`);
    await eventually(() => assert.equal(reader.messages.length, 1));
    await page.page[Symbol.asyncDispose]();
    await eventually(() => assert.equal(reader.ended, true));
    assert.equal((await fetch(`${page.url}/live`)).status, 503);
    await page.server[Symbol.asyncDispose]();
  });

  test('goes on after a report that failed', async () => {
    const lines: LogLine[] = [];
    let collected = 0;
    await using page = await served(
      () => {
        collected += 1;
        if (collected === 1) throw new Error('not now');
        return statusReport([]);
      },
      { logger: recordedLogger(lines) },
    );
    await using reader = await LiveReader.open(`${page.url}/live`);
    await eventually(() => assert.equal(reader.messages.length, 1));
    assert.deepEqual(
      lines.map(({ message }) => message),
      ['The status page could not be updated'],
    );
  });
});
