import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { systemClock } from '../../../src/base/clock.ts';
import { ExecPlugin } from '../../../src/kube/exec-plugin.ts';

test('a plugin that hangs and ignores SIGTERM is killed after its time, at each run', async (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'exec-plugin-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const command = path.join(folder, 'plugin');
  writeFileSync(command, '#!/bin/sh\ntrap "" TERM\nwhile :; do sleep 0.1; done\n');
  chmodSync(command, 0o755);
  const plugin = new ExecPlugin({
    config: { apiVersion: 'client.authentication.k8s.io/v1', command },
    environment: { PATH: process.env['PATH'] },
    cluster: {},
    clock: systemClock,
    timeoutMs: 300,
  });
  await assert.rejects(plugin.credential(), /exec plugin .*plugin: it did not end within 300 ms/);
  await assert.rejects(plugin.credential(), /exec plugin .*plugin: it did not end within 300 ms/);
});
