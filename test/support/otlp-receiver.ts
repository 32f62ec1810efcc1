/** A receiver of traces: real HTTP, decoded as the protocol says (OTLP 1.x, "OTLP/HTTP", and its proto files). */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import protobuf from 'protobufjs';

const definition = `syntax = "proto3";
message Request { repeated ResourceSpans resource_spans = 1; }
message ResourceSpans { Resource resource = 1; repeated ScopeSpans scope_spans = 2; }
message Resource { repeated KeyValue attributes = 1; }
message ScopeSpans { repeated Span spans = 2; }
message Span {
  bytes trace_id = 1; bytes span_id = 2; bytes parent_span_id = 4; string name = 5; int32 kind = 6;
  fixed64 start_time_unix_nano = 7; fixed64 end_time_unix_nano = 8;
  repeated KeyValue attributes = 9; repeated Link links = 13; Status status = 15;
}
message Link { bytes trace_id = 1; bytes span_id = 2; }
message Status { string message = 2; int32 code = 3; }
message KeyValue { string key = 1; AnyValue value = 2; }
message AnyValue { oneof value { string string_value = 1; bool bool_value = 2; int64 int_value = 3; double double_value = 4; } }`;
const requestType = protobuf.parse(definition, { keepCase: true }).root.lookupType('Request');

interface KeyValue {
  key: string;
  value: Record<string, string | number | boolean>;
}

interface DecodedSpan {
  trace_id: string;
  span_id: string;
  parent_span_id?: string;
  name: string;
  attributes?: KeyValue[];
  links?: { span_id: string }[];
  status?: { code?: number; message?: string };
}

/** A span as it was received; ids in hexadecimal. */
export interface ReceivedSpan {
  traceId: string;
  spanId: string;
  /** Empty for that of a whole trace. */
  parentId: string;
  name: string;
  attributes: Record<string, unknown>;
  /** Ids of spans to which it is linked. */
  links: string[];
  /** Undefined: it did not fail. */
  failure: string | undefined;
  resource: Record<string, unknown>;
}

export class OtlpReceiver implements AsyncDisposable {
  readonly spans: ReceivedSpan[] = [];
  /** Everything that was received, as it came. */
  readonly bodies: Buffer[] = [];
  /** `fail`: answers 503. `hang`: does not answer. */
  mode: 'receive' | 'fail' | 'hang' = 'receive';
  requests = 0;
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => void this.#receive(request, response));
  }

  static async start(): Promise<OtlpReceiver> {
    const receiver = new OtlpReceiver();
    await new Promise<void>((resolve) => receiver.#server.listen(0, '127.0.0.1', resolve));
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async #receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.requests += 1;
    if (this.mode === 'hang') return;
    const sent = await buffer(request);
    if (this.mode === 'fail' || request.url !== '/v1/traces') {
      response.writeHead(this.mode === 'fail' ? 503 : 404).end();
      return;
    }
    const body = request.headers['content-encoding'] === 'gzip' ? gunzipSync(sent) : sent;
    this.bodies.push(body);
    this.#decode(body);
    response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end();
  }

  #decode(body: Buffer): void {
    const { resource_spans: parts = [] } = requestType.toObject(requestType.decode(body), {
      bytes: Buffer,
      longs: String,
    }) as { resource_spans?: { resource?: { attributes?: KeyValue[] }; scope_spans?: { spans?: DecodedSpan[] }[] }[] };
    const hex = (bytes: unknown): string => (bytes === undefined ? '' : Buffer.from(bytes as Buffer).toString('hex'));
    for (const { resource, scope_spans: scopes = [] } of parts) {
      for (const span of scopes.flatMap(({ spans = [] }) => spans)) {
        this.spans.push({
          traceId: hex(span.trace_id),
          spanId: hex(span.span_id),
          parentId: hex(span.parent_span_id),
          name: span.name,
          attributes: plain(span.attributes),
          links: (span.links ?? []).map(({ span_id: id }) => hex(id)),
          failure: span.status?.code === 2 ? (span.status.message ?? '') : undefined,
          resource: plain(resource?.attributes),
        });
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

function plain(attributes: KeyValue[] = []): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}
