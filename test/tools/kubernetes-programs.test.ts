import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { builtPrograms, findPrograms, kubernetesVersion, programNames } from '../support/control-plane/programs.ts';

describe('the programs of a control plane', () => {
  let cache: string;
  beforeEach(async () => {
    cache = await mkdtemp(join(tmpdir(), 'programs-'));
  });
  afterEach(() => rm(cache, { recursive: true }));

  const fill = async (folder: string, names: readonly string[] = programNames): Promise<string> => {
    await mkdir(folder, { recursive: true });
    for (const name of names) {
      await writeFile(join(folder, name), '');
      await chmod(join(folder, name), 0o755);
    }
    return folder;
  };

  test('of each version are in a folder of their own', async () => {
    const env = { XDG_CACHE_HOME: cache };
    const today = await fill(join(cache, 'kube-bin', await kubernetesVersion()));
    const older = await fill(join(cache, 'kube-bin', '1.32.0'));
    assert.equal(await findPrograms({ env }), today);
    assert.equal(await findPrograms({ env, minor: '1.32' }), older);
  });

  test('of a folder that is given are taken where no version is asked for', async () => {
    const given = await fill(join(cache, 'given'));
    const older = await fill(join(cache, 'kube-bin', '1.32.0'));
    const env = { XDG_CACHE_HOME: cache, KUBE_BIN_DIR: given };
    assert.equal(await findPrograms({ env }), given);
    assert.equal(await findPrograms({ env, minor: '1.32' }), older);
  });

  test('count as missing while one of them is', async () => {
    const env = { XDG_CACHE_HOME: cache };
    await fill(join(cache, 'kube-bin', '1.32.0'), programNames.slice(1));
    assert.equal(await builtPrograms({ env, minor: '1.32' }), undefined);
  });

  test('of a version that nobody pinned are an error that names those there are', async () => {
    const minor = (await kubernetesVersion()).replace(/\.\d+$/, '');
    assert.equal(await kubernetesVersion(minor), await kubernetesVersion());
    const error = await kubernetesVersion('1.5').catch((reason: unknown) => reason);
    assert.ok(error instanceof Error);
    const [, names = ''] =
      /^Kubernetes 1\.5 has no \.mod file in test\/support\/control-plane; there are (.+)$/.exec(error.message) ?? [];
    const known = names.split(', ');
    assert.ok(known.includes('1.32') && known.at(-1) === minor, error.message);
    for (const each of known) assert.match(await kubernetesVersion(each), new RegExp(`^${each}\\.\\d+$`));
  });
});
