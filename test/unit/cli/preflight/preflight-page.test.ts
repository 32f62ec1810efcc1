/** Findings and rights against docs/preflight.md, docs/scale.md, and the permissions of deploy/, with which the end-to-end tests run. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { neededRights, type RightsFeature, rightsFeatures } from '../../../../src/cli/preflight/needed-rights.ts';
import { findingNames } from '../../../../src/cli/preflight/preflight-finding.ts';
import { parseDocuments } from '../../../../src/cli/preflight/read-manifests.ts';
import { programInImage } from '../../../../src/cli/program.ts';

const root = path.join(import.meta.dirname, '../../../..');
const read = (name: string): string => readFileSync(path.join(root, name), 'utf8');
const page = read('docs/preflight.md');

/** The first cells of the rows of a section, without their quotes. */
function rowsOf(heading: string): string[] {
  const section = page.split(/^## /m).find((text) => text.startsWith(`${heading}\n`)) ?? '';
  return [...section.matchAll(/^\| `([a-z][a-z-]+)` +\|/gm)].map(([, name = '']) => name);
}

test('docs/preflight.md has a row for each finding, and no other', () => {
  assert.deepEqual(rowsOf('Findings').toSorted(), [...findingNames].toSorted());
});

test('docs/preflight.md has a row for each feature that needs rights, and no other', () => {
  assert.deepEqual(rowsOf('Rights').toSorted(), [...rightsFeatures].toSorted());
});

interface Role {
  kind: string;
  rules?: { apiGroups: string[]; resources: string[]; verbs: string[] }[];
}

/** Such as `get persistentvolumes.`, sorted. */
function grantedIn(...files: string[]): string[] {
  const roles = files.flatMap((file) => parseDocuments(read(`deploy/${file}/rbac.yaml`), file) as Role[]);
  return unique(
    roles.flatMap(({ rules = [] }) =>
      rules.flatMap(({ apiGroups, resources, verbs }) =>
        verbs.flatMap((verb) => resources.flatMap((plural) => apiGroups.map((group) => `${verb} ${plural}.${group}`))),
      ),
    ),
  );
}

function neededFor(...features: RightsFeature[]): string[] {
  const needed = neededRights.filter(({ feature }) => features.includes(feature));
  return unique(
    needed.flatMap(({ resource: { plural, group }, verbs }) => verbs.map((verb) => `${verb} ${plural}.${group}`)),
  );
}

function unique(texts: readonly string[]): string[] {
  return [...new Set(texts)].toSorted();
}

describe('the rights that are checked', () => {
  const base: RightsFeature[] = ['provisioning', 'events', 'journal', 'clones'];
  for (const { name, files, features } of [
    { name: 'by default', files: ['base'], features: base },
    {
      name: 'for leader election',
      files: ['base', 'components/leader-election'],
      features: [...base, 'leader-election'],
    },
    { name: 'for topology', files: ['components/topology'], features: ['topology'] },
    { name: 'for storage capacity', files: ['components/capacity'], features: ['capacity'] },
    { name: 'for snapshots', files: ['components/snapshots'], features: ['snapshots', 'snapshot-protection'] },
    { name: 'for attributes classes', files: ['components/attributes-classes'], features: ['attributes-classes'] },
    { name: 'for secrets', files: ['components/secrets'], features: ['secrets'] },
  ] as { name: string; files: string[]; features: RightsFeature[] }[]) {
    test(`${name} are those that the manifests grant`, () => {
      assert.deepEqual(neededFor(...features), grantedIn(...files));
    });
  }

  for (const { feature, file } of [
    { feature: 'attachments', file: 'components/attachments' },
    { feature: 'cross-namespace-sources', file: 'components/cross-namespace-sources' },
  ] as const) {
    test(`for ${feature} are among those that the manifests grant`, () => {
      const granted = grantedIn(file);
      for (const right of neededFor(feature)) assert.ok(granted.includes(right), right);
    });
  }
});

test('the program in the image is what the Dockerfile starts', () => {
  const [last = ''] = read('Dockerfile').trimEnd().split('\n').slice(-1);
  const entryPoint = JSON.parse(last.replace(/^ENTRYPOINT /, '')) as string[];
  for (const word of programInImage) assert.ok(entryPoint.includes(word), word);
});

test('a memory limit that leaves room for some volumes is above what was measured with them', () => {
  const rows = [...read('docs/scale.md').matchAll(/^\| ([\d,]+) +\|[^|]*\|[^|]*\| (\d+) MB +\|/gm)];
  assert.equal(rows.length, 4);
  for (const [, pairs = '', peakMb = ''] of rows) {
    const limit = Math.ceil(1.2 * (85_000_000 + 1200 * Number(pairs.replaceAll(',', ''))));
    assert.ok(limit > Number(peakMb) * 1e6, pairs);
  }
});

test('the figures for memory and CPU are those of docs/scale.md', () => {
  const scale = read('docs/scale.md');
  assert.match(scale, /\*\*Memory\*\* is 85 MB and 1\.1 to 1\.4 kB per pair/);
  assert.match(scale, /^\| 50,000 +\| 4\.2 s /m);
});
