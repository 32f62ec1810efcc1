import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inTreePlugins } from '../../../src/csi/migration/in-tree-plugins.ts';
import { migratedPlugins } from '../../../sandbox/control-plane/migrated-plugins.ts';

test('the sandbox hands over the plugins that the sidecar takes', () => {
  assert.deepEqual(new Map(inTreePlugins.map(({ name, driverName: driver }) => [name, driver])), migratedPlugins);
});
