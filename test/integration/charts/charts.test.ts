/** What both charts promise beside what they render: their pages, their images, their rights, and releases of the originals. */
import assert from 'node:assert/strict';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { V1PolicyRule, V1Role } from '@kubernetes/client-node';
import { load, loadAll } from 'js-yaml';
import { ChartObjects } from '../../support/helm/chart-objects.ts';
import { chartsFolder, type Values } from '../../support/helm/helm.ts';
import { describeWithHelms, helmsForTests } from '../../support/helm/helm-for-tests.ts';
import {
  oldestServerDefaults,
  oldestSubdirDefaults,
  serverDefaults,
  subdirDefaults,
} from '../../support/helm/original-values.ts';

const root = join(import.meta.dirname, '../../..');
const helms = await helmsForTests();

interface Chart {
  name: string;
  manifests: string;
  /** What its install needs. */
  required: Values;
  originals: {
    version: string;
    defaults: Values;
    /** Values by which these defaults differ in more than the image. */
    apart?: Values;
  }[];
  /** What the rights of deploy/ do not have: the original needs it, and an image of it may still be in the values. */
  ofOriginalAlone: string[];
}

const charts: Chart[] = [
  {
    name: 'nfs-subdir-external-provisioner',
    manifests: 'nfs-subdir',
    required: { nfs: { server: 'nfs.example.com' } },
    originals: [
      { version: '4.0.18', defaults: subdirDefaults },
      { version: '4.0.2', defaults: oldestSubdirDefaults },
    ],
    ofOriginalAlone: [
      'ClusterRole nodes get list watch',
      'ClusterRole persistentvolumeclaims update',
      'ClusterRole events update',
      'Role endpoints get list watch create update patch',
    ],
  },
  {
    name: 'nfs-server-provisioner',
    manifests: 'nfs-server',
    required: {},
    originals: [
      { version: '1.8.0', defaults: serverDefaults },
      {
        version: '1.3.1',
        defaults: oldestServerDefaults,
        apart: { securityContext: null, storageClass: { mountOptions: ['vers=3'] } },
      },
    ],
    ofOriginalAlone: [
      'ClusterRole persistentvolumeclaims update',
      'ClusterRole events list watch',
      'ClusterRole services get',
      'ClusterRole endpoints get list watch create delete update patch',
      'ClusterRole podsecuritypolicies.extensions use',
      'ClusterRole securitycontextconstraints.security.openshift.io use',
    ],
  },
];

/** `Kind resource verb`, one for each right. */
function rightsOf(kind: string, rules: readonly V1PolicyRule[]): string[] {
  return rules.flatMap(({ apiGroups = [], resources = [], verbs }) =>
    apiGroups.flatMap((group) =>
      resources.flatMap((resource) =>
        verbs.map((verb) => `${kind} ${group === '' ? resource : `${resource}.${group}`} ${verb}`),
      ),
    ),
  );
}

function rightsIn(objects: readonly unknown[]): string[] {
  return (objects as V1Role[])
    .filter(({ kind }) => kind === 'Role' || kind === 'ClusterRole')
    .flatMap(({ kind = '', rules }) => rightsOf(kind, rules ?? []));
}

/** Paths of the leaves, such as `image.tag`; a map without keys is one. */
function leavesOf(values: Values, prefix = ''): string[] {
  return Object.entries(values).flatMap(([key, value]) => {
    const isBranch = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isBranch && Object.keys(value).length > 0 && key !== 'securityContext'
      ? leavesOf(value as Values, `${prefix}${key}.`)
      : [`${prefix}${key}`];
  });
}

function valueAt(values: Values, path: string): unknown {
  return path.split('.').reduce<unknown>((value, key) => (value as Values | undefined)?.[key], values);
}

for (const { name, manifests, required, originals, ofOriginalAlone } of charts) {
  const chart = join(chartsFolder, name);
  const read = async (file: string): Promise<string> => await readFile(join(chart, file), 'utf8');
  const values = load(await read('values.yaml')) as Values;
  const about = load(await read('Chart.yaml')) as { appVersion: string; version: string };

  describe(`the page of the chart ${name}`, async () => {
    const rows = [...(await read('README.md')).matchAll(/^\| (\+?) +\| `([\w.]+)` +\| (.*?) +\|/gm)];

    test('has each value, in the order of the file', () => {
      assert.deepEqual(
        rows.map(([, , path]) => path),
        leavesOf(values),
      );
    });

    test('has the defaults of the file, or says in words what an empty one means', () => {
      for (const [, , path = '', given = ''] of rows) {
        const value = valueAt(values, path);
        const text = /^`(.*)`$/.exec(given)?.[1];
        if (text === undefined) assert.ok(value === null || path === 'securityContext', `${path}: ${given}`);
        else assert.deepEqual(load(text), value, path);
      }
    });

    test('marks the values that the original does not have', () => {
      const undocumented = ['buildMode', 'fullnameOverride', 'imagePullSecrets', 'nameOverride', 'podSecurityContext'];
      const unset = ['storageClass.provisionerName', 'priorityClassName', 'image.digest', 'persistence.storageClass'];
      const optional = [...undocumented, ...unset, 'persistence.existingClaim', 'service.clusterIP'];
      const [{ defaults } = { defaults: {} }] = originals;
      const isNew = (path: string): boolean =>
        valueAt(defaults, path) === undefined &&
        !/service\..*NodePort$/.test(path) &&
        (!optional.includes(path) || (path === 'image.digest' && manifests === 'nfs-subdir'));
      const marked = rows.filter(([, mark]) => mark === '+').map(([, , path]) => path);
      assert.deepEqual(marked, leavesOf(values).filter(isNew));
    });
  });

  describeWithHelms(helms, `the chart ${name}`, (helm) => {
    let folder: string;
    before(async () => {
      folder = await mkdtemp(join(tmpdir(), 'charts-'));
    });
    after(async () => {
      await rm(folder, { recursive: true, force: true });
    });

    test('has the image of deploy/ and the version of this package', async () => {
      const { images } = load(await readFile(join(root, 'deploy', manifests, 'kustomization.yaml'), 'utf8')) as {
        images: { newName: string; newTag: string }[];
      };
      const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string };
      const { container } = new ChartObjects(await helm.template({ chart, values: required }));
      assert.equal(container.image, `${images[0]?.newName ?? ''}:${images[0]?.newTag ?? ''}`);
      assert.equal(about.appVersion, `v${version}`);
    });

    test('has a version above those of the original', () => {
      const [{ version } = { version: '' }] = originals;
      assert.ok(about.version.localeCompare(version, 'en', { numeric: true }) > 0);
    });

    test('has the rights of deploy/, and those that the original alone needs', async () => {
      const needed = rightsIn(loadAll(await readFile(join(root, 'deploy', manifests, 'rbac.yaml'), 'utf8')));
      const given = rightsIn(await helm.template({ chart, values: required }));
      assert.deepEqual(
        needed.filter((right) => !given.includes(right)),
        [],
      );
      const extra = ofOriginalAlone.flatMap((line) => {
        const [kind = '', resource = '', ...verbs] = line.split(' ');
        return verbs.map((verb) => `${kind} ${resource} ${verb}`);
      });
      const unexplained = given.filter((right) => !needed.includes(right));
      assert.deepEqual([...new Set(unexplained)].sort(), extra.sort());
    });

    for (const { version, defaults, apart } of originals) {
      test(`renders the same objects with the defaults of ${version}, as with --reuse-values, but for the image`, async () => {
        const copy = join(folder, version);
        await cp(chart, copy, { recursive: true });
        await writeFile(join(copy, 'values.yaml'), JSON.stringify(defaults));
        const reused = new ChartObjects(await helm.template({ chart: copy, values: required }));
        const fresh = new ChartObjects(await helm.template({ chart, values: { ...required, ...apart } }));
        const { repository, tag } = defaults['image'] as { repository: string; tag: string };
        assert.equal(reused.container.image, `${repository}:${tag}`);
        fresh.container.image = reused.container.image;
        fresh.container.imagePullPolicy = reused.container.imagePullPolicy ?? '';
        assert.deepEqual(withoutNull(reused.all), withoutNull(fresh.all));
      });
    }

    test('packs into one file that renders alike, with another version and tag', async () => {
      await helm.run(['package', chart, '--destination', folder, '--version', '9.9.9', '--app-version', 'v9.9.9']);
      const packed = new ChartObjects(
        await helm.template({ chart: join(folder, `${name}-9.9.9.tgz`), values: required }),
      );
      assert.match(packed.container.image ?? '', /:v9\.9\.9$/);
      const { names } = new ChartObjects(await helm.template({ chart, values: required }));
      assert.deepEqual(packed.names, names);
    });
  });
}

/** As the API server reads it: null is absent. */
function withoutNull(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value), (_key, each: unknown) => (each === null || each === '' ? undefined : each));
}
