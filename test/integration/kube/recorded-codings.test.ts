/** What a real API server of 1.36 answers, recorded by scripts/record-codings.ts. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { systemClock } from '../../../src/base/clock.ts';
import { silentLogger } from '../../../src/base/logger.ts';
import { Credentials } from '../../../src/kube/credentials/credentials.ts';
import { loadKubeConfig } from '../../../src/kube/credentials/kube-config.ts';
import { type KubeObject, resourcePath, type WatchEvent } from '../../../src/kube/kube-object.ts';
import { lines, readList } from '../../../src/kube/cache/list-stream.ts';
import { messageDecoder } from '../../../src/kube/protobuf/message-decoder.ts';
import { protobufEvents, readProtobufList } from '../../../src/kube/cache/protobuf-stream.ts';
import { withoutManagedFields } from '../../../src/provision/cache/informers.ts';
import { CodedCaches } from '../../support/coded-caches.ts';
import { type CodedKind, codedKinds } from '../../support/coded-objects.ts';
import { eventually } from '../../support/eventually.ts';
import { CodingTransport } from '../../support/fakes/coding-transport.ts';
import { ScriptedServer } from '../../support/fakes/scripted-server.ts';

interface Recorded {
  /** Everything at version 0. */
  list: InBoth;
  /** A streaming list, until the server ends it. */
  stream: InBoth;
  /** A watch from a version that the server no longer has. */
  expired: InBoth;
}

/** An answer in base64. */
interface InBoth {
  json: string;
  protobuf: string;
}

const endOfInitialEvents = { 'k8s.io/initial-events-end': 'true' };
const kinds = codedKinds('coded');
const recorded = new Map<string, Recorded>();
for (const { resource } of kinds) {
  const file = path.join(import.meta.dirname, 'recorded', `${resource.plural}.json.gz`);
  recorded.set(resource.plural, JSON.parse(gunzipSync(readFileSync(file)).toString('utf8')) as Recorded);
}

function bytesOf({ resource }: CodedKind, what: keyof Recorded, coding: keyof InBoth): Buffer {
  return Buffer.from(recorded.get(resource.plural)?.[what][coding] ?? '', 'base64');
}

/** Answers what was recorded, in the coding that is requested; watches stay open. */
async function recordedServer(): Promise<ScriptedServer> {
  return await ScriptedServer.start({
    otherwise: (reply, { path: requested, query, headers }) => {
      const kind = kinds.find(({ resource }) => resourcePath(resource, {}) === requested);
      if (kind === undefined) {
        reply.status(404, 'NotFound');
        return;
      }
      const coding = headers.accept?.includes('protobuf') === true ? 'protobuf' : 'json';
      const type = coding === 'json' ? 'application/json' : 'application/vnd.kubernetes.protobuf';
      if (query.get('watch') === null) {
        reply.text(200, bytesOf(kind, 'list', coding), { headers: { 'content-type': type }, gzip: true });
        return;
      }
      reply.open({ contentType: `${type};stream=watch` });
      if (query.get('sendInitialEvents') !== null) reply.write(bytesOf(kind, 'stream', coding));
    },
  });
}

async function* inPieces(bytes: Buffer, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield await Promise.resolve(bytes.subarray(at, at + size));
}

async function eventsOf(bytes: Buffer, size: number, { resource, message }: CodedKind): Promise<WatchEvent[]> {
  const events: WatchEvent[] = [];
  const options = { kind: resource.kind, decode: messageDecoder<KubeObject>(message) };
  for await (const event of protobufEvents(inPieces(bytes, size), options)) events.push(event);
  return events;
}

async function jsonEventsOf(kind: CodedKind, what: 'stream' | 'expired'): Promise<WatchEvent[]> {
  const events: WatchEvent[] = [];
  for await (const line of lines(inPieces(bytesOf(kind, what, 'json'), 1000)))
    events.push(JSON.parse(line) as WatchEvent);
  return events;
}

/** The object as JSON has it, less what no message has. */
function readable(object: KubeObject, { unread = [] }: CodedKind): object {
  const whole = Object.entries(withoutManagedFields<KubeObject>(object));
  return Object.fromEntries(whole.filter(([name]) => !unread.includes(name)));
}

describe('the caches filled from protobuf', () => {
  for (const { what, make } of [
    { what: 'of whole objects', make: (over: CodingTransport) => CodedCaches.ofWholeObjects(over, kinds) },
    { what: 'of the sidecar', make: (over: CodingTransport) => CodedCaches.ofSidecar(over) },
  ]) {
    for (const { how, without } of [
      { how: 'lists', without: { streamedLists: true } },
      { how: 'streaming lists', without: {} },
    ]) {
      test(`${what} are those filled from JSON, by ${how}`, async () => {
        await using server = await recordedServer();
        const load = (): ReturnType<typeof loadKubeConfig> => loadKubeConfig({ master: server.url, environment: {} });
        const common = { clock: systemClock, logger: silentLogger };
        const options = { credentials: new Credentials({ load, ...common }), userAgent: 'test', ...common };
        await using inProtobuf = make(new CodingTransport(options, without));
        await using inJson = make(new CodingTransport(options, { ...without, protobuf: true }));
        for (const kind of kinds) {
          await eventually(() => {
            for (const each of [inProtobuf, inJson]) {
              assert.equal(Object.keys(each.content(kind)).length, kind.objects.length, kind.resource.plural);
            }
          });
          assert.deepEqual(inProtobuf.content(kind), inJson.content(kind));
          assert.equal(inProtobuf.transport.codings.get(kind.resource.plural), 'protobuf');
          assert.equal(inJson.transport.codings.get(kind.resource.plural), 'json');
        }
      });
    }
  }
});

for (const kind of kinds) {
  const { resource, message } = kind;
  const decode = messageDecoder<KubeObject>(message);

  describe(`recorded ${resource.plural}`, () => {
    for (const size of [1, 7, 64_000]) {
      test(`are read from a list in pieces of ${size} bytes as they are in JSON`, async () => {
        const items: KubeObject[] = [];
        const wanted: object[] = [];
        const envelope = await readProtobufList(inPieces(bytesOf(kind, 'list', 'protobuf'), size), {
          kind: `${resource.kind}List`,
          decode,
          onItem: (item) => items.push(item),
        });
        const inJson = await readList(inPieces(bytesOf(kind, 'list', 'json'), size), {
          onItem: (item) => wanted.push(readable(item, kind)),
        });
        assert.deepEqual(items, wanted);
        assert.deepEqual({ items: [], ...envelope }, inJson);
      });

      test(`are read from a watch in pieces of ${size} bytes as they are in JSON`, async () => {
        const events = await eventsOf(bytesOf(kind, 'stream', 'protobuf'), size, kind);
        const bookmark = events.pop();
        const wanted = await jsonEventsOf(kind, 'stream');
        const wantedBookmark = wanted.pop();
        assert.deepEqual(
          events,
          wanted.map(({ type, object }) => ({ type, object: readable(object, kind) })),
        );
        for (const { type, object } of [bookmark!, wantedBookmark!]) {
          const { annotations, resourceVersion = '' } = object.metadata;
          assert.deepEqual([type, object.kind, annotations], ['BOOKMARK', resource.kind, endOfInitialEvents]);
          assert.match(resourceVersion, /^\d+$/);
        }
      });
    }

    test('cut off anywhere are refused', async () => {
      const bytes = bytesOf(kind, 'list', 'protobuf');
      const needed = bytes.length - 4; // two empty texts follow the list
      for (let length = 0; length < needed; length += 1 + Math.floor(needed / 300)) {
        const reader = { kind: `${resource.kind}List`, decode, onItem: () => undefined };
        await assert.rejects(readProtobufList(inPieces(bytes.subarray(0, length), 64_000), reader), {
          name: 'MalformedMessageError',
        });
      }
    });

    test('say in both codings that a version is too old', async () => {
      const [event] = await eventsOf(bytesOf(kind, 'expired', 'protobuf'), 1000, kind);
      const [wanted] = await jsonEventsOf(kind, 'expired');
      assert.equal(event?.type, 'ERROR');
      assert.match(String(event.object['message']), /^too old resource version: 1 /);
      assert.deepEqual(event, wanted);
    });
  });
}
