/** `nfs-provisioner audit` on the sandbox and a real directory, here and there as a process. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { auditExports } from '../../../provisioners/nfs-server/audit-command.ts';
import { exportBlock } from '../../../provisioners/nfs-server/ganesha-config.ts';
import { ExportAudit } from '../../../provisioners/nfs-server/export-audit.ts';
import { leadingFlags, parseFlags } from '../../../provisioners/nfs-server/flags.ts';
import { readSettings } from '../../../provisioners/nfs-server/settings.ts';
import type { StorageFinding } from '../../../provisioners/shared-audit/storage-audit.ts';
import { SubcommandError } from '../../../provisioners/shared-audit/storage-audit-command.ts';
import { Sandbox } from '../../../sandbox/sandbox.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { connect, KubeClient } from '../../../src/index.ts';
import { clusterJournal } from '../../../src/provision/intent-journal/cluster-journal.ts';
import { recordedLogger } from '../../support/fakes/recorded-logger.ts';
import { never, recordOf, silentListener } from '../provision/intent-journal/rig.ts';
import { programFile } from '../../support/program-file.ts';

const provisioner = 'example.com/nfs';
const identity = '6b0f8a52-7a0c-4a36-9a53-0d1c6c1f3a57';
const main = programFile('nfs-provisioner');
const volumes = { group: '', version: 'v1', plural: 'persistentvolumes' };
const claims = { group: '', version: 'v1', plural: 'persistentvolumeclaims' };
const leases = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases' };

interface AuditRun {
  code: number;
  stdout: string;
  stderr: string;
}

interface Report {
  looks: number;
  findings: StorageFinding[];
  incomplete: string[];
  deletions: { volumeId: string; result: string; detail: string }[];
}

describe('the audit of nfs-server', () => {
  let sandbox: Sandbox;
  let root: string;
  let folder: string;
  const api = () => sandbox.api.client('test');
  beforeEach(async () => {
    sandbox = await Sandbox.start({ nodes: 0 });
    folder = await mkdtemp(path.join(tmpdir(), 'nfs-server-audit-'));
    root = path.join(folder, 'export');
    write('nfs-provisioner.identity', identity);
    write('../exports', '');
    write('pvc-own/f');
    createOwn('pvc-own');
  });
  afterEach(async () => {
    await sandbox.close();
    await rm(folder, { recursive: true, force: true });
  });

  const write = (file: string, text = 'data'): void => {
    mkdirSync(path.join(root, path.dirname(file)), { recursive: true });
    writeFileSync(path.join(root, file), text);
  };
  const createVolume = (name: string, spec: object, annotations: Record<string, string> = {}): void => {
    api().create(volumes, {
      metadata: { name, annotations },
      spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteMany'], ...spec },
    });
  };
  const nfs = (directory: string): object => ({ nfs: { server: 'any', path: directory } });
  const createOwn = (name: string, provisionedBy = provisioner): void =>
    createVolume(name, nfs(path.join(root, name)), {
      Provisioner_Id: identity,
      'pv.kubernetes.io/provisioned-by': provisionedBy,
    });
  const exported = (...lines: string[]): void => write('../exports', lines.map((line) => `\n${line}\n`).join(''));
  const line = (name: string, id: number): string => `${root}/${name} *(rw,insecure,no_root_squash,fsid=${id})`;
  const kernel = (): string[] => ['-run-server=false', '-use-ganesha=false', '-exports-file', `${folder}/exports`];

  const runProgram = async (...args: string[]): Promise<AuditRun> => {
    const { promise, resolve } = Promise.withResolvers<AuditRun>();
    execFile(process.execPath, [main, ...args], (error, stdout, stderr) =>
      resolve({ code: Number(error?.code ?? 0), stdout, stderr }),
    );
    return await promise;
  };
  /** As the program, in this process. */
  const run = async (...args: string[]): Promise<AuditRun> => {
    let [stdout, stderr] = ['', ''];
    const { flags, rest } = leadingFlags(args)!;
    const call = {
      program: 'nfs-provisioner audit',
      args: rest.slice(1),
      environment: {},
      stdin: Object.assign(new PassThrough(), { isTTY: false }),
      stdout: { write: (text: string) => (stdout += text) },
      stderr: { write: (text: string) => (stderr += text) },
      signal: never,
    };
    const code = await auditExports(call, readSettings(flags, {})).catch((error: unknown) => {
      if (!(error instanceof SubcommandError)) throw error;
      stderr += error.message;
      return error.exitCode;
    });
    return { code, stdout, stderr };
  };
  const flags = (): string[] => [`-export-dir=${root}`, `-kubeconfig=${sandbox.kubeconfig}`];
  const audit = (...args: string[]) => run(...flags(), ...kernel(), 'audit', '--second-look=1ms', ...args);
  const read = ({ code, stdout, stderr }: AuditRun): Report & { code: number } => {
    assert.notEqual(stdout, '', stderr);
    return { ...(JSON.parse(stdout) as Report), code };
  };
  const report = async (...args: string[]) => read(await audit('-o', 'json', ...args));
  const found = (findings: readonly StorageFinding[]) => findings.map(({ state, id }) => `${state} ${id}`).sort();

  /** A journal that has a record of a volume. */
  const record = async (volumeName: string, { lockName = 'example-com-nfs', of = provisioner } = {}): Promise<void> => {
    await using transport = connect({ kubeconfig: sandbox.kubeconfig });
    const journal = clusterJournal({
      client: new KubeClient({ transport, fieldManager: 'test' }),
      namespace: 'default',
      lockName,
      isKnownProvisioner: () => true,
      exclusive: true,
      clock: systemClock,
      logger: recordedLogger([]),
    });
    await journal.open(silentListener, never);
    const plain = recordOf(1);
    await journal.put(
      { ...plain, volume: { ...plain.volume, provisioner: of }, plan: { volumeName, identity } },
      never,
    );
  };

  test('finds directories without a volume, volumes without a directory, and exports without either', async () => {
    write('pvc-orphan/f', 'x'.repeat(100_000));
    for (const file of ['pvc-retained/f', 'pvc-of-others/f', 'v4recov/f', 'pvc-file']) write(file);
    symlinkSync('/etc', path.join(root, 'pvc-link'));
    createOwn('pvc-lost');
    createVolume('static', nfs(`${root}/pvc-of-others/part/`));
    exported(
      line('pvc-own', 1),
      line('pvc-lost', 2),
      line('pvc-retained', 3),
      line('pvc-gone', 4),
      '/srv/others *(ro,fsid=9)',
    );
    const { findings, looks, code } = await report();
    assert.deepEqual(found(findings), [
      'export export-2',
      'export export-3',
      'export export-4',
      'lost pvc-lost',
      'unclaimed pvc-orphan',
      'unclaimed pvc-retained',
    ]);
    assert.equal(looks, 2);
    assert.equal(code, 2);
    const byId = (id: string) => findings.find((each) => each.id === id);
    assert.ok(
      (byId('pvc-orphan')?.bytes ?? 0) >= 100_000 && !Number.isNaN(Date.parse(byId('pvc-orphan')?.since ?? '')),
    );
    assert.match(
      byId('export-2')?.detail ?? '',
      /pvc-lost: the directory does not exist; not deletable: PersistentVolume pvc-lost has it/,
    );
    assert.match(byId('export-3')?.detail ?? '', /pvc-retained: no PersistentVolume has it$/);
    assert.match(byId('export-4')?.detail ?? '', /the directory does not exist, and no PersistentVolume has it$/);
    assert.deepEqual(
      findings.filter(({ isDeletable }) => isDeletable).map(({ id }) => id),
      ['pvc-orphan', 'export-3', 'export-4'],
    );
    const program = await runProgram(...flags(), ...kernel(), 'audit', '--second-look=1ms');
    assert.equal(program.code, 2);
    const { stdout } = program;
    assert.match(stdout, /^unclaimed +pvc-orphan +- +20\d\d-.*\n/m);
    assert.match(stdout, /needs? attention: 6 \(.*two looks\)\.\n$/);
  });

  test('of an export directory on which all is well ends with 0', async () => {
    exported(line('pvc-own', 1));
    const { code, findings } = await report();
    assert.deepEqual([code, findings], [0, []]);
  });

  test('deletes one directory that is named, and nothing else', async () => {
    for (const file of ['pvc-orphan/deep/f', 'pvc-other/f']) write(file);
    const { deletions } = await report('--yes', '--delete', 'pvc-orphan');
    assert.deepEqual(deletions, [{ volumeId: 'pvc-orphan', result: 'deleted', detail: 'the directory is removed' }]);
    const left = ['nfs-provisioner.identity', 'pvc-other', 'pvc-own'];
    assert.deepEqual(readdirSync(root).sort(), left);
  });

  test('deletes nothing without a question or --yes', async () => {
    write('pvc-orphan/f');
    const { code, stderr } = await runProgram(...flags(), ...kernel(), 'audit', '--delete', 'pvc-orphan');
    assert.equal(code, 1);
    assert.match(stderr, /--delete cannot ask for confirmation without a terminal: add --yes/);
    assert.ok(existsSync(path.join(root, 'pvc-orphan/f')));
  });

  for (const id of [
    'pvc-own',
    'pvc-own/f',
    '..',
    '',
    'lost+found',
    'pvc-link',
    'export-1',
    'export-9',
    'pvc-orphan/..',
  ]) {
    test(`refuses to delete what is not a stray directory of a volume: ${JSON.stringify(id)}`, async () => {
      for (const file of ['pvc-orphan/f', 'lost+found/f', '../elsewhere/f']) write(file);
      symlinkSync(path.join(folder, 'elsewhere'), path.join(root, 'pvc-link'));
      exported(line('pvc-own', 1), '/srv/others *(ro,fsid=9)');
      const { code, deletions } = await report('--yes', `--delete=${id}`);
      assert.equal(deletions[0]?.result, 'refused');
      assert.equal(code, 1);
      for (const file of ['pvc-own/f', 'pvc-orphan/f', 'lost+found/f', '../elsewhere/f', 'pvc-link']) {
        assert.ok(existsSync(path.join(root, file)), file);
      }
    });
  }

  /** Expects that the directory of a volume stays. */
  const refuses = async (why: RegExp): Promise<void> => {
    const { code, deletions, findings } = await report('--yes', '--delete', 'pvc-x');
    assert.equal(deletions[0]?.result, 'refused');
    const detail = findings.find(({ id }) => id === 'pvc-x')?.detail ?? deletions[0].detail;
    assert.match(detail, why);
    assert.equal(code, 1);
    assert.ok(existsSync(path.join(root, 'pvc-x/f')));
  };
  const inDriver = (attributes: Record<string, string>, driver = 'nfs.csi.k8s.io') => ({
    csi: { driver, volumeHandle: 'any', volumeAttributes: attributes },
  });

  describe('keeps a directory', () => {
    beforeEach(() => write('pvc-x/f'));

    for (const [what, spec] of Object.entries<() => object>({
      'of a static PersistentVolume': () => nfs(`${root}/pvc-x`),
      'of a PersistentVolume with a slash at its end': () => nfs(`${root}/pvc-x/`),
      'a part of which a PersistentVolume has': () => nfs(`${root}/pvc-x/part/of/it`),
      'that a PersistentVolume has by a detour': () => nfs(`${root}/pvc-own/../pvc-x`),
      'of the CSI driver for NFS': () => inDriver({ server: 's', share: root, subDir: 'pvc-x/part' }),
      'that the attributes of another driver name': () => inDriver({ export: `s:${root}/pvc-x` }, 'other.example.com'),
    })) {
      test(what, async () => {
        createVolume('static', spec());
        await refuses(/^the audit found nothing with this id/);
      });
    }

    test('of a PersistentVolume that has its name alone', async () => {
      createVolume('pvc-x', nfs('/elsewhere'));
      await refuses(/^the audit found nothing with this id/);
    });

    for (const above of ['', '/', '/..']) {
      test(`when a PersistentVolume has what lies above it: ${JSON.stringify(above)}`, async () => {
        createVolume('static', nfs(`${root}${above}`));
        await refuses(/PersistentVolume static has a directory above it/);
      });
    }

    test('of a claim that exists', async () => {
      api().create(claims, {
        metadata: { namespace: 'default', name: 'data' },
        spec: { accessModes: ['ReadWriteMany'], resources: { requests: { storage: '1Gi' } } },
      });
      const { metadata } = api().get(claims, { namespace: 'default', name: 'data' }) as { metadata: { uid: string } };
      rmSync(path.join(root, 'pvc-x'), { recursive: true });
      write(`pvc-${metadata.uid}/f`);
      const { deletions, findings } = await report('--yes', '--delete', `pvc-${metadata.uid}`);
      assert.equal(deletions[0]?.result, 'refused');
      assert.match(
        findings[0]?.detail ?? '',
        /the directory of the claim default\/data, which exists: delete that first/,
      );
      assert.ok(existsSync(path.join(root, `pvc-${metadata.uid}/f`)));
    });

    test('that is exported, or that the file of the server names', async () => {
      exported(line('pvc-x', 3));
      await refuses(/it is exported\. Remove the export first: --delete export-3/);
      exported(`"${root}/pvc-x/part" 10.0.0.0/8(rw)`);
      await refuses(/exports names it\. Remove it from .*, and restart the provisioner/);
    });

    test('while the file of the server is missing', async () => {
      rmSync(path.join(folder, 'exports'));
      await refuses(/not everything is known: the exports: .*exports does not exist/);
    });

    test('that the journal names', async () => {
      await record('pvc-x');
      await refuses(/^the audit found nothing with this id/);
    });

    test('that a journal without election names, of a name that the provisioner has had', async () => {
      createOwn('pvc-also', 'nfs.v2/Store');
      write('pvc-also/f');
      await record('pvc-x', { lockName: 'nfs-v2-store', of: 'nfs.v2/Store' });
      await refuses(/^the audit found nothing with this id/);
    });

    test('while the journal cannot be read', async () => {
      await record('pvc-y');
      const name = { namespace: 'default', name: 'example-com-nfs-journal-0' };
      const lease = api().get(leases, name)!;
      const annotations = { ...lease.metadata.annotations, 'csi-provisioner.journal/edited': '{}' };
      api().update(leases, { ...lease, metadata: { ...lease.metadata, annotations } });
      await refuses(/not everything is known: the journal cannot be read/);
    });

    test('where no PersistentVolume of the cluster has the identity of the directory', async () => {
      write('nfs-provisioner.identity', 'another');
      await refuses(/no PersistentVolume has the identity another .*this may be another cluster/);
    });

    test('while ganesha cannot be asked for its exports', async () => {
      write('vfs.conf', exportBlock({ id: 1, path: `${root}/pvc-own`, squash: 'no_root_squash' }));
      const socket = `-dbus-socket=${folder}/no-bus`;
      const args = ['audit', '--second-look=0', '-o', 'json', '--yes', '--delete', 'pvc-x'];
      const { findings, deletions, incomplete, code } = read(await run(...flags(), socket, ...args));
      assert.equal(deletions[0]?.result, 'refused');
      assert.match(findings[0]?.detail ?? '', /not everything is known: what ganesha exports: it does not respond/);
      assert.match(incomplete[0] ?? '', /does not respond .*Run the audit in the Pod of the provisioner/);
      assert.equal(code, 1);
      assert.ok(existsSync(path.join(root, 'pvc-x/f')));
    });
  });

  describe('directly before it deletes', () => {
    let connection: ReturnType<typeof connect>;
    let storage: ExportAudit;
    let finding: StorageFinding;
    beforeEach(async () => {
      write('pvc-x/f');
      connection = connect({ kubeconfig: sandbox.kubeconfig });
      const settings = readSettings(parseFlags([...flags(), ...kernel()])!, {});
      storage = new ExportAudit({ settings, client: new KubeClient({ transport: connection, fieldManager: 'test' }) });
      [finding] = (await storage.look(never)).findings as [StorageFinding];
      assert.deepEqual([finding.id, finding.isDeletable], ['pvc-x', true]);
    });
    afterEach(() => connection[Symbol.asyncDispose]());

    const refusesNow = async (why: RegExp): Promise<void> => {
      await assert.rejects(storage.delete(finding, never), { name: 'NotDeletableError', message: why });
      assert.ok(existsSync(path.join(root, 'pvc-x/f')));
    };

    test('keeps what a PersistentVolume has meanwhile', async () => {
      createVolume('static', nfs(`${root}/pvc-x/part`));
      await refusesNow(/PersistentVolume static has it or a part of it/);
    });

    test('keeps what the journal names meanwhile', async () => {
      await record('pvc-x');
      await refusesNow(/the journal has a record of the volume/);
    });

    test('keeps what is exported meanwhile', async () => {
      exported(line('pvc-x', 4));
      await refusesNow(/it is exported/);
    });

    test('follows no symbolic link that stands there meanwhile', async () => {
      write('../elsewhere/f');
      rmSync(path.join(root, 'pvc-x'), { recursive: true });
      symlinkSync(path.join(folder, 'elsewhere'), path.join(root, 'pvc-x'));
      await refusesNow(/a symbolic link/);
    });

    test('takes no id but the name of a directory of a volume', async () => {
      for (const id of ['..', '.', '', 'nfs-provisioner.identity', 'pvc-x/..', '../elsewhere']) {
        const given = storage.delete({ ...finding, id }, never);
        await assert.rejects(given, { name: 'NotDeletableError', message: /it is not a directory pvc-/ }, id);
      }
      assert.deepEqual(readdirSync(root).sort(), ['nfs-provisioner.identity', 'pvc-own', 'pvc-x']);
    });
  });

  test('finds blocks of the configuration of ganesha, and says that it does not answer', async () => {
    const block = (id: number, name: string) => exportBlock({ id, path: `${root}/${name}`, squash: 'no_root_squash' });
    write('vfs.conf', block(1, 'pvc-own') + block(5, 'pvc-gone'));
    const args = ['audit', '--second-look=0', '-o', 'json'];
    const { findings, incomplete, code } = read(await run(...flags(), `-dbus-socket=${folder}/no-bus`, ...args));
    assert.deepEqual(found(findings), ['export export-5']);
    assert.equal(incomplete.length, 1);
    assert.equal(code, 2);
  });

  test('concludes nothing from a directory that is not that of the volumes', async () => {
    rmSync(path.join(root, 'nfs-provisioner.identity'));
    const { code, stdout, stderr } = await runProgram(...flags(), ...kernel(), 'audit');
    assert.equal(stdout, '');
    assert.equal(code, 3);
    assert.match(stderr, /nfs-provisioner\.identity does not exist or is empty: .* is not the export directory/);
    assert.ok(!existsSync(path.join(root, 'nfs-provisioner.identity')), 'and gives it none');
  });

  test('ends with 1 for flags that cannot be used', async () => {
    assert.equal((await runProgram('-export-dir=relative', 'audit')).code, 1);
    assert.equal((await runProgram('-no-such-flag', 'audit')).code, 1);
  });
});
