/** XFS project quota: a fake `xfs_quota` on the path writes down what it is told, as hardly a test machine has such a file system. */
import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { silentLogger } from '../../../src/index.ts';
import { AtomicFile } from '../../../provisioners/nfs-server/atomic-file.ts';
import { ProjectQuota } from '../../../provisioners/nfs-server/project-quota.ts';

describe('project quota', () => {
  let folder: string;
  let mountPoint: string;
  const oldPath = process.env['PATH'];

  beforeEach(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'quota-'));
    mountPoint = path.join(folder, 'export');
    await mkdir(path.join(mountPoint, 'pvc-1'), { recursive: true });
    const script = `#!/bin/sh\n[ "$1" = -V ] && exit 0\necho "$@" >> ${folder}/calls\n[ -e ${folder}/broken ] && { echo no such project >&2; exit 1; }\nexit 0\n`;
    await mkdir(path.join(folder, 'bin'));
    await writeFile(path.join(folder, 'bin/xfs_quota'), script);
    await chmod(path.join(folder, 'bin/xfs_quota'), 0o755);
    process.env['PATH'] = `${folder}/bin:${oldPath ?? ''}`;
  });
  afterEach(async () => {
    process.env['PATH'] = oldPath;
    await rm(folder, { recursive: true });
  });

  const projects = (): Promise<string> => readFile(path.join(mountPoint, 'projects'), 'utf8');
  const calls = async (): Promise<string[]> => {
    const text = await readFile(path.join(folder, 'calls'), 'utf8').catch(() => '');
    return text.split('\n').filter((line) => line !== '');
  };
  const open = async (mount = `xfs /dev/sdb rw,prjquota`): Promise<ProjectQuota> => {
    const mountInfo = path.join(folder, 'mountinfo');
    const root = '22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n';
    await writeFile(mountInfo, `${root}${mount === '' ? '' : `36 22 8:16 / ${mountPoint} rw shared:1 - ${mount}\n`}`);
    const file = new AtomicFile(path.join(mountPoint, 'projects'));
    return ProjectQuota.open({ mountPoint, file, logger: silentLogger }, mountInfo);
  };

  test('is set by two commands, and stands in a file', async () => {
    const directory = path.join(mountPoint, 'pvc-1');
    const quota = await open();
    const project = await quota.set(directory, 1_048_576n);
    assert.deepEqual(project, { id: 1, block: `\n1:${directory}:1048576\n` });
    assert.equal(await projects(), project.block);
    const expected = [
      `-x -c project -s -p ${directory} 1 ${mountPoint}`,
      `-x -c limit -p bhard=1048576 1 ${mountPoint}`,
    ];
    assert.deepEqual(await calls(), expected);
    await quota.remove(directory);
    await quota.remove(directory);
    assert.equal(await projects(), '');
  });

  test('is set again at a start, and forgotten for directories that are gone', async () => {
    const directory = path.join(mountPoint, 'pvc-1');
    await writeFile(path.join(mountPoint, 'projects'), `\n4:${directory}:99\n\n5:${mountPoint}/gone:99\n`);
    const quota = await open();
    assert.equal(await projects(), `\n4:${directory}:99\n`);
    assert.equal((await calls())[1], `-x -c limit -p bhard=99 4 ${mountPoint}`);
    assert.equal((await quota.set(directory, 100n)).id, 4, 'it keeps its id');
  });

  test('leaves no line behind when the command fails', async () => {
    const quota = await open();
    await writeFile(path.join(folder, 'broken'), '');
    await assert.rejects(quota.set(path.join(mountPoint, 'pvc-1'), 5n), /xfs_quota -x -c .* failed: no such project/);
    assert.equal(await projects(), '');
  });

  for (const { title, mount, message } of [
    { title: 'the directory is no mount point', mount: '', message: /is not a mount point; mount XFS there/ },
    { title: 'it is another file system', mount: 'ext4 /dev/sdb rw', message: /is ext4, not xfs/ },
    { title: 'it is mounted without the option', mount: 'xfs /dev/sdb rw,noquota', message: /without project quota/ },
  ]) {
    test(`refuses to start where ${title}`, async () => {
      await assert.rejects(open(mount), { name: 'UsageError', message });
    });
  }
});
