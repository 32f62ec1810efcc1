import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import { takeFault } from '../../../sandbox/hostpath/faults.ts';

function faultsFile(t: TestContext, content: string): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'faults-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = path.join(folder, 'faults.json');
  writeFileSync(file, content);
  return file;
}

const methods = new Set(['Probe', 'CreateVolume', 'DeleteVolume']);

describe('takeFault', () => {
  test('there is none without the file', () =>
    assert.equal(takeFault('/nonexistent/faults.json', 'Probe', methods), undefined));

  test('counts down in the file and goes on with the next entry', (t) => {
    const file = faultsFile(
      t,
      JSON.stringify([
        { method: 'Probe', code: 'INTERNAL' },
        { method: 'CreateVolume', code: 'UNAVAILABLE', times: 2 },
        { method: 'CreateVolume', code: 'ABORTED' },
      ]),
    );
    const codes = [1, 2, 3, 4].map(() => takeFault(file, 'CreateVolume', methods)?.code);
    assert.deepEqual(codes, ['UNAVAILABLE', 'UNAVAILABLE', 'ABORTED', 'ABORTED']);
    assert.deepEqual(JSON.parse(readFileSync(file, 'utf8')), [
      { method: 'Probe', code: 'INTERNAL' },
      { method: 'CreateVolume', code: 'UNAVAILABLE', times: 0 },
      { method: 'CreateVolume', code: 'ABORTED' },
    ]);
    assert.equal(takeFault(file, 'DeleteVolume', methods), undefined);
  });

  test('takes the first entry whose parameters the call has', (t) => {
    const file = faultsFile(
      t,
      JSON.stringify([
        { method: 'CreateVolume', code: 'INTERNAL', parameters: { pool: 'a' }, times: 1 },
        { method: 'CreateVolume', code: 'ABORTED', parameters: { pool: 'b', tier: 'fast' } },
      ]),
    );
    const codeOf = (parameters?: Record<string, string>) =>
      takeFault(file, 'CreateVolume', methods, { ...(parameters !== undefined && { parameters }) })?.code;
    assert.equal(codeOf(), undefined);
    assert.equal(codeOf({ pool: 'b' }), undefined);
    assert.equal(codeOf({ pool: 'b', tier: 'fast', other: 'x' }), 'ABORTED');
    assert.equal(codeOf({ pool: 'a' }), 'INTERNAL');
    assert.equal(codeOf({ pool: 'a' }), undefined);
  });

  test('takes an entry for a volume only for calls that name it', (t) => {
    const file = faultsFile(t, JSON.stringify([{ method: 'DeleteVolume', code: 'INTERNAL', volumeId: 'a' }]));
    assert.equal(takeFault(file, 'DeleteVolume', methods, { volume_id: 'b' }), undefined);
    assert.equal(takeFault(file, 'DeleteVolume', methods), undefined);
    assert.equal(takeFault(file, 'DeleteVolume', methods, { volume_id: 'a' })?.code, 'INTERNAL');
  });

  const refused = [
    { content: '', message: /not JSON/ },
    { content: '{}', message: /not a list/ },
    { content: '[{}]', message: /no method/ },
    { content: '[{"method":"CreateVolumes"}]', message: /there is no call CreateVolumes/ },
    { content: '[{"method":"Probe","code":"OK"}]', message: /unknown code/ },
    { content: '[{"method":"Probe","code":"14"}]', message: /unknown code/ },
    { content: '[{"method":"Probe","times":-1}]', message: /whole numbers/ },
    { content: '[{"method":"Probe","delayMs":"5"}]', message: /whole numbers/ },
    { content: '[{"method":"Probe","hold":"yes"}]', message: /true or false/ },
    { content: '[{"method":"Probe","hang":1}]', message: /true or false/ },
    { content: '[{"method":"Probe","capacityBytes":-1}]', message: /whole numbers/ },
    { content: '[{"method":"Probe","parameters":{"a":1}}]', message: /texts by name/ },
    { content: '[{"method":"Probe","volumeId":1}]', message: /volumeId is a text/ },
    { content: '[{"method":"Probe","time":1}]', message: /unknown field time/ },
  ];
  for (const { content, message } of refused) {
    test(`${content || 'an empty file'} is an error`, (t) => {
      const file = faultsFile(t, content);
      assert.throws(() => takeFault(file, 'Probe', methods), { codeName: 'INTERNAL', message });
    });
  }
});
