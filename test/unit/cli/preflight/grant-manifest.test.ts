import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseDocuments } from '../../../../src/cli/preflight/parse-documents.ts';
import { access, type Json, named, reportOf, rule, workload } from './driver-manifests.ts';

test('what is printed to be applied grants all that was missing', async () => {
  const few = access([rule('', 'persistentvolumeclaims', 'get list watch update')], []);
  const poor = workload({ args: ['--leader-election', '--strict-topology'] });
  const { sidecars } = await reportOf([poor, ...few]);
  const [before] = sidecars;
  assert.ok(before !== undefined);
  assert.ok(before.findings.some(({ level }) => level === 'must'));
  const granted = parseDocuments(before.grant, 'grant') as Json[];
  const [after] = (await reportOf([poor, ...few, ...granted])).sidecars;
  assert.deepEqual(after && named(after), ['note conditional-rights']);
  assert.equal(after?.grant, '');
});
