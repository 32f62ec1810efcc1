import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { leaseName, sanitised } from '../../../src/run/lease-name.ts';
import { type LogLine, recordedLogger } from '../../support/fakes/recorded-logger.ts';

describe('sanitised', () => {
  const cases = [
    { text: 'hostpath.csi.k8s.io', want: 'hostpath-csi-k8s-io' },
    { text: 'a/b.c', want: 'a-b-c' },
    { text: 'drv_', want: 'drv-X' },
    { text: 'Node1.example.com', want: 'Node1-example-com' },
  ];
  for (const { text, want } of cases) {
    test(`${text} becomes ${want}`, () => {
      assert.equal(sanitised(text), want);
    });
  }
});

describe('leaseName', () => {
  test('keeps a valid name and says nothing', () => {
    const lines: LogLine[] = [];
    assert.equal(leaseName('hostpath.csi.k8s.io', recordedLogger(lines)), 'hostpath-csi-k8s-io');
    assert.deepEqual(lines, []);
  });

  test('lower-cases what the API would refuse, with one warning', () => {
    const lines: LogLine[] = [];
    assert.equal(leaseName('Drv_', recordedLogger(lines)), 'drv-x');
    assert.equal(lines.length, 1);
    assert.equal(lines[0]?.level, 'warn');
  });
});
