/** The rule that is logged when a right is missing, against the rights that our manifests grant. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { loadAllYaml, type V1PolicyRule, type V1Role } from '@kubernetes/client-node';
import { storageCapacities } from '../../../src/capacity/storage-capacity.ts';
import { volumeSnapshots } from '../../../src/csi/sources/snapshot-source.ts';
import { events } from '../../../src/kube/events/event-recorder.ts';
import { leases } from '../../../src/kube/election/lease-record.ts';
import { persistentVolumeClaims, persistentVolumes, storageClasses } from '../../../src/provision/objects.ts';

const deploy = path.join(import.meta.dirname, '../../../deploy');

function granted(): V1PolicyRule[] {
  // templates of charts are no YAML: a test of their own compares their rights with these
  const files = readdirSync(deploy, { recursive: true, encoding: 'utf8' }).filter(
    (name) => name.endsWith('.yaml') && !name.startsWith('charts/'),
  );
  const objects = files.flatMap(
    (name) => loadAllYaml(readFileSync(path.join(deploy, name), 'utf8')) as (V1Role | null)[],
  );
  return objects.flatMap((object) => (object?.kind?.endsWith('Role') === true ? (object.rules ?? []) : []));
}

for (const resource of [
  persistentVolumes,
  persistentVolumeClaims,
  storageClasses,
  events,
  leases,
  volumeSnapshots,
  storageCapacities,
]) {
  test(`the rule for ${resource.plural} asks for no more than the manifests grant`, () => {
    const verbs = granted()
      .filter(({ apiGroups, resources }) => {
        return apiGroups?.includes(resource.group) === true && resources?.includes(resource.plural) === true;
      })
      .flatMap((rule) => rule.verbs);
    assert.ok(resource.verbs !== undefined);
    for (const verb of resource.verbs) assert.ok(verbs.includes(verb), verb);
  });
}
