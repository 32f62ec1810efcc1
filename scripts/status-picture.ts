/**
 * `npm run picture`: the picture of the status page in README.md, of a real run on the sandbox: a sidecar, a driver whose pool is full, and
 * claims of several teams. Light and dark, below 200 kB each.
 */
import { mkdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type PersistentVolumeClaim, persistentVolumeClaims } from '../src/provision/objects.ts';
import { missingChromium, startChromium } from '../test/support/chromium.ts';
import { freePort } from '../test/support/free-ports.ts';
import { Stage, until } from '../test/support/stage.ts';
import { scriptCommand } from './script-command.ts';

scriptCommand('npm run picture --', 'Draws docs/images/status-page-*.png from a real run.').parse();

const driverName = 'block.csi.example.com';
const folder = path.join(import.meta.dirname, '../docs/images');
/** GitHub and others show a picture at once below this, in bytes. */
const maxBytes = 200_000;

/** What the teams want: class, how many claims, of which size. */
const wanted = [
  { team: 'payments', app: 'ledger', className: 'fast-ssd', count: 6, size: '100Gi' },
  { team: 'payments', app: 'archive', className: 'capacity', count: 14, size: '2Ti' },
  { team: 'search', app: 'index', className: 'replicated', count: 10, size: '50Gi' },
  { team: 'search', app: 'cache', className: 'fast-local', count: 13, size: '20Gi' },
] as const;

async function main(): Promise<void> {
  const missing = await missingChromium();
  if (missing !== undefined) throw new Error(missing);
  await using stage = await Stage.open({ name: 'picture', cluster: { target: 'sandbox', sandbox: { rbac: false } } });
  const driver = await stage.startDriver(driverName);
  const port = await freePort();
  await stage.startSidecar({
    csiAddress: driver.address,
    flags: [`--http-endpoint=127.0.0.1:${port}`, '--status-page', '--retry-interval-max=40s'],
  });
  const bound = new Set<string>();
  await stage.watch<PersistentVolumeClaim>(persistentVolumeClaims, ({ metadata, status }) => {
    if (status?.phase === 'Bound') bound.add(metadata.name);
  });
  for (const name of ['fast-ssd', 'capacity', 'replicated', 'fast-local']) {
    const volumeBindingMode = name === 'fast-local' ? 'WaitForFirstConsumer' : 'Immediate';
    await stage.createClass(name, driverName, { parameters: { pool: name }, volumeBindingMode });
  }
  const failing = [
    {
      method: 'CreateVolume',
      code: 'RESOURCE_EXHAUSTED',
      message: 'pool capacity-a has 1.4 TiB left, 2.0 TiB are requested',
      parameters: { pool: 'capacity' },
    },
    {
      method: 'CreateVolume',
      code: 'UNAVAILABLE',
      message: 'storage node stor-3 does not respond',
      parameters: { pool: 'replicated' },
    },
  ];
  await driver.setFaults(failing);
  for (const { team, app, className, count, size } of wanted) {
    for (let index = 0; index < count; index++)
      await stage.createClaim({ name: `${team}-${app}-${index}` }, className, { size });
  }
  await until('the claims that can be served', () => bound.size >= 6, 60_000);
  await delay(15_000); // attempts fail a few times
  await driver.setFaults([...failing, { method: 'CreateVolume', delayMs: 20_000, parameters: { pool: 'fast-ssd' } }]);
  for (let index = 6; index < 9; index++) {
    await stage.createClaim({ name: `payments-ledger-${index}` }, 'fast-ssd', { size: '100Gi' });
  }
  await delay(1000);
  await draw(`http://127.0.0.1:${port}/status`);
}

async function draw(url: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await using chromium = await startChromium();
  const page = await chromium.context.newPage();
  await page.setViewportSize({ width: 1180, height: 860 });
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    await page.goto(url);
    await page.waitForFunction(`document.getElementById('as-of').textContent.startsWith('Live')`);
    const file = path.join(folder, `status-page-${colorScheme}.png`);
    await page.screenshot({ path: file });
    const { size } = await stat(file);
    console.log(`${path.relative(process.cwd(), file)}: ${Math.round(size / 1000)} kB`);
    if (size > maxBytes) throw new Error(`${file} has more than ${maxBytes / 1000} kB`);
  }
}

await main();
