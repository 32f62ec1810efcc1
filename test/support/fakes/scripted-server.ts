/** A real HTTP server whose every answer is said by the test: streams, cuts, resets, silence. */
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { createServer as createTlsServer, type ServerOptions } from 'node:https';
import type { AddressInfo } from 'node:net';
import { TLSSocket } from 'node:tls';
import { createGzip, type Gzip, gzipSync } from 'node:zlib';

export interface ScriptedRequest {
  method: string;
  /** Path without query. */
  path: string;
  query: URLSearchParams;
  headers: IncomingHttpHeaders;
  /** The JSON body. */
  body: unknown;
  /** The common name in the client's certificate. */
  certificateName: string | undefined;
  /** When it came, by the server's clock. */
  atMs: number;
  /** The client's; the same for all requests of a connection. */
  port: number;
}

/** Gives the answer to one request, now or later. */
export type Answer = (reply: ScriptedReply, request: ScriptedRequest) => unknown;

/** Which requests a rule is for; what is left out matches all. */
export interface RequestMatch {
  method?: string;
  path?: string;
  /** Query parameters and their values; `undefined`: the parameter must not be there. */
  query?: Record<string, string | undefined>;
  /** Leaves out those that match this as well. */
  except?: RequestMatch;
}

export interface ScriptedServerOptions {
  /** Answers what no rule is for. Default: 404 with a Status. */
  otherwise?: Answer;
  /** Time for `ScriptedRequest.atMs`. Default: the machine's. */
  now?: () => number;
  /** Certificates to speak TLS with. Default: plain HTTP. */
  tls?: ServerOptions;
}

/** One answer in progress. */
export class ScriptedReply {
  readonly #response: ServerResponse;
  #gzip: Gzip | undefined;
  /** Resolves when the client is gone or the answer complete. */
  readonly closed: Promise<void>;

  constructor(response: ServerResponse) {
    this.#response = response;
    this.closed = new Promise((resolve) => response.once('close', resolve));
  }

  get isClosed(): boolean {
    return this.#response.closed || this.#response.destroyed;
  }

  /** A whole JSON answer. */
  json(code: number, body: unknown, options: { headers?: Record<string, string>; gzip?: boolean } = {}): void {
    this.text(code, JSON.stringify(body), options);
  }

  /** A whole answer with any body. */
  text(
    code: number,
    body: string | Uint8Array,
    options: { headers?: Record<string, string>; gzip?: boolean } = {},
  ): void {
    const gzip = options.gzip === true;
    const headers = { 'content-type': 'application/json', ...(gzip && { 'content-encoding': 'gzip' }) };
    this.#response.writeHead(code, { ...headers, ...options.headers }).end(gzip ? gzipSync(body) : body);
  }

  /** A failure as the API server tells it. */
  status(
    code: number,
    reason: string,
    options: { message?: string; details?: object; headers?: Record<string, string> } = {},
  ): void {
    const { message = `scripted ${reason}`, details, headers = {} } = options;
    this.json(code, failure(code, reason, message, details), { headers });
  }

  /** Begins an answer that comes in pieces; the head goes out at once. */
  open(options: { code?: number; gzip?: boolean; contentType?: string } = {}): this {
    const gzip = options.gzip === true;
    this.#response.writeHead(options.code ?? 200, {
      'content-type': options.contentType ?? 'application/json',
      ...(gzip && { 'content-encoding': 'gzip' }),
    });
    this.#response.flushHeaders();
    if (gzip) {
      this.#gzip = createGzip();
      this.#gzip.pipe(this.#response);
    }
    return this;
  }

  /** One line of a watch. */
  event(type: string, object: object): this {
    return this.write(`${JSON.stringify({ type, object })}\n`);
  }

  /** Bytes as they are, in a chunk of their own. */
  write(bytes: string | Uint8Array): this {
    if (this.#gzip === undefined) this.#response.write(bytes);
    else {
      this.#gzip.write(bytes);
      this.#gzip.flush();
    }
    return this;
  }

  /** The regular end. */
  end(): void {
    if (this.#gzip === undefined) this.#response.end();
    else this.#gzip.end();
  }

  /** The connection closes in the middle of the answer, once what was written is on its way. */
  cut(): void {
    this.#response.socket?.destroySoon();
  }

  /** The connection is reset: with or without an answer begun. */
  reset(): void {
    this.#response.socket?.resetAndDestroy();
  }
}

/** Answers by rules first, then by callback, and remembers every request. */
export class ScriptedServer implements AsyncDisposable {
  readonly requests: ScriptedRequest[] = [];
  readonly #now: () => number;
  readonly #rules: { match: RequestMatch; answers: Answer[] }[] = [];
  readonly #standing: { match: RequestMatch; answer: Answer }[] = [];
  readonly #waiters = new Set<() => void>();
  #otherwise: Answer;
  #tls: ServerOptions | undefined;
  #server: Server;
  #port = 0;

  private constructor(options: ScriptedServerOptions) {
    this.#now = options.now ?? Date.now;
    this.#tls = options.tls;
    this.#otherwise = options.otherwise ?? ((reply) => reply.status(404, 'NotFound'));
    this.#server = this.#make();
  }

  static async start(options: ScriptedServerOptions = {}): Promise<ScriptedServer> {
    const server = new ScriptedServer(options);
    await server.#listen();
    return server;
  }

  get url(): string {
    return `${this.#tls === undefined ? 'http' : 'https'}://127.0.0.1:${this.#port}`;
  }

  /** Answers for the next requests that match, one each. */
  next(match: RequestMatch, ...answers: Answer[]): void {
    this.#rules.push({ match, answers });
  }

  /** What is answered to requests that match, as long as no `next` is for them. */
  always(match: RequestMatch, answer: Answer): void {
    this.#standing.push({ match, answer });
  }

  /** What is answered to requests without a rule, from now on. */
  otherwise(answer: Answer): void {
    this.#otherwise = answer;
  }

  /** The requests so far that match. */
  matching(match: RequestMatch): ScriptedRequest[] {
    return this.requests.filter((request) => matches(request, match));
  }

  /** Resolves with the matching requests once there are `count` of them. */
  async requested(count: number, match: RequestMatch = {}): Promise<ScriptedRequest[]> {
    for (let found = this.matching(match); ; found = this.matching(match)) {
      if (found.length >= count) return found;
      await new Promise<void>((resolve) => this.#waiters.add(resolve));
    }
  }

  /** Closes the port and all connections: who connects now is refused. */
  async down(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  /** Listens on the same port again, with other certificates if there are some. */
  async up(options: { tls?: ServerOptions } = {}): Promise<void> {
    this.#tls = options.tls ?? this.#tls;
    this.#server = this.#make();
    await this.#listen();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#server.listening) await this.down();
  }

  #make(): Server {
    const serve = (message: IncomingMessage, response: ServerResponse): void => {
      const { method = '', url = '', headers } = message;
      const { pathname: path, searchParams: query } = new URL(url, 'http://localhost');
      const chunks: Buffer[] = [];
      message.on('error', () => undefined); // the client left, or was made to
      response.on('error', () => undefined);
      message.on('data', (chunk: Buffer) => chunks.push(chunk));
      message.on('end', () => {
        const text = Buffer.concat(chunks).toString();
        const body = text === '' ? undefined : (JSON.parse(text) as unknown);
        const { remotePort: port = 0 } = message.socket;
        const certificateName = nameOf(message);
        const request = { method, path, query, headers, body, certificateName, atMs: this.#now(), port };
        this.requests.push(request);
        const reply = new ScriptedReply(response);
        void Promise.resolve(this.#answerFor(request)(reply, request));
        for (const wake of this.#waiters) wake();
        this.#waiters.clear();
      });
    };
    return this.#tls === undefined ? createServer(serve) : createTlsServer(this.#tls, serve);
  }

  async #listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(this.#port, '127.0.0.1', resolve));
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  #answerFor(request: ScriptedRequest): Answer {
    const rule = this.#rules.find(({ match, answers }) => answers.length > 0 && matches(request, match));
    const standing = this.#standing.find(({ match }) => matches(request, match));
    return rule?.answers.shift() ?? standing?.answer ?? this.#otherwise;
  }
}

/** A Status that says no. */
export function failure(code: number, reason: string, message: string, details?: object): object {
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    code,
    reason,
    message,
    ...(details && { details }),
  };
}

function nameOf({ socket }: IncomingMessage): string | undefined {
  if (!(socket instanceof TLSSocket)) return undefined;
  const { subject } = socket.getPeerCertificate() as { subject?: { CN?: string } };
  return subject?.CN;
}

function matches(request: ScriptedRequest, { method, path, query = {}, except }: RequestMatch): boolean {
  if (except !== undefined && matches(request, except)) return false;
  if (method !== undefined && request.method !== method) return false;
  if (path !== undefined && request.path !== path) return false;
  return Object.entries(query).every(([name, value]) => (request.query.get(name) ?? undefined) === value);
}
