/**
 * An API server that serves lists and watches with made objects, as a process of its own: `bench/scale.ts` starts it. It
 * knows no more of the API than a sidecar needs to fill its caches. Prints its address as one line of JSON.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Option } from 'commander';
import { scriptCommand, wholeNumber } from '../scripts/script-command.ts';
import { encodeEvent, encodeList, encodeMessage, envelope } from '../test/support/protobuf-encoding.ts';
import { type Coding, type MadeKind, MadeObjects } from './made-objects.ts';

const values = scriptCommand(
  'node bench/list-server.ts',
  'An API server that generates its lists; started by bench:scale.',
)
  .requiredOption('--driver <NAME>', 'whose pairs they are')
  .option('--pairs <N>', 'claims, and as many volumes', wholeNumber(), 50_000)
  .addOption(new Option('--lists <L>').choices(['streamed', 'paged']).default('streamed'))
  .addOption(new Option('--coding <C>').choices(['protobuf', 'json']).default('protobuf'))
  .parse()
  .opts<{ driver: string; pairs: number; lists: string; coding: Coding }>();
const { pairs: count, coding } = values;
const contentType = coding === 'json' ? 'application/json' : 'application/vnd.kubernetes.protobuf';
const listVersion = '99000000';
const chunkBytes = 128 * 1024;

const made = new Map<string, { kind: MadeKind; objects: MadeObjects }>();
for (const [plural, kind] of [
  ['persistentvolumes', 'PersistentVolume'],
  ['persistentvolumeclaims', 'PersistentVolumeClaim'],
] as const) {
  const form = values.lists === 'paged' ? 'item' : 'event';
  made.set(plural, { kind, objects: new MadeObjects(kind, coding, form, values.driver) });
}
/** Other resources that the sidecar lists; there is none of them. */
const kinds: Record<string, string> = { storageclasses: 'StorageClass', volumeattachments: 'VolumeAttachment' };

async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(request.url ?? '', 'http://localhost');
  const plural = url.pathname.split('/').at(-1) ?? '';
  const listed = made.get(plural);
  const isStreamed = url.searchParams.get('sendInitialEvents') === 'true';
  if (request.method !== 'GET' || (listed === undefined && kinds[plural] === undefined)) {
    refuse(response, 404, 'NotFound');
  } else if (isStreamed && values.lists === 'paged') {
    refuse(response, 422, 'Invalid'); // as a server that does not know the parameter
  } else if (listed === undefined) {
    sendEmpty(response, kinds[plural] ?? '', url);
  } else if (url.searchParams.get('watch') === 'true') {
    response.writeHead(200, { 'content-type': contentType });
    response.flushHeaders();
    if (isStreamed) await stream(response, listed);
  } else {
    page(response, listed, url);
  }
}

/** All objects as events, and the bookmark that ends them; the watch then stays open. */
async function stream(
  response: ServerResponse,
  { kind, objects }: { kind: MadeKind; objects: MadeObjects },
): Promise<void> {
  let pending: Buffer[] = [];
  let bytes = 0;
  for (let index = 0; index < count; index++) {
    const event = objects.make(index);
    pending.push(event);
    bytes += event.length;
    if (bytes < chunkBytes) continue;
    if (!response.write(Buffer.concat(pending))) await Promise.race([once(response, 'drain'), once(response, 'close')]);
    if (response.destroyed) return;
    pending = [];
    bytes = 0;
  }
  response.write(Buffer.concat([...pending, bookmark(kind)]));
}

function bookmark(kind: string): Buffer {
  const metadata = { resourceVersion: listVersion, annotations: { 'k8s.io/initial-events-end': 'true' } };
  return coding === 'json'
    ? Buffer.from(`${JSON.stringify({ type: 'BOOKMARK', object: { apiVersion: 'v1', kind, metadata } })}\n`)
    : encodeEvent('BOOKMARK', envelope(kind, encodeMessage('PartialObjectMetadata', { metadata })));
}

function page(response: ServerResponse, { kind, objects }: { kind: MadeKind; objects: MadeObjects }, url: URL): void {
  const from = Number(url.searchParams.get('continue') ?? 0);
  const to = Math.min(count, from + Number(url.searchParams.get('limit') ?? count));
  const items = Array.from({ length: to - from }, (_, index) => objects.make(from + index));
  const metadata = { resourceVersion: listVersion, ...(to < count && { continue: String(to) }) };
  response.writeHead(200, { 'content-type': contentType });
  response.end(coding === 'json' ? jsonList(kind, metadata, items) : encodeList(`${kind}List`, metadata, items));
}

function jsonList(kind: string, metadata: object, items: readonly Buffer[]): string {
  const head = `{"kind":"${kind}List","apiVersion":"v1","metadata":${JSON.stringify(metadata)},"items":[`;
  return `${head}${items.map((item) => item.toString('latin1')).join(',')}]}`;
}

function sendEmpty(response: ServerResponse, kind: string, url: URL): void {
  response.writeHead(200, { 'content-type': 'application/json' });
  const metadata = { resourceVersion: listVersion, annotations: { 'k8s.io/initial-events-end': 'true' } };
  const apiVersion = 'storage.k8s.io/v1';
  if (url.searchParams.get('watch') !== 'true') {
    response.end(JSON.stringify({ kind: `${kind}List`, apiVersion, metadata, items: [] }));
  } else {
    response.flushHeaders();
    response.write(`${JSON.stringify({ type: 'BOOKMARK', object: { apiVersion, kind, metadata } })}\n`);
  }
}

function refuse(response: ServerResponse, code: number, reason: string): void {
  response.writeHead(code, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ kind: 'Status', apiVersion: 'v1', status: 'Failure', message: reason, reason, code }));
}

const server = createServer((request, response) => {
  respond(request, response).catch((error: unknown) => response.destroy(error as Error));
}).listen(0, '127.0.0.1');
await once(server, 'listening');
console.log(JSON.stringify({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }));
