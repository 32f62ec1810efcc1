import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test, type TestContext } from 'node:test';
import { inspect } from 'node:util';
import { systemClock } from '../../../../src/base/clock.ts';
import { Credentials } from '../../../../src/kube/credentials/credentials.ts';
import { ExecPlugin } from '../../../../src/kube/credentials/exec-plugin.ts';
import { Informer } from '../../../../src/kube/cache/informer.ts';
import { loadKubeConfig } from '../../../../src/kube/credentials/kube-config.ts';
import { leases } from '../../../../src/kube/election/lease-record.ts';
import { Transport } from '../../../../src/kube/client/transport.ts';
import { eventually } from '../../../support/eventually.ts';
import { type LogLine, recordedLogger } from '../../../support/fakes/recorded-logger.ts';

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

/** A plugin of one script whose arguments and variable hold credentials. */
function secretivePlugin(t: TestContext, script: string) {
  const folder = mkdtempSync(path.join(tmpdir(), 'exec-plugin-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const command = path.join(folder, 'plugin');
  writeFileSync(command, `#!/bin/sh\n${script}\n`);
  chmodSync(command, 0o755);
  return new ExecPlugin({
    config: {
      apiVersion: 'client.authentication.k8s.io/v1',
      command,
      args: ['login', '--client-secret=arg-hunter2', '--password', 'word-hunter2'],
      env: [{ name: 'PLUGIN_KEY', value: 'env-hunter2' }],
    },
    environment: { PATH: process.env['PATH'] },
    cluster: {},
    clock: systemClock,
    timeoutMs: 2000,
  });
}

for (const { row, script, message } of [
  { row: 'fails in silence', script: 'exit 7', message: /: it ended with exit code 7$/ },
  { row: 'is killed', script: 'kill -9 $$', message: /: it could not be run: SIGKILL$/ },
  {
    row: 'quotes its command line and a variable',
    script: 'echo "bad login: $*, $PLUGIN_KEY" >&2; exit 1',
    message: /: bad login: login \*{3}stripped\*{3} --password \*{3}stripped\*{3}, \*{3}stripped\*{3}$/,
  },
  {
    row: 'quotes the value of a flag',
    script: 'echo "no user arg-hunter2" >&2; exit 1',
    message: /: no user \*{3}str/,
  },
  { row: 'writes too much', script: 'yes | head -c 3000000; exit 1', message: /: its output exceeds 1048576 bytes$/ },
  { row: 'writes no JSON', script: 'echo "$@"', message: /: its output is not JSON$/ },
]) {
  test(`the error of a plugin that ${row} shows neither arguments nor variables`, async (t) => {
    const error: unknown = await secretivePlugin(t, script)
      .credential()
      .catch((reason: unknown) => reason);
    assert.ok(error instanceof Error);
    assert.match(error.message, message);
    assert.doesNotMatch(inspect(error, { depth: 9, showHidden: true }), /hunter2/);
  });
}

test('the log of a cache whose plugin fails shows neither arguments nor variables', async (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'exec-plugin-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const command = path.join(folder, 'plugin');
  writeFileSync(command, '#!/bin/sh\necho "bad login: $*, $PLUGIN_KEY" >&2; exit 1\n', { mode: 0o755 });
  const kubeconfig = path.join(folder, 'config');
  const exec = {
    apiVersion: 'client.authentication.k8s.io/v1',
    command,
    args: ['--client-secret=arg-hunter2'],
    env: [{ name: 'PLUGIN_KEY', value: 'env-hunter2' }],
    interactiveMode: 'Never',
  };
  const config = {
    'current-context': 'c',
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    clusters: [{ name: 'c', cluster: { server: 'http://127.0.0.1:9' } }],
    users: [{ name: 'u', user: { exec } }],
  };
  writeFileSync(kubeconfig, JSON.stringify(config));
  const lines: LogLine[] = [];
  const parts = { clock: systemClock, logger: recordedLogger(lines) };
  const load = () => loadKubeConfig({ kubeconfig: [kubeconfig], environment: process.env });
  await using transport = new Transport({
    credentials: new Credentials({ load, ...parts }),
    userAgent: 'test',
    ...parts,
  });
  const informer = new Informer({ transport, resource: leases, random: () => 0.5, ...parts });
  const stop = new AbortController();
  const running = informer.run(stop.signal);
  await eventually(() => assert.match(inspect(lines, { depth: 9 }), /bad login: \*{3}stripped\*{3}/));
  stop.abort(new Error('the test is over'));
  await running;
  assert.doesNotMatch(inspect(lines, { depth: 9, showHidden: true }), /hunter2/);
});
