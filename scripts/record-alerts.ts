/**
 * Records the metrics of real sidecars in the states that the alerts are about, for test/tools/alerts.test.ts.
 *
 *   node scripts/record-alerts.ts [STORY...]   rewrites test/tools/recorded-alerts, or only these stories
 *
 * It takes 40 minutes, since the alerts wait that long, hardly any CPU, and 4 GB of memory: each story has a sandbox, a driver and
 * a sidecar of its own, all at the same time.
 */
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { selectorsOf } from '../test/support/promql.ts';
import { alertRules } from '../test/support/alert-rules.ts';
import { freePorts } from '../test/support/free-ports.ts';
import { eventually } from '../test/support/eventually.ts';
import { openScene } from '../test/support/scene.ts';
import { type RecordedSeries, SeriesRecorder } from './alerts/series.ts';
import { stories, type Story } from './alerts/stories.ts';

const folder = path.join(import.meta.dirname, '../test/tools/recorded-alerts');
const intervalMs = 30_000;
const scrapes = 76;
const targetLabels = 'namespace="csi-provisioner",job="csi-provisioner",instance="10.1.2.3:8080"';

const metrics = new Set((await alertRules()).flatMap(({ expr }) => selectorsOf(expr).map(({ metric }) => metric)));
const chosen = process.argv.slice(2);
const unknown = chosen.filter((name) => !stories.some((story) => story.name === name));
if (unknown.length > 0) throw new Error(`no such story: ${unknown.join(', ')}`);
await mkdir(folder, { recursive: true });
const wanted = stories.filter(({ name }) => chosen.length === 0 || chosen.includes(name));
const ports = await freePorts(wanted.length);
const results = await Promise.allSettled(wanted.map((story, index) => recordAndWrite(story, ports[index]!)));
for (const result of results) {
  if (result.status === 'rejected') console.error(result.reason);
}
process.exitCode = results.every(({ status }) => status === 'fulfilled') ? 0 : 1;

async function recordAndWrite(story: Story, port: number): Promise<void> {
  const series = await record(story, port);
  await writeFile(path.join(folder, `${story.name}.json`), `${JSON.stringify(series, undefined, 2)}\n`);
  console.error(`${story.name}: ${Object.keys(series).length} series`);
}

async function record({ name, scene: options = {}, play }: Story, port: number): Promise<RecordedSeries> {
  const sidecarFlags = [...(options.sidecarFlags ?? []), `--http-endpoint=127.0.0.1:${port}`, '-v=2'];
  const scene = await openScene({ driverName: 'drv.example.com', ...options, sidecarFlags });
  const ending = new AbortController();
  const url = `http://127.0.0.1:${port}/metrics`;
  try {
    await eventually(async () => assert.ok(await page(url)), { withinMs: 300_000 }); // all start at the same time
    let failure: Error | undefined;
    const played = play(scene, ending.signal).catch((error: unknown) => {
      if (!ending.signal.aborted) failure = new Error(`${name}: ${String(error)}`, { cause: error });
    });
    const recorder = new SeriesRecorder(metrics, targetLabels);
    const begin = performance.now();
    for (let scrape = 0; scrape < scrapes; scrape++) {
      await sleep(Math.max(0, begin + scrape * intervalMs - performance.now()));
      if (failure !== undefined) throw failure;
      recorder.add(await page(url));
    }
    ending.abort();
    await played;
    return recorder.toJSON();
  } finally {
    ending.abort();
    await scene.sidecar.stop('SIGKILL'); // it would wait for a call that hangs
    await scene.close();
  }
}

/** @returns undefined where nothing responds. */
async function page(url: string): Promise<string | undefined> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(10_000) });
    return response.ok ? await response.text() : undefined;
  } catch {
    return undefined;
  }
}
