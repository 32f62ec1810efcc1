import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { hourSection, LastHour } from '../../../src/diagnostics/status-page/last-hour.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';
import { reportedHour, statusReport } from '../../support/fakes/status-reports.ts';

const minuteMs = 60_000;
const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

describe('LastHour', () => {
  test('counts by the minute, from when the instance began to work', async () => {
    const clock = new ManualClock({ turns: 1 });
    const hour = new LastHour(clock);
    await clock.advance(10 * minuteMs);
    hour.begin();
    hour.count('made');
    hour.count('made');
    hour.count('failed');
    await clock.advance(2 * minuteMs);
    hour.count('deleted');
    hour.count('deletionsFailed');
    assert.deepEqual(hour.report(), {
      made: [2, 0, 0],
      failed: [1, 0, 0],
      deleted: [0, 0, 1],
      deletionsFailed: [0, 0, 1],
      waiting: [undefined, undefined, undefined],
    });
  });

  test('forgets what is older than 60 minutes, also when nothing is counted meanwhile', async () => {
    const clock = new ManualClock({ turns: 1 });
    const hour = new LastHour(clock);
    hour.count('made');
    hour.sawWaiting(7);
    await clock.advance(59 * minuteMs);
    assert.equal(hour.report().made.length, 60);
    assert.deepEqual([hour.report().made[0], hour.report().waiting[0]], [1, 7]);
    await clock.advance(minuteMs);
    assert.equal(hour.report().made.length, 60);
    assert.equal(sum(hour.report().made), 0);
    hour.count('made');
    await clock.advance(500 * minuteMs);
    assert.equal(sum(hour.report().made), 0);
    assert.ok(hour.report().waiting.every((claims) => claims === undefined));
  });

  test('has the waiting claims counted once a minute until it is disposed; what fails is not known', async () => {
    const clock = new ManualClock({ turns: 1 });
    const hour = new LastHour(clock);
    let samples = 0;
    hour.sampleEvery(async () => {
      samples += 1;
      if (samples === 2) throw new Error('not now');
      return await Promise.resolve(samples * 10);
    });
    for (let minute = 0; minute < 3; minute++) await clock.advance(minuteMs);
    assert.deepEqual(hour.report().waiting, [undefined, 10, undefined, 30]);
    hour[Symbol.dispose]();
    await clock.advance(10 * minuteMs);
    assert.equal(samples, 3);
  });
});

describe('the picture of the last hour', () => {
  const svgs = (html: string): string[] => html.match(/<svg[^]*?<\/svg>/g) ?? [];

  test('says in words what it draws', () => {
    const html = hourSection(statusReport([], { lastHour: reportedHour(true) }));
    assert.equal(svgs(html).length, 4);
    for (const svg of svgs(html)) {
      const [, title = '', words = ''] = /aria-labelledby="(\S+) (\S+)"/.exec(svg) ?? [];
      assert.match(svg, /^<svg role="img"/);
      assert.match(svg, new RegExp(`<title id="${title}">[A-Z]`));
      assert.match(svg, new RegExp(`<desc id="${words}">\\d`));
    }
    assert.match(html, /Volumes made<\/title><desc [^>]*>522 in the last hour; at most 18 in a minute, 36 in the last/);
    assert.match(html, /Attempts failed<\/title><desc [^>]*>198 in the last hour, 8 of them to delete a volume/);
    assert.match(
      html,
      /Claims waiting<\/title><desc [^>]*>24 at last, counted once a minute; in the last hour at most 30/,
    );
    assert.doesNotMatch(html, /style=|NaN|undefined/);
  });

  test('draws a bar for each minute with a number, the newest at the right, and the smallest can be seen', () => {
    const few = { ...reportedHour(false), made: [1, 0, 1000], waiting: [undefined, 0, 3] };
    const [made = '', , , waiting = ''] = svgs(hourSection(statusReport([], { lastHour: few })));
    assert.match(made, /class="bars" d="M570 50V48h10V50h10V2h10V50z"/);
    assert.match(waiting, /class="bars" d="M570 50V50h10V50h10V2h10V50z"/);
    assert.match(made, /1,001 in the 3 minutes since this instance began to work/);
  });

  test('of a standby is left to the leader', () => {
    assert.doesNotMatch(hourSection(statusReport([], { lastHour: undefined })), /<svg/);
  });
});
