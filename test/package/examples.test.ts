/** The example provisioner, started as somebody would start it, on the sandbox. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import type { SandboxObject } from '../../sandbox/api/client.ts';
import { Sandbox } from '../../sandbox/sandbox.ts';
import { eventMessage, type RecordedEvent } from '../support/event-message.ts';
import { eventually } from '../support/eventually.ts';
import { type Example, exampleFolder, installExample } from '../support/example-process.ts';
import type { StartedProcess } from '../support/started-process.ts';

const provisioner = 'hostpath.example.com';
const claims = { group: '', version: 'v1', plural: 'persistentvolumeclaims' };
const volumes = { group: '', version: 'v1', plural: 'persistentvolumes' };
const classes = { group: 'storage.k8s.io', version: 'v1', plural: 'storageclasses' };
const events = { group: '', version: 'v1', plural: 'events' };

interface Claim extends SandboxObject {
  spec: { volumeName?: string };
  status?: { phase?: string };
}

describe('docs/write-a-provisioner.md', () => {
  const read = (...names: string[]): Promise<string> => readFile(path.join(exampleFolder, ...names), 'utf8');
  /** The fenced blocks of a language, each without its indentation. */
  const blocks = async (language: string): Promise<string[]> => {
    const text = await readFile(path.join(exampleFolder, '../../docs/write-a-provisioner.md'), 'utf8');
    const found = [...text.matchAll(/^```(\w+)\n(.*?)^```$/gms)];
    return found.filter(([, name]) => name === language).map(([, , body = '']) => unindented(body));
  };
  const unindented = (text: string): string => text.replaceAll(/^ +/gm, '').trim();

  test('shows the code of the example as it is', async () => {
    const sources = await Promise.all(['main.ts', 'replicated.ts', 'images.ts'].map((name) => read(name)));
    const shown = await blocks('ts');
    assert.ok(shown.length > 5);
    assert.equal(shown[0], unindented(sources[0] ?? ''), 'first of all the whole program');
    for (const block of shown) assert.ok(sources.map(unindented).join('\n').includes(block), block);
  });

  test('applies the manifests of the example', async () => {
    const manifests = `${await read('storageclass.yaml')}---\n${await read('claim.yaml')}`;
    const shell = await blocks('sh');
    assert.ok(shell.some((block) => block.includes(unindented(manifests))));
  });
});

describe('provisioners/hostpath-provisioner', () => {
  let sandbox: Sandbox;
  let example: Example;
  let program: StartedProcess;
  let serial = 0;

  const api = () => sandbox.api.client('test');
  const start = async (file: string): Promise<void> => {
    program = await example.start(file, { kubeconfig: sandbox.kubeconfig, env: { METRICS_PORT: '0' } });
  };
  const watched = <T>(check: () => T): Promise<T> =>
    eventually(check, {
      hopeless: () => (program.running() ? undefined : `the program has ended:\n${program.log()}`),
    });
  const createClass = (parameters: Record<string, string> = {}): string => {
    const name = `class-${++serial}`;
    api().create(classes, { metadata: { name }, provisioner, parameters });
    return name;
  };
  const createClaim = (storageClassName: string, spec: object = {}): { name: string; uid: string } => {
    const { metadata } = api().create(claims, {
      metadata: { name: `claim-${++serial}`, namespace: 'default' },
      spec: {
        storageClassName,
        accessModes: ['ReadWriteOnce'],
        resources: { requests: { storage: '1Mi' } },
        ...spec,
      },
    });
    return { name: metadata.name, uid: metadata.uid ?? '' };
  };
  const deleteClaim = (name: string): void => {
    api().delete(claims, { namespace: 'default', name });
  };
  const bound = (name: string): Promise<string> =>
    watched(() => {
      const claim = api().get(claims, { namespace: 'default', name }) as unknown as Claim;
      assert.equal(claim.status?.phase, 'Bound');
      return claim.spec.volumeName ?? '';
    });
  const gone = (volumeName: string): Promise<void> =>
    watched(() => assert.equal(api().get(volumes, { name: volumeName }), undefined));
  const message = (uid: string, reason: string): Promise<string> => watched(() => eventMessage(api(), uid, reason));
  const changeVolume = (name: string, change: (volume: SandboxObject) => void): void => {
    const volume = structuredClone(api().get(volumes, { name }));
    assert.ok(volume);
    change(volume);
    api().update(volumes, volume);
  };
  const folderOf = (volumeName: string): string => path.join(example.volumes, volumeName);

  before(async () => {
    sandbox = await Sandbox.start({ nodes: 0 });
    example = await installExample();
  });
  after(async () => {
    await example[Symbol.asyncDispose]();
    await sandbox.close();
  });

  describe('main.ts', () => {
    before(() => start('main.ts'));
    after(() => program.stop());

    test('finds what an earlier attempt made, and leaves what is in it', async () => {
      await program.stop();
      const { name, uid } = createClaim(createClass());
      const file = path.join(folderOf(`pvc-${uid}`), 'data');
      await mkdir(path.dirname(file));
      await writeFile(file, 'kept');
      await start('main.ts');
      assert.equal(await bound(name), `pvc-${uid}`);
      assert.equal(await readFile(file, 'utf8'), 'kept');
    });

    test('deletes a volume whose folder is gone already', async () => {
      const { name } = createClaim(createClass());
      const volume = await bound(name);
      await rm(folderOf(volume), { recursive: true });
      deleteClaim(name);
      await gone(volume);
    });

    test('tells why a claim with a selector gets no volume', async () => {
      const { name, uid } = createClaim(createClass(), { selector: { matchLabels: { a: 'b' } } });
      assert.equal(await message(uid, 'ProvisioningFailed'), 'a claim with a selector is not served');
      assert.equal(existsSync(folderOf(`pvc-${uid}`)), false);
      deleteClaim(name);
    });

    test('refuses block devices', async () => {
      const { name, uid } = createClaim(createClass(), { volumeMode: 'Block' });
      const text = `${provisioner} does not support block volume provisioning`;
      assert.equal(await message(uid, 'ProvisioningFailed'), text);
      deleteClaim(name);
    });

    test('ends with code 0 when it is told to', async () => {
      await watched(() => assert.match(program.log(), /Started provisioner controller/));
      await program.stop('SIGTERM');
      assert.equal(await program.ending(), 'exit code 0');
    });
  });

  test('its own test passes on the sandbox', async () => {
    const { NODE_TEST_CONTEXT: _outer, ...env } = process.env;
    const { stdout } = await promisify(execFile)(process.execPath, ['--test', '--test-reporter=tap'], {
      cwd: example.folder,
      env,
    });
    assert.match(stdout, /^# pass 9$/m);
    assert.match(stdout, /^# fail 0$/m);
  });

  describe('replicated.ts', () => {
    before(() => start('replicated.ts'));
    after(() => program.stop());

    test('calls a class with a wrong parameter infeasible', async () => {
      const { name, uid } = createClaim(createClass({ mode: 'rwx' }));
      assert.match(await message(uid, 'ProvisioningFailed'), /infeasible.*: mode "rwx" is not like 755$/);
      deleteClaim(name);
    });

    test('gives no more than is free', async () => {
      const { name, uid } = createClaim(createClass(), { resources: { requests: { storage: '7Ei' } } });
      assert.match(await message(uid, 'ProvisioningFailed'), /bytes are more than are free$/);
      assert.equal(existsSync(folderOf(`pvc-${uid}`)), false);
      deleteClaim(name);
    });

    test('keeps the storage of a guarded volume until the guard goes', async () => {
      const { name } = createClaim(createClass());
      const volume = await bound(name);
      changeVolume(volume, ({ metadata }) => {
        metadata.annotations = { ...metadata.annotations, 'example.com/keep': 'true' };
      });
      deleteClaim(name);
      await watched(() => {
        const { status } = api().get(volumes, { name: volume }) as unknown as Claim;
        assert.equal(status?.phase, 'Released');
      });
      // a volume released later is deleted: the guarded one has had its turn by then
      const later = createClaim(createClass());
      const laterVolume = await bound(later.name);
      deleteClaim(later.name);
      await gone(laterVolume);
      assert.ok(existsSync(folderOf(volume)));
      changeVolume(volume, ({ metadata }) => {
        delete metadata.annotations?.['example.com/keep'];
      });
      await gone(volume);
      assert.equal(existsSync(folderOf(volume)), false);
    });

    test('leaves a volume alone that lies elsewhere', async () => {
      const name = 'foreign';
      const created = api().create(volumes, {
        metadata: { name, annotations: { 'pv.kubernetes.io/provisioned-by': provisioner } },
        spec: {
          capacity: { storage: '1Mi' },
          accessModes: ['ReadWriteOnce'],
          persistentVolumeReclaimPolicy: 'Delete',
          hostPath: { path: '/somewhere/else' },
        },
      });
      api().updateStatus(volumes, { ...structuredClone(created), status: { phase: 'Released' } });
      const { name: claim } = createClaim(createClass());
      const volume = await bound(claim);
      deleteClaim(claim);
      await gone(volume);
      assert.ok(api().get(volumes, { name }), 'it had its turn before the other');
      const about = (api().list(events) as unknown as RecordedEvent[]).filter(
        ({ involvedObject }) => involvedObject.uid === created.metadata.uid,
      );
      assert.deepEqual(about, []);
      api().delete(volumes, { name });
    });
  });

  describe('images.ts', () => {
    before(async () => {
      await rm(example.volumes, { recursive: true, force: true }); // it creates the folder itself
      await start('images.ts');
    });
    after(() => program.stop());

    const sizeOf = async (volume: string): Promise<number> => (await stat(`${folderOf(volume)}.img`)).size;

    test('makes an image of the size that the claim requests, and at least of that of the class', async () => {
      for (const [minimumSize, size] of [
        ['64Ki', 2 ** 20],
        ['3Mi', 3 * 2 ** 20],
      ] as const) {
        const { name } = createClaim(createClass({ minimumSize }));
        const volume = await bound(name);
        assert.equal(await sizeOf(volume), size);
        const { spec } = api().get(volumes, { name: volume }) as SandboxObject & { spec: { capacity: object } };
        assert.deepEqual(spec.capacity, { storage: `${size / 2 ** 20}Mi` });
        deleteClaim(name);
        await gone(volume);
        assert.equal(existsSync(`${folderOf(volume)}.img`), false);
      }
    });

    test('says which parameter of the class is wrong', async () => {
      const { name, uid } = createClaim(createClass({ minimumSize: 'much' }));
      assert.match(await message(uid, 'ProvisioningFailed'), /minimumSize.*"much"/);
      deleteClaim(name);
    });

    test('removes an image whose volume was never saved once the claim is gone', async () => {
      const match = { verb: 'create', resource: 'persistentvolumes' };
      const fault = sandbox.api.faults.add({ match, action: { type: 'status', code: 422, reason: 'Invalid' } });
      const { name, uid } = createClaim(createClass());
      assert.match(await message(uid, 'ProvisioningFailed'), /The volume is kept at the storage/);
      assert.equal(await sizeOf(`pvc-${uid}`), 2 ** 20);
      deleteClaim(name);
      await watched(() => assert.equal(existsSync(`${folderOf(`pvc-${uid}`)}.img`), false));
      fault.remove();
    });
  });
});
