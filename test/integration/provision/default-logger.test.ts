import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { startProcess } from '../../support/started-process.ts';
import { Rig } from './rig.ts';

const library = path.join(import.meta.dirname, '../../../src/index.ts');

test('a program that gives no logger has warnings and errors on standard error, and nothing else', async () => {
  await using rig = await Rig.prepare();
  rig.addClass();
  rig.addClaim();
  const program = `
    import { connect, ProvisionController } from ${JSON.stringify(library)};
    await using transport = connect({ master: ${JSON.stringify(rig.url)}, environment: {} });
    const provisioner = { provision: () => Promise.reject(new Error('the "pool" is full')), delete: () => undefined };
    const stop = new AbortController();
    process.once('SIGTERM', () => stop.abort());
    await new ProvisionController({ provisionerName: 'drv', provisioner, transport }).run({ stop: stop.signal });
  `;
  const started = await startProcess({ program: process.execPath, args: ['--input-type=module', '--eval', program] });
  try {
    await eventually(() => {
      assert.match(started.log(), /warn {2}Error syncing claim, trying again .* err=the "pool" is full\n/);
    });
  } finally {
    await started.stop('SIGTERM');
  }
  assert.equal(await started.ending(), 'exit code 0');
  assert.doesNotMatch(started.log(), / (info|debug|trace) /);
});
