import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { journalLock, journalNode, leaseName, sanitised } from '../../../src/run/lock-name.ts';
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

const objectName = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

describe('the lock of an intent journal', () => {
  test('is the Lease of the leader election', () => {
    assert.equal(journalLock('hostpath-csi-k8s-io'), 'hostpath-csi-k8s-io');
  });

  test('has the name of the node in node deployment, dots included', () => {
    assert.equal(journalLock('local-csi', 'ip-10-0-0-1.ec2.internal'), 'local-csi.ip-10-0-0-1.ec2.internal');
  });

  for (const [what, lease, node] of [
    ['that is too long', 'local-csi', 'n'.repeat(253)],
    ['with a part that ends in a dash', 'local-csi', 'node-.example.com'],
    ['with upper case', 'local-csi', 'Node1'],
    ['that begins with a dash', '-x', undefined],
    ['of nothing that is valid', '---', undefined],
  ] as const) {
    test(`becomes a valid one where it would be a name ${what}`, () => {
      const name = journalLock(lease, node);
      assert.match(`${name}-journal-0`, objectName);
      assert.ok(`${name}-journal-9999999`.length <= 253);
      assert.equal(journalLock(lease, node), name);
    });
  }

  test('is another one for a driver whose name begins with that of another', () => {
    assert.notEqual(journalLock('fast', 'disks-1'), journalLock('fast-disks', '1'));
  });

  test('is another one for every node, also where the names are shortened', () => {
    const long = 'n'.repeat(252);
    const names = ['Node1', 'node1', `${long}1`, `${long}2`].map((node) => journalLock('local-csi', node));
    assert.equal(new Set(names).size, names.length);
  });
});

describe('the node of an object of a journal', () => {
  for (const node of ['n1', 'ip-10-0-0-1.ec2.internal', 'a-journal-1']) {
    test(`is ${node}, as it was named`, () => {
      assert.equal(journalNode('local-csi', `${journalLock('local-csi', node)}-journal-12`), node);
    });
  }

  for (const name of ['local-csi', 'local-csi-journal-0', 'local-csi.n1', 'local-csi.n1-journal-x', 'x.n1-journal-0']) {
    test(`is not known for ${name}`, () => {
      assert.equal(journalNode('local-csi', name), undefined);
    });
  }

  test('is not known where the name was shortened', () => {
    const name = `${journalLock('local-csi', 'n'.repeat(240))}-journal-0`;
    assert.equal(journalNode('local-csi', name), undefined);
  });
});
