/** The status page in a real Chromium: what a person sees, with and without script, on a screen and on a phone. */
import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { silentLogger } from '../../../src/base/logger.ts';
import { type DiagnosticsServer, startDiagnosticsServer } from '../../../src/diagnostics/http-server.ts';
import { StatusPage } from '../../../src/diagnostics/status-page/status-page.ts';
import type { StatusReport } from '../../../src/diagnostics/status-page/status-report.ts';
import { type Chromium, missingChromium, startChromium } from '../../support/chromium.ts';
import { eventually } from '../../support/eventually.ts';
import {
  reportedAtMs,
  reportedClaim,
  reportedVolume,
  statusReport,
  withReleased,
} from '../../support/fakes/status-reports.ts';

const skip = (await missingChromium()) ?? false;
if (skip !== false) console.error(`The status page in a browser: ${skip}`);

const many = (count: number) => Array.from({ length: count }, (_, number) => reportedClaim(number));

describe('the status page in Chromium', { skip }, () => {
  const opened = new AsyncDisposableStack();
  let chromium: Chromium;
  let server: DiagnosticsServer;
  let report: StatusReport;
  let page: Page;
  let url: string;
  /** What the console of the browser says, violations of the content security policy among it. */
  const complaints: string[] = [];

  before(async () => {
    chromium = opened.use(await startChromium());
    page = await newPage();
  });
  beforeEach(async () => {
    complaints.length = 0;
    server = opened.use(await startDiagnosticsServer({ address: '127.0.0.1:0', logger: silentLogger }));
    opened.use(new StatusPage({ collect: () => Promise.resolve(report), logger: silentLogger })).serveOn(server);
    url = `http://127.0.0.1:${server.port}/status`;
  });
  after(() => opened.disposeAsync());

  async function newPage(): Promise<Page> {
    const fresh = await chromium.context.newPage();
    fresh.on('console', (message) => complaints.push(message.text()));
    fresh.on('pageerror', (error) => complaints.push(error.message));
    return fresh;
  }

  /** In the page; as text, since the types of the DOM are not those of Node.js. */
  const evaluate = <T>(expression: string): Promise<T> => page.evaluate<T>(expression);

  const live = (): Promise<void> =>
    eventually(async () => assert.match((await page.textContent('#as-of')) ?? '', /^Live/));

  for (const count of [0, 20, 10_000]) {
    test(`shows ${count} waiting claims, live, without a complaint of the browser`, async (t) => {
      report = statusReport(many(count));
      await page.goto(url);
      const rows = await page.locator('table.claims tbody tr').count();
      assert.ok(count < 200 ? rows === count : rows > 100, String(rows));
      await live();
      assert.deepEqual(complaints, []);
      const paintedMs = await eventually(async () => {
        const ms = await evaluate<number | undefined>(`performance.getEntriesByType('paint')[0]?.startTime`);
        return ms ?? assert.fail('nothing is painted yet');
      });
      t.diagnostic(`first paint after ${Math.round(paintedMs)} ms`);
    });
  }

  test('is complete without script: search, steps, pages and one claim', async () => {
    report = statusReport(many(450));
    await page.route('**/live.js', (route) => route.abort());
    try {
      await page.goto(url);
      assert.match((await page.textContent('#as-of')) ?? '', /^As of 09:30:12 UTC$/);
      assert.equal(await page.locator('#pause').isVisible(), false);
      assert.equal(await page.locator('#reload').isVisible(), true);
      await page.click('a[rel=next]');
      assert.match((await page.textContent('caption')) ?? '', /^[12]\d\d to \d+ of 450 claims/);
      await page.fill('#q', 'team-web/data-postgres-31');
      await page.press('#q', 'Enter');
      await page.waitForURL(/q=team-web/);
      assert.equal(await page.locator('table.claims tbody tr').count(), 4, '31, 311, 315 and 319');
      const first = await page.textContent('table.claims tbody a >> nth=0');
      await page.click('table.claims tbody a >> nth=0');
      assert.equal(await page.textContent('#claim-list h3'), first);
      await page.click('#claim-list >> text=Close');
      assert.equal(await page.inputValue('#q'), 'team-web/data-postgres-31', 'the search is kept');
      assert.equal(await page.locator('table.claims tbody tr').count(), 4);
    } finally {
      await page.unroute('**/live.js');
    }
  });

  test('a search, a step and a page are kept while one claim is looked at, on the way back and as it is followed', async () => {
    report = statusReport(many(1000));
    const query = '?q=data&step=retrying&from=200';
    await page.goto(url + query);
    const caption = (await page.textContent('caption')) ?? '';
    assert.match(caption, /^201 to 333 of 333 claims/);
    await page.click('table.claims tbody a >> nth=0');
    await live();
    assert.match(
      await page.title(),
      /^! 333 failing, 3 stuck – team-\w+\/data-postgres-\d+ – block\.csi\.example\.com – csi-provisioner$/,
    );
    await page.click('#claim-list >> text=Close');
    await page.waitForURL(url + query);
    assert.equal(await page.textContent('caption'), caption);
    await page.click('table.claims tbody a >> nth=0');
    await page.goBack();
    assert.equal(await page.textContent('caption'), caption);
    assert.equal(await page.inputValue('#q'), 'data');
    assert.match((await page.textContent('.steps [aria-current]')) ?? '', /^waits for next attempt/);
  });

  test('changes arrive while focus, selection of text and the place on the page stay', async () => {
    report = statusReport(many(60));
    await page.goto(url);
    await live();
    const third = page.locator('table.claims tbody a', { hasText: /-3$/ });
    await third.focus();
    const scrolled = await evaluate<number>('scrollTo(0, 300), scrollY');
    report = statusReport(many(60).slice(2), { atMs: reportedAtMs + 60_000 });
    await eventually(async () => assert.match((await page.textContent('caption')) ?? '', /^58 claims/));
    assert.match(await evaluate<string>('document.activeElement.textContent'), /data-postgres-3$/);
    assert.equal(await evaluate('scrollY'), scrolled);
    const names = await page.locator('table.claims tbody th').allTextContents();
    assert.deepEqual(
      names.map((name) => name.trim()).toSorted(),
      report.work?.claims.map(({ namespace, name }) => `${namespace}/${name}`).toSorted(),
    );

    await evaluate(`document.getSelection().selectAllChildren(document.querySelector('table.claims tbody tr'))`);
    report = statusReport(many(60).slice(10), { atMs: reportedAtMs + 120_000 });
    await eventually(async () => assert.match((await page.textContent('#as-of')) ?? '', /09:32:12/));
    assert.match((await page.textContent('caption')) ?? '', /^58 claims/, 'nothing changes while text is selected');
    await evaluate('document.getSelection().removeAllRanges()');
    await eventually(async () => assert.match((await page.textContent('caption')) ?? '', /^50 claims/));
    assert.deepEqual(complaints, []);
  });

  test('is paused and resumed by a button that the keyboard reaches', async () => {
    report = statusReport(many(3));
    await page.goto(url);
    await live();
    await page.locator('#pause').focus();
    await page.keyboard.press('Enter');
    assert.equal(await page.textContent('#as-of'), 'Paused at 09:30:12 UTC');
    report = statusReport([]);
    await page.keyboard.press('Enter');
    await eventually(async () => assert.match((await page.textContent('#summary')) ?? '', /Healthy/));
  });

  test('says when the process has gone, and follows the next one', async () => {
    report = statusReport(many(3));
    await page.goto(url);
    await live();
    const { port } = server;
    await server[Symbol.asyncDispose]();
    await eventually(async () => assert.match((await page.textContent('#as-of')) ?? '', /^Connection lost|^Not live/));
    const next = opened.use(await startDiagnosticsServer({ address: `127.0.0.1:${port}`, logger: silentLogger }));
    opened.use(new StatusPage({ collect: () => Promise.resolve(report), logger: silentLogger })).serveOn(next);
    await live();
  });

  describe('that is out of date', () => {
    /** Its timers and dates are moved by the test. */
    let tab: Page;
    let hung: PromiseWithResolvers<undefined> | undefined;
    let isHanging: boolean;
    beforeEach(async () => {
      hung = undefined;
      isHanging = false;
      report = statusReport(many(20));
      const hangs = new StatusPage({
        collect: async () => {
          isHanging = hung !== undefined;
          await hung?.promise;
          return report;
        },
        logger: silentLogger,
      });
      const other = opened.use(await startDiagnosticsServer({ address: '127.0.0.1:0', logger: silentLogger }));
      opened.use(hangs).serveOn(other);
      tab = await newPage();
      await tab.clock.install();
      await tab.goto(`http://127.0.0.1:${other.port}/status`);
      await eventually(async () => assert.match((await tab.textContent('#as-of')) ?? '', /^Live/));
    });
    afterEach(() => tab.close());

    /** No report comes any more, until the returned function is called. */
    const hang = async (): Promise<() => void> => {
      const { promise, resolve, reject } = Promise.withResolvers<undefined>();
      hung = { promise, resolve, reject };
      await eventually(() => assert.ok(isHanging));
      return () => {
        hung = undefined;
        resolve(undefined);
      };
    };
    const asOf = async (): Promise<string> => (await tab.textContent('#as-of')) ?? '';
    const isGrey = (): Promise<boolean> => tab.evaluate<boolean>(`document.body.classList.contains('stale')`);

    test('says so after 20 seconds without a message, in the title too, and is as before with the next one', async () => {
      assert.match(await tab.title(), /^! 7 failing, 3 stuck – block\.csi/);
      const goOn = await hang();
      await eventually(async () => {
        await tab.clock.fastForward(21_000);
        assert.equal(await asOf(), 'No update since 09:30:12 UTC');
      });
      assert.equal(await isGrey(), true);
      assert.match(await tab.title(), /^\? no update – block\.csi/);
      assert.equal(await tab.textContent('#announcement'), 'No update since 09:30:12 UTC');
      report = statusReport([], { atMs: reportedAtMs + 60_000 });
      goOn();
      await eventually(async () => {
        await tab.clock.fastForward(1000);
        assert.equal(await asOf(), 'Live, 09:31:12 UTC');
        assert.match(await tab.title(), /^block\.csi/);
        assert.equal(await isGrey(), false);
      });
    });

    test('is not out of date any more once a computer that was asleep is awake and its stream is there again', async () => {
      const goOn = await hang(); // the stream is half open, as after a sleep
      await eventually(async () => {
        await tab.clock.fastForward(8 * 3_600_000);
        assert.match(await asOf(), /^No update since/);
      });
      goOn();
      await eventually(async () => assert.match(await asOf(), /^Live/));
    });

    test('every text still has enough contrast, in both colour schemes', async () => {
      const goOn = await hang();
      await eventually(async () => {
        await tab.clock.fastForward(21_000);
        assert.equal(await isGrey(), true);
      });
      for (const colorScheme of ['light', 'dark'] as const) {
        await tab.emulateMedia({ colorScheme });
        const least = await tab.evaluate<{ ratio: number; text: string }>(leastContrast);
        assert.ok(least.ratio >= 4.5, `${least.ratio.toFixed(2)} to 1: ${least.text}`);
      }
      goOn();
    });

    test('is greyed, too, where the reader has paused it', async () => {
      await tab.click('#pause');
      await eventually(async () => {
        await tab.clock.fastForward(21_000);
        assert.equal(await isGrey(), true);
      });
      assert.equal(await asOf(), 'Paused at 09:30:12 UTC');
      await tab.click('#pause');
      await eventually(async () => assert.equal(await isGrey(), false));
    });
  });

  test('the tab of a page that nobody looks at still says how things are, without a stream', async () => {
    report = statusReport(many(20));
    const tab = await newPage();
    await tab.clock.install();
    await tab.goto(url);
    await eventually(async () => assert.match((await tab.textContent('#as-of')) ?? '', /^Live/));
    const hide = (hidden: boolean): Promise<unknown> =>
      tab.evaluate(
        `Object.defineProperty(document, 'hidden', { value: ${hidden}, configurable: true }), document.dispatchEvent(new Event('visibilitychange'))`,
      );
    await hide(true);
    report = statusReport([]);
    await eventually(async () => {
      await tab.clock.fastForward(60_000);
      assert.match(await tab.title(), /^block\.csi/);
    });
    await server[Symbol.asyncDispose]();
    await eventually(async () => {
      await tab.clock.fastForward(60_000);
      assert.match(await tab.title(), /^\? no update – block\.csi/);
    });
    await tab.close();
    complaints.length = 0; // of the connection that is refused
  });

  test('what a reader looks at stays where it is while lists above grow and shrink', async () => {
    report = statusReport(many(30));
    await page.goto(url);
    await live();
    await evaluate(`document.getElementById('process-heading').scrollIntoView({ block: 'center' })`);
    const place = (): Promise<number> =>
      evaluate<number>(`Math.round(document.getElementById('process-heading').getBoundingClientRect().top)`);
    const before = await place();
    for (const [claims, failing] of [
      [2000, 50],
      [40, 1],
    ] as const) {
      const first = Array.from({ length: failing }, (_, number) => reportedVolume(number));
      report = withReleased(statusReport(many(claims)), { total: failing, failing, first });
      await eventually(async () => {
        const text = (await page.textContent('#summary')) ?? '';
        assert.match(text, new RegExp(`\\b${claims.toLocaleString('en-US')} waiting`));
      });
      await eventually(async () =>
        assert.ok(Math.abs((await place()) - before) <= 1, `${await place()}, before ${before}`),
      );
    }
  });

  test('a click on a claim shows its cause where the click was, and an update closes nothing', async () => {
    report = statusReport(many(45));
    for (const width of [1280, 390]) {
      await page.setViewportSize({ width, height: 740 });
      await page.goto(url);
      await live();
      await page.click('table.claims tbody a >> nth=9');
      await live();
      const box = await page.locator('#claim dl').boundingBox();
      assert.ok(box !== null && box.y >= 0 && box.y < 740, JSON.stringify(box));
      await page.click('#requests summary');
      report = statusReport(many(45), { atMs: reportedAtMs + 60_000 * width });
      const time = new Date(reportedAtMs + 60_000 * width).toISOString().slice(11, 19);
      await eventually(async () => assert.equal(await page.textContent('#as-of'), `Live, ${time} UTC`));
      assert.equal(await page.locator('#claim dl').isVisible(), true);
      assert.equal(await page.locator('#requests table').isVisible(), true);
    }
    await page.setViewportSize({ width: 1280, height: 900 });
  });

  test('a chart says what the bar below the pointer counts, and when', async () => {
    report = statusReport(many(3));
    await page.goto(url);
    await live();
    const box = (await page.locator('figure.made svg').boundingBox()) ?? assert.fail('no chart');
    const note = page.locator('figure.made small');
    const unit = await note.textContent();
    const tops = await evaluate<number[]>(
      `[...document.querySelectorAll('.hour svg')].map((chart) => chart.getBoundingClientRect().top)`,
    );
    assert.equal(new Set(tops).size, 1, 'the charts stand on one line');
    const left = async (part: string): Promise<number | undefined> => (await page.locator(part).boundingBox())?.x;
    assert.equal(
      await left('figure.made small'),
      await left('figure.made'),
      'the unit stands above the axis, apart from the total',
    );
    await page.mouse.move(box.x + box.width - 2, box.y + box.height / 2);
    await eventually(async () => assert.match((await note.textContent()) ?? '', /^09:30 UTC: \d+ volumes a minute$/));
    await page.mouse.move(5, 5);
    await eventually(async () => assert.equal(await note.textContent(), unit));
  });

  test('is read aloud in few words, and only when they change', async () => {
    report = statusReport(many(3));
    await page.goto(url);
    await live();
    assert.equal(await page.textContent('#announcement'), '');
    report = statusReport([]);
    await eventually(async () => assert.equal(await page.textContent('#announcement'), 'Healthy'));
  });

  test('has landmarks, headings, captions and headers that a screen reader finds', async () => {
    report = statusReport(many(20));
    await page.goto(url);
    const tree = await page.locator('body').ariaSnapshot();
    for (const part of [/- banner/, /- main/, /- search/, /heading "Waiting claims" \[level=2\]/, /- status/]) {
      assert.match(tree, part);
    }
    for (const table of await page.locator('table').all()) {
      assert.notEqual((await table.locator('caption').textContent()) ?? '', '');
      assert.ok((await table.locator('th[scope=col]').count()) > 1);
      assert.equal(await table.locator('tbody tr').count(), await table.locator('tbody th[scope=row]').count());
    }
    await page.keyboard.press('Tab');
    assert.equal(await evaluate('document.activeElement.className'), 'skip');
  });

  for (const colorScheme of ['light', 'dark'] as const) {
    test(`every text has enough contrast in ${colorScheme} colours`, async () => {
      report = statusReport(many(20));
      await page.emulateMedia({ colorScheme });
      await page.goto(url);
      const least = await evaluate<{ ratio: number; text: string }>(leastContrast);
      assert.ok(least.ratio >= 4.5, `${least.ratio.toFixed(2)} to 1: ${least.text}`);
      await page.emulateMedia({ colorScheme: null });
    });
  }

  test('fits on a phone: nothing is wider than the screen or its list, and the table is still one', async () => {
    const long = { namespace: 'n'.repeat(63), name: 'p'.repeat(250) };
    const volume = reportedVolume(0, { claim: `${long.namespace}/${long.name}` });
    const claims = [...many(20), reportedClaim(20, long)];
    report = withReleased(statusReport(claims), { total: 1, failing: 1, first: [volume] });
    for (const width of [390, 360]) {
      await page.setViewportSize({ width, height: 740 });
      await page.goto(url);
      await page.click('#requests summary');
      assert.equal(await evaluate('document.documentElement.scrollWidth'), width);
      assert.deepEqual(await evaluate(tooWide), []);
    }
    const tree = await page.locator('table.claims').ariaSnapshot();
    assert.match(tree, /table "21 claims, those that fail first, then the oldest"/);
    assert.match(tree, /rowheader "team-payments\/data-postgres-0"/);
    await page.setViewportSize({ width: 1280, height: 900 });
  });

  test('is not there for a page whose own host name has been given the address of this server', async () => {
    report = statusReport(many(3));
    await page.goto(url.replace('127.0.0.1', 'rebound.example.com'));
    assert.match((await page.textContent('body')) ?? '', /^This host name is not served over plain HTTP/);
    for (const file of ['/status', '/status/live', '/status/live.js']) {
      assert.equal(await evaluate(`fetch('${file}').then(({ status }) => status)`), 403, file);
    }
    await page.goto(url.replace('127.0.0.1', 'localhost'));
    await live();
  });

  test('moves nothing', async () => {
    report = statusReport(many(20));
    await page.goto(url);
    await live();
    assert.equal(await evaluate('document.getAnimations().length'), 0);
  });
});

/** The elements that a reader would have to scroll sideways for. */
const tooWide = `[...document.querySelectorAll('main *, header *')]
  .filter((element) => element.checkVisibility() && !element.closest('.hidden, svg'))
  .filter((element) => {
    const isInline = getComputedStyle(element).display.startsWith('inline');
    const { right } = element.getBoundingClientRect();
    return right > innerWidth + 1 || (!isInline && element.scrollWidth > element.clientWidth + 1);
  })
  .map((element) => element.outerHTML.slice(0, 100))`;

/** The least contrast of any text with what is behind it (WCAG 2.2, "Contrast (Minimum)"): runs in the page. */
const leastContrast = `(() => {
    const parse = (color) => (color.match(/[\\d.]+/g) ?? []).map(Number);
    const luminance = ([r, g, b]) => {
      const [red, green, blue] = [r, g, b].map((value) =>
        value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4,
      );
      return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    };
    const behind = (element) => {
      for (let at = element; at !== null; at = at.parentElement) {
        const color = parse(getComputedStyle(at).backgroundColor);
        if (color.length < 4 || color[3] !== 0) return color;
      }
      return [255, 255, 255];
    };
    let least = { ratio: Infinity, text: '' };
    for (const element of document.querySelectorAll('body *')) {
      const own = [...element.childNodes].some((node) => node.nodeType === 3 && (node.textContent ?? '').trim() !== '');
      if (!own || !element.checkVisibility()) continue;
      const [a, b] = [luminance(parse(getComputedStyle(element).color)), luminance(behind(element))];
      const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      if (ratio < least.ratio) least = { ratio, text: element.outerHTML.slice(0, 100) };
    }
    return least;
})()`;
