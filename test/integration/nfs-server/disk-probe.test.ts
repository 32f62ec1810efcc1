/** The probe of the export directory, on a file system of its own that is frozen. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, test } from 'node:test';
import { silentLogger } from '../../../src/index.ts';
import { DiskProbe, type DiskProblem } from '../../../provisioners/nfs-server/disk-probe.ts';
import { eventually } from '../../support/eventually.ts';
import { FreezableFolder } from '../../support/frozen-folder.ts';

const probe = (directory: string, changes: (DiskProblem | undefined)[]): DiskProbe =>
  new DiskProbe({
    directory,
    intervalMs: 20,
    patienceMs: 500,
    onChange: (problem) => changes.push(problem),
    logger: silentLogger,
  });

describe('the probe of an export directory', () => {
  test('sees that it hangs, and that it answers again', async (context) => {
    using folder = FreezableFolder.mount();
    if (folder === undefined) {
      context.skip('no file system can be mounted here');
      return;
    }
    const changes: (DiskProblem | undefined)[] = [];
    await using disk = probe(folder.path, changes);
    assert.equal(await disk.respondsWithin(60_000), true);
    folder.freeze();
    await eventually(() => assert.match(disk.problem ?? '', /does not respond to a write within 0.5 s/));
    assert.throws(() => disk.check(), /does not respond/);
    assert.equal(await disk.respondsWithin(100), false);
    folder.thaw();
    await eventually(() => assert.equal(disk.problem, undefined));
    disk.check();
    assert.equal(changes.length, 2);
  });

  test('reports a read-only file system, and that it is writable again', async (context) => {
    using folder = FreezableFolder.mount();
    if (folder === undefined) {
      context.skip('no file system can be mounted here');
      return;
    }
    const changes: (DiskProblem | undefined)[] = [];
    await using disk = probe(folder.path, changes);
    await folder.remount('ro');
    await eventually(() => assert.match(disk.problem ?? '', /is on a read-only file system/));
    assert.throws(() => disk.check(), /read-only/);
    assert.equal(await disk.respondsWithin(60_000), true, 'it answers: a server that is silent may be restarted');
    await folder.remount('rw');
    await eventually(() => assert.equal(disk.problem, undefined));
    disk.check();
    assert.deepEqual(
      changes.map((change) => change?.reason),
      ['ExportDirectoryReadOnly', undefined],
    );
  });

  test('takes an error for an answer', async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'disk-'));
    await rm(folder, { recursive: true });
    const changes: (DiskProblem | undefined)[] = [];
    await using disk = probe(folder, changes);
    for (let times = 0; times < 3; times++) assert.equal(await disk.respondsWithin(60_000), true);
    assert.deepEqual([disk.problem, changes], [undefined, []]);
  });
});
