/** The page of a running sidecar with ten thousand waiting claims: its size and its stream. */
import assert from 'node:assert/strict';
import { status } from '@grpc/grpc-js';
import { connect } from 'node:net';
import { after, before, describe, test } from 'node:test';
import type { SandboxObject } from '../../../sandbox/api/client.ts';
import { maxStreams } from '../../../src/diagnostics/status-page/live-streams.ts';
import { missingChromium, startChromium } from '../../support/chromium.ts';
import { eventually } from '../../support/eventually.ts';
import { DriverFailure } from '../../support/fakes/recording-driver.ts';
import { LiveReader } from '../../support/live-reader.ts';
import { freePort } from '../../support/free-ports.ts';
import { type SidecarProcess, startSidecar } from './sidecar-process.ts';

const noBrowser = (await missingChromium()) ?? false;
const claimCount = 10_000;
/** Of them; the others wait for a Pod. */
const failingCount = 1000;
const driverName = 'd.example.com';

function storageClass(name: string, volumeBindingMode: string): SandboxObject {
  const apiVersion = 'storage.k8s.io/v1';
  return { apiVersion, kind: 'StorageClass', metadata: { name }, provisioner: driverName, volumeBindingMode };
}

function claim(number: number): SandboxObject {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      namespace: 'ns1',
      name: `data-postgres-${number}`,
      uid: `0b5e1c52-7d3f-4a53-9a55-${String(number).padStart(12, '0')}`,
      creationTimestamp: new Date(Date.UTC(2026, 10, 20) + number * 1000).toISOString(),
      annotations: { 'volume.kubernetes.io/storage-provisioner': driverName },
    },
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '1Gi' } },
      storageClassName: number < failingCount ? 'immediate' : 'late',
    },
  };
}

const waiting = /<b>10,000<\/b> waiting.*<b>1,000<\/b> failing/;

describe('the status page of a sidecar with 10,000 waiting claims', () => {
  const opened = new AsyncDisposableStack();
  let sidecar: SidecarProcess;
  let url: string;

  before(async () => {
    const port = await freePort();
    url = `http://127.0.0.1:${port}/status`;
    sidecar = opened.use(
      await startSidecar({
        flags: [
          `--http-endpoint=127.0.0.1:${port}`,
          '--status-page',
          '--retry-interval-start=1h',
          '--retry-interval-max=1h',
        ],
        objects: [
          storageClass('immediate', 'Immediate'),
          storageClass('late', 'WaitForFirstConsumer'),
          ...Array.from({ length: claimCount }, (_, number) => claim(number)),
        ],
      }),
    );
    sidecar.driver.always('CreateVolume', new DriverFailure(status.RESOURCE_EXHAUSTED, 'pool "nvme-a" is full'));
    await eventually(async () => assert.match(await page(), waiting));
  });
  after(() => opened.disposeAsync());

  const page = async (): Promise<string> => await (await fetch(url)).text();

  /** Waits until each reader has got another message. */
  async function areServed(readers: readonly LiveReader[]): Promise<void> {
    const seen = readers.map(({ messages }) => messages.length);
    const more = (): number[] => readers.map(({ messages }, index) => messages.length - (seen[index] ?? 0));
    await eventually(() => assert.ok(more().every((count) => count > 0)));
  }

  test('takes less than 64 kB, whatever is asked for', async () => {
    for (const query of ['', '?q=postgres', '?step=retrying', '?from=5000', '?claim=ns1/data-postgres-7']) {
      const { length } = Buffer.from(await (await fetch(url + query)).arrayBuffer());
      assert.ok(length < 64_000, `${query}: ${length} bytes`);
    }
  });

  test('is painted by a browser, and follows what happens', { skip: noBrowser }, async (t) => {
    await using chromium = await startChromium();
    const tab = await chromium.context.newPage();
    await tab.goto(url);
    const firstPaint = `performance.getEntriesByType('paint')[0]?.startTime`;
    const paintedMs = await eventually(async () => {
      const ms = await tab.evaluate<number | undefined>(firstPaint);
      return ms ?? assert.fail('nothing is painted yet');
    });
    t.diagnostic(`first paint after ${Math.round(paintedMs)} ms`);
    const rows = await tab.locator('table.claims tbody tr').count();
    assert.ok(rows > 100 && rows <= 200, String(rows));
    await eventually(async () => assert.match((await tab.textContent('#as-of')) ?? '', /^Live/));
    const api = sidecar.cluster.server.client('test');
    const claims = { group: '', version: 'v1', plural: 'persistentvolumeclaims' };
    api.delete(claims, { namespace: 'ns1', name: 'data-postgres-3' });
    await eventually(async () => assert.match((await tab.textContent('caption')) ?? '', /1 to \d+ of 9,999 claims/));
    assert.equal(await tab.getByText('ns1/data-postgres-3', { exact: true }).count(), 0);
  });

  test('is followed by as many readers as it lets in', async () => {
    const readers: LiveReader[] = [];
    try {
      while (readers.length < maxStreams) readers.push(await LiveReader.open(`${url}/live`));
      await areServed(readers);
      for (const { messages } of readers)
        assert.match(messages[0]?.parts['claim-list'] ?? '', /of (9,999|10,000) claims/);
    } finally {
      for (const reader of readers) reader.leave();
    }
  });

  test('keeps going while readers do not read', async () => {
    const { port, hostname } = new URL(url);
    const deaf = Array.from({ length: maxStreams - 1 }, () => {
      const socket = connect(Number(port), hostname).pause();
      socket.write(`GET /status/live HTTP/1.1\r\nHost: ${hostname}\r\n\r\n`);
      return socket;
    });
    try {
      await using reader = await eventually(() => LiveReader.open(`${url}/live`));
      await areServed([reader]);
    } finally {
      for (const socket of deaf) socket.destroy();
    }
  });

  test('does not hold up the end of the process', async () => {
    await using reader = await eventually(() => LiveReader.open(`${url}/live`));
    await eventually(() => assert.ok(reader.messages.length > 0));
    await sidecar.process.stop('SIGTERM');
    assert.equal(await sidecar.process.ending(), 'exit code 0');
    await eventually(() => assert.equal(reader.ended, true));
  });
});
