/**
 * Records what a real API server sends in JSON and in protobuf, for test/integration/kube/recorded-codings.test.ts.
 *
 *   node scripts/record-codings.ts   rewrites test/integration/kube/recorded
 */
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { systemClock } from '../src/base/clock.ts';
import { silentLogger } from '../src/base/logger.ts';
import { Credentials } from '../src/kube/credentials/credentials.ts';
import { loadKubeConfig } from '../src/kube/credentials/kube-config.ts';
import { KubeClient } from '../src/kube/client/kube-client.ts';
import { type Resource, resourcePath } from '../src/kube/kube-object.ts';
import { acceptProtobuf } from '../src/kube/protobuf/envelope.ts';
import type { RequestOptions } from '../src/kube/client/request.ts';
import { Transport } from '../src/kube/client/transport.ts';
import { codedKinds, createCoded } from '../test/support/coded-objects.ts';
import { startControlPlane } from '../test/support/control-plane/control-plane.ts';

const folder = path.join(import.meta.dirname, '../test/integration/kube/recorded');

await mkdir(folder, { recursive: true });
await using plane = await startControlPlane();
await plane.stopControllerManager(); // nothing changes any more
const common = { clock: systemClock, logger: silentLogger };
const load = (): ReturnType<typeof loadKubeConfig> =>
  loadKubeConfig({ kubeconfig: plane.adminKubeconfig, environment: {} });
await using transport = new Transport({
  credentials: new Credentials({ load, ...common }),
  userAgent: 'record',
  ...common,
});
const client = new KubeClient({ transport, fieldManager: 'record' });
const kinds = codedKinds('coded');
for (const kind of kinds) await createCoded(client, kind);
const streamed = {
  watch: true,
  sendInitialEvents: true,
  resourceVersionMatch: 'NotOlderThan',
  allowWatchBookmarks: true,
};
const recorded = new Map<string, object>();
for (const { resource } of kinds) {
  recorded.set(resource.plural, {
    list: await inBoth(resource, { resourceVersion: '0' }),
    stream: await inBoth(resource, { ...streamed, timeoutSeconds: 2 }),
  });
}
await plane.restartApiServer(); // its watch cache then begins with the present
for (const { resource } of kinds) {
  const expired = await inBoth(resource, { watch: true, resourceVersion: '1', timeoutSeconds: 2 });
  const text = JSON.stringify({ ...recorded.get(resource.plural), expired });
  await writeFile(path.join(folder, `${resource.plural}.json.gz`), gzipSync(text, { level: 9 }));
}

/** The response in both codings, in base64. */
async function inBoth(resource: Resource, query: RequestOptions['query']): Promise<{ json: string; protobuf: string }> {
  return { json: await read(resource, query, undefined), protobuf: await read(resource, query, acceptProtobuf) };
}

async function read(resource: Resource, query: RequestOptions['query'], accept: string | undefined): Promise<string> {
  const { body, isProtobuf } = await transport.stream({
    method: 'GET',
    path: resourcePath(resource, {}),
    query,
    accept,
    info: { verb: 'list', resource },
    watch: query?.['watch'] === true,
  });
  if (isProtobuf !== (accept !== undefined)) throw new Error(`${resource.plural}: not the coding that was requested`);
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks).toString('base64');
}
