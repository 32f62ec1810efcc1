import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Readable } from 'node:stream';
import { readManifests, type ReadManifests } from '../../../../src/cli/preflight/read-manifests.ts';

const config = (name: string): string => `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ${name}}\n`;

let folder: string;
before(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'manifests-'));
});
after(() => rm(folder, { recursive: true }));

async function read(
  files: Readonly<Record<string, string>>,
  names: string[],
  recursive = false,
): Promise<ReadManifests> {
  const own = await mkdtemp(path.join(folder, 'x'));
  for (const [name, text] of Object.entries(files)) {
    await mkdir(path.dirname(path.join(own, name)), { recursive: true });
    await writeFile(path.join(own, name), text);
  }
  const stdin = Readable.from([Buffer.from(config('input'))]);
  return await readManifests(
    names.map((name) => (name === '-' ? name : path.join(own, name))),
    { recursive, stdin },
  );
}

const namesOf = ({ manifests }: ReadManifests): string[] => manifests.map(({ name }) => name);

describe('manifests are read', () => {
  test('from documents, lists, JSON with tabs and standard input', async () => {
    const files = {
      'a.yaml': `---\n${config('a')}---\n---\n# nothing\n---\n${config('b')}`,
      'list.yaml':
        `apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}\n- null\n`.replace(
          '- null\n',
          '',
        ),
      'roles.json':
        '{\n\t"kind": "RoleList", "apiVersion": "rbac.authorization.k8s.io/v1",\n\t"items": [{"metadata": {"name": "d"}}]}',
    };
    const found = await read(files, ['a.yaml', 'list.yaml', 'roles.json', '-']);
    assert.deepEqual(namesOf(found), ['a', 'b', 'c', 'd', 'input']);
    assert.equal(found.manifests[3]?.kind, 'Role');
    assert.equal(found.manifests[1]?.place.document, 4);
  });

  test('of a Kustomization that a controller renders in the cluster', async () => {
    const text = 'apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: drivers}\n';
    assert.deepEqual(namesOf(await read({ 'a.yaml': text }, ['a.yaml'])), ['drivers']);
  });

  test('from a folder in the order of names, without folders in it', async () => {
    const files = { 'f/b.yml': config('b'), 'f/a.yaml': config('a'), 'f/in/c.yaml': config('c'), 'f/read.md': '# x' };
    assert.deepEqual(namesOf(await read(files, ['f'])), ['a', 'b']);
    assert.deepEqual(namesOf(await read(files, ['f'], true)), ['a', 'b', 'c']);
  });

  test('with merged maps, and brackets that end where kubectl takes them', async () => {
    const text = `${config('a')}data: &x {k: v}\n---\n${config('b')}data:\n  emptyDir: {\n    medium: "Memory"\n  }\nmore:\n  <<: {x: y}\n`;
    assert.deepEqual(namesOf(await read({ 'a.yaml': text }, ['a.yaml'])), ['a', 'b']);
  });

  test('once where a file is named twice, and the later of two of one name counts', async () => {
    const found = await read({ 'a.yaml': config('a'), 'b.yaml': `${config('a')}data: {later: 'yes'}` }, [
      'a.yaml',
      'b.yaml',
      'a.yaml',
    ]);
    assert.deepEqual(namesOf(found), ['a']);
    assert.equal(found.manifests[0]?.fields.has('data'), true);
    assert.match(
      found.notes[0] ?? '',
      /ConfigMap a is in .*a\.yaml, document 1 and in .*b\.yaml, document 1: the latter counts/,
    );
  });

  test('from a folder whose name is quoted in the command that renders it', async () => {
    const found = await read({ "it's; $(reboot)/kustomization.yaml": 'resources: []\n' }, ["it's; $(reboot)"]);
    assert.match(found.notes.join('\n'), /kubectl kustomize '\S+\/it'\\''s; \$\(reboot\)' \|/);
  });

  test('from a folder without what is no object, which is said', async () => {
    const files = {
      'f/a.yaml': config('a'),
      'f/values.yaml': 'image: x\n',
      'f/kustomization.yaml': 'resources: [a.yaml]\n',
    };
    const found = await read(files, ['f']);
    assert.deepEqual(namesOf(found), ['a']);
    assert.match(found.notes.join('\n'), /kubectl kustomize \S+\/f \| csi-provisioner preflight -/);
    assert.match(found.notes.join('\n'), /values\.yaml, document 1 is no Kubernetes object/);
  });
});

describe('what cannot be read is an error that', () => {
  for (const { name, text, says } of [
    {
      name: 'names line and document',
      text: `${config('a')}---\n${config('b')}data: x: y\n`,
      says: /a\.yaml, line 8, document 2: it is neither YAML nor JSON/,
    },
    {
      name: 'names the field and its type',
      text: `${config('a')}---\n${config('b').replace('{name: b}', '{name: 5}')}`,
      says: /document 2 \(ConfigMap\): metadata\.name must be a string, not a number\. Put it in quotes/,
    },
    {
      name: 'says how a chart is rendered',
      text: 'image: {{ .Values.image }}\n',
      says: /helm template NAME CHART \| csi-provisioner preflight -/,
    },
    {
      name: 'says so of a template that happens to be YAML',
      text: `${config('a')}data: {a: "{{ .Values.x }}"}\n`,
      says: /template of a Helm chart/,
    },
    {
      name: 'says how a kustomization is rendered',
      text: 'apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n',
      says: /Render it: kubectl kustomize/,
    },
    {
      name: 'names the field that makes it an object',
      text: 'image: x\n',
      says: /kind is missing, so it is no Kubernetes object/,
    },
    { name: 'says that a text is no map', text: 'hello\n', says: /document 1: it must be a map, not a string/ },
    {
      name: 'says that it is nested too deeply',
      text: `a: ${'['.repeat(200_000)}`,
      says: /neither YAML nor JSON: nesting exceeded|nested too deeply/,
    },
  ]) {
    test(name, async () => {
      await assert.rejects(read({ 'a.yaml': text }, ['a.yaml']), { name: 'ManifestError', message: says });
    });
  }

  test('names a file that is not there, and a folder without manifests', async () => {
    await assert.rejects(read({}, ['none.yaml']), /none\.yaml: there is no such file or folder/);
    await assert.rejects(
      read({ 'f/in/a.yaml': config('a') }, ['f']),
      /no file that ends in .*searched with --recursive/,
    );
  });

  test('names the coding that it must have', async () => {
    const wide = path.join(folder, 'wide.yaml');
    await writeFile(wide, Buffer.from([0xff, 0xfe, 0x61, 0x00]));
    await assert.rejects(readManifests([wide], { recursive: false, stdin: Readable.from([]) }), /not a text in UTF-8/);
  });

  test('does not show what the file holds', async () => {
    for (const text of ['password: hunter2: x\n', 'token: "hunter2\n', 'a: !hunter2 x\n', 'a: *hunter2\n']) {
      await assert.rejects(read({ 'a.yaml': text }, ['a.yaml']), (error: Error) => !error.message.includes('hunter2'));
    }
  });
});
