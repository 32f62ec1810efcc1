/** The Components of deploy/drivers, and their rows in docs/drivers.md. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { isProvisionerImage } from '../../src/cli/preflight/find-sidecars.ts';
import { lockVerbs } from '../../src/kube/election/lease-record.ts';
import { parseDocuments } from '../../src/cli/preflight/read-manifests.ts';

const root = path.join(import.meta.dirname, '../..');
const folder = path.join(root, 'deploy/drivers');
const page = readFileSync(path.join(root, 'docs/drivers.md'), 'utf8');

interface Component {
  kind: string;
  resources?: string[];
  images: { name: string; newName: string; newTag: string }[];
  patches?: { target: { kind: string }; patch: string }[];
}

interface Rbac {
  kind: string;
  metadata: { name: string; namespace: string };
  rules?: { resources: string[]; verbs: string[] }[];
  roleRef?: { name: string };
}

function documents<T>(name: string, file: string): T[] {
  return parseDocuments(readFileSync(path.join(folder, name, file), 'utf8'), file) as T[];
}

const names = readdirSync(folder);

test('docs/drivers.md has a row for each Component, and no other', () => {
  const linked = [...page.matchAll(/\(\.\.\/deploy\/drivers\/([^/]+)\/kustomization\.yaml\)/g)].map(([, name]) => name);
  assert.deepEqual(linked.toSorted(), names.toSorted());
});

describe('the Component of', () => {
  for (const name of names) {
    test(`${name} replaces the image of the Go sidecar, and only that`, () => {
      const [component] = documents<Component>(name, 'kustomization.yaml');
      assert.ok(component !== undefined);
      assert.equal(component.kind, 'Component');
      const [image, ...others] = component.images;
      assert.deepEqual(others, []);
      assert.ok(image !== undefined && isProvisionerImage(image.name), image?.name);
      assert.equal(image.newName, 'csi-provisioner');
      for (const { patch } of component.patches ?? []) {
        const operations = parseDocuments(patch, name)[0] as { op: string; path: string }[];
        assert.ok(operations.length > 0);
        for (const operation of operations) assert.match(operation.path, /^\/spec\//);
      }
      for (const file of component.resources ?? []) assert.ok(existsSync(path.join(folder, name, file)), file);
    });
  }

  for (const name of names.filter((each) => existsSync(path.join(folder, each, 'leases.yaml')))) {
    test(`${name} grants what the intent journal needs, and no more`, () => {
      const [role, binding] = documents<Rbac>(name, 'leases.yaml');
      assert.deepEqual(role?.rules, [
        { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: [...lockVerbs] },
      ]);
      assert.equal(binding?.roleRef?.name, role.metadata.name);
    });
  }
});
