import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { CheckResult, Status } from '../../../sandbox/check/check.ts';
import { exitCode, junitText, resultText, summaryText } from '../../../sandbox/check/report.ts';
import { wellFormed } from './well-formed.ts';

const hostile = 'no "room" <left> & more ]]> \u0007\u001b[31m \uD800 \uFFFE \u{1F4A5}\r\n second line';

function result(status: Status, message = hostile): CheckResult {
  const level = status === 'warn' ? 'warn' : 'fail';
  return {
    id: `a-${status}`,
    title: 'something holds',
    section: 'CreateVolume',
    part: 'driver',
    status,
    findings: status === 'fail' || status === 'warn' ? [{ level, section: 'Size Limits', message }] : [],
    notes: status === 'skip' ? [message] : [],
    durationMs: 12,
  };
}

const all = (['pass', 'fail', 'warn', 'skip'] as const).map((status) => result(status));

describe('the JUnit report', () => {
  test('is well-formed whatever a driver says', () => {
    const xml = junitText([{ name: 'one & <two>', results: all }], { strict: false });
    assert.equal(wellFormed(xml), undefined, xml);
    assert.match(xml, /tests="4" failures="1" errors="0" skipped="1"/);
    assert.ok(xml.includes('no &quot;room&quot; &lt;left&gt; &amp; more ]]&gt;'), xml);
  });

  test('counts warnings as failures where they are', () => {
    assert.match(junitText([{ name: 'one', results: all }], { strict: true }), /failures="2"/);
  });

  test('is empty without results', () => {
    assert.equal(wellFormed(junitText([{ name: 'one', results: [] }], { strict: false })), undefined);
  });
});

describe('the report on a terminal', () => {
  test('has no control character of a driver', () => {
    const text = all.map(resultText).join('');
    // eslint-disable-next-line no-control-regex -- that is what must not be there
    assert.doesNotMatch(text, /[\u0000-\u0009\u000b-\u001f]/);
    assert.match(text, /^fail {2}a-fail .*\n.*\[Size Limits\]$/m);
  });

  test('counts, and names what has failed', () => {
    assert.equal(summaryText(all), '1 passed, 1 failed, 1 with warnings, 1 skipped\nfailed: a-fail\n');
  });

  test('ends with 1 for a failure, and for a warning only with --strict', () => {
    assert.equal(exitCode(all, { strict: false }), 1);
    const warned = [result('warn'), result('skip'), result('pass')];
    assert.equal(exitCode(warned, { strict: false }), 0);
    assert.equal(exitCode(warned, { strict: true }), 1);
  });
});
