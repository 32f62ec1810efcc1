import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  durationText,
  errorText,
  escapeHtml,
  latencyText,
  shortened,
} from '../../../src/diagnostics/status-page/html.ts';
import { parseStatusQuery, queryText } from '../../../src/diagnostics/status-page/status-view.ts';

describe('texts of the status page', () => {
  const durations: [number, string][] = [
    [-5, '0 s'],
    [119, '119 s'],
    [120, '2 min'],
    [7199, '119 min'],
    [3 * 3600 + 300, '3 h 5 min'],
    [47 * 3600, '47 h'],
    [50 * 3600, '2 d 2 h'],
  ];
  for (const [seconds, text] of durations)
    test(`${seconds} seconds are ${text}`, () => assert.equal(durationText(seconds), text));

  test('latencies have few digits', () => {
    assert.deepEqual([0.00123, 0.0621, 1.25, 75].map(latencyText), ['1.2 ms', '62 ms', '1.3 s', '75 s']);
  });

  test('markup and control characters are escaped, also line breaks', () => {
    assert.equal(escapeHtml(`<a href="x">&'\n\u0000\u202e`), '&lt;a href=&quot;x&quot;&gt;&amp;&#39; ��');
  });

  test('an error loses what all errors begin with, and only at its beginning', () => {
    const rpc = 'rpc error: code = Internal desc = out of disks';
    assert.equal(errorText(`failed to provision volume with StorageClass "a b": ${rpc}`), 'Internal: out of disks');
    assert.equal(errorText(`driver said: ${rpc}`), `driver said: ${rpc}`);
    assert.equal(shortened('abcdef', 4), 'abc…');
  });
});

describe('the query of the status page', () => {
  test('is the same after it was written and read', () => {
    const query = { search: 'a&b=c d', step: 'queued', from: 200, claim: 'ns/na me' } as const;
    assert.deepEqual(parseStatusQuery(`/status${queryText(query)}`), query);
  });

  test('what makes no sense counts as not given', () => {
    const nothing = { search: '', step: undefined, from: 0, claim: undefined };
    for (const text of ['', '?', '?from=-1&step=x&claim=', '?from=1e9', '?from=12345678', '?%zz'])
      assert.deepEqual(parseStatusQuery(`/status${text}`), nothing, text);
    assert.equal(parseStatusQuery(`/status?q=${'x'.repeat(9000)}`).search.length, 400);
  });
});
