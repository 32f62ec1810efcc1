/** docs/sandbox.md is what csi-sandbox does: its flags, its example of a test, its versions. */
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, test } from 'node:test';
import { clusterUsage } from '../../sandbox/cluster/cluster-flags.ts';
import { classNames } from '../../sandbox/cluster/register-driver.ts';
import { findKubectl } from '../support/kubectl.ts';
import { SandboxProgram } from './cluster/sandbox-program.ts';
import { HostpathHere } from './hostpath/hostpath-process.ts';

const root = path.join(import.meta.dirname, '../..');
const page = await readFile(path.join(root, 'docs/sandbox.md'), 'utf8');
const kubectl = await findKubectl();

describe('docs/sandbox.md', () => {
  test('names only flags that there are', () => {
    const flags = new Set([...clusterUsage.matchAll(/^ {2}(--[a-z-]+)/gm)].map(([, flag]) => flag));
    const [, own = ''] = /lists the flags: (.*?)\n\n/s.exec(page) ?? [];
    const named = [...own.matchAll(/`(--[a-z-]+)`/g)].map(([, flag]) => flag);
    assert.ok(named.length > 8, String(named.length));
    assert.deepEqual(
      named.filter((flag) => !flags.has(flag)),
      [],
    );
  });

  test('names the classes that are made, and the pinned csi-sanity', async () => {
    for (const name of Object.values(classNames)) assert.ok(page.includes(`StorageClass \`${name}\``), name);
    const pinned = await readFile(path.join(root, 'test/sandbox/csi-sanity/go.mod'), 'utf8');
    const version = /csi-test\/v5 (v\S+)/.exec(pinned)?.[1];
    assert.ok(page.includes(`csi-sanity@${version}`), version);
  });

  const options = { skip: kubectl === undefined ? 'no kubectl in KUBE_BIN_DIR or the kube-bin cache folder' : false };
  test('its test.sh passes as a test in CI runs it, with a driver of its own and --rbac', options, async (t) => {
    const folder = await mkdtemp(path.join(tmpdir(), 'page-'));
    t.after(() => rm(folder, { recursive: true, force: true }));
    const script = /```sh\n(set -eu\n.*?)```/s.exec(page)?.[1] ?? 'exit 1';
    const path_ = `PATH="${path.dirname(kubectl ?? '')}:$PATH"\n`;
    await writeFile(path.join(folder, 'test.sh'), path_ + script);
    const home = path.join(folder, 'driver');
    await using driver = await HostpathHere.start({ home, flags: ['--driver-name=my.driver.example'] });
    await using program = SandboxProgram.start(
      `--csi-address=${home}/csi.sock`,
      '--rbac',
      '--',
      'sh',
      `${folder}/test.sh`,
    );
    assert.equal(await program.end(), 'exit code 0', program.output);
    const methods = (await driver.calls()).map(({ method }) => method);
    assert.ok(methods.includes('CreateVolume') && methods.includes('DeleteVolume'));
  });
});
