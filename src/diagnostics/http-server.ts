/** The HTTP endpoint: a small, closed set of paths, for scrapers and probes only. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Logger } from '../base/logger.ts';
import { ListenAddressError, parseListenAddress } from './listen-address.ts';
import { parsePathPattern, type PathPattern } from './http-paths.ts';

/** Responds to a request. The body is never read. May wait; what it throws becomes a 500. */
export type Handler = (request: IncomingMessage, response: ServerResponse) => void | Promise<void>;

/** What the server needs. */
export interface DiagnosticsServerOptions {
  /** In Go's listen form, such as `:8080`. */
  readonly address: string;
  readonly logger: Logger;
  /** Idle timeout of a connection, in the middle of a response too, in milliseconds; default 30 000. */
  readonly idleTimeoutMs?: number;
  /** Timeout for the whole request to arrive, in milliseconds; default 10 000. */
  readonly requestTimeoutMs?: number;
}

const maxHeaderBytes = 16 * 1024;
const maxConnections = 256;
/** Max pipelined requests on one connection; scrapers and probes send none. */
const maxPipelinedRequests = 8;

/** How long requests in flight may go on once the server closes. */
const closeGraceMs = 500;

/** A path with its handler. */
interface Served {
  readonly pattern: PathPattern;
  readonly handler: Handler;
}

/** A listening server. It accepts any method and never reads a body. */
export class DiagnosticsServer implements AsyncDisposable {
  readonly #server: Server;
  readonly #logger: Logger;
  readonly #handlers: Served[] = [];
  #closing: Promise<void> | undefined;
  /** Open connections, oldest first, with their requests under way. */
  readonly #connections = new Map<Socket, number>();

  /** Use `startDiagnosticsServer`. */
  constructor(server: Server, logger: Logger) {
    this.#server = server;
    this.#logger = logger;
    const respond = (request: IncomingMessage, response: ServerResponse): void => void this.#respond(request, response);
    server.on('connection', (socket: Socket) => this.#admit(socket));
    server.on('request', respond);
    server.on('checkContinue', respond); // without `100 Continue`: the body is not read
    server.on('error', (error) => logger.error({ err: error }, 'The HTTP endpoint failed'));
  }

  /** The port that is listened on, also if the system chose it. */
  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /**
   * Adds a path, from now on. Where two match, the more precise one is used, else the earlier one.
   *
   * @param path - in the form of Go's `http.ServeMux`: exact, or a subtree if it ends in `/`.
   * @throws {PathPatternError} for a path that cannot be served.
   */
  handle(path: string, handler: Handler): void {
    this.#handlers.push({ pattern: parsePathPattern(path), handler });
  }

  /**
   * A probe must get through whatever else holds connections: beyond the limit an idle connection is closed, else the
   * oldest.
   */
  #admit(socket: Socket): void {
    if (this.#connections.size >= maxConnections) {
      const open = [...this.#connections];
      const [victim] = open.find(([, requests]) => requests === 0) ?? open[0] ?? [];
      victim?.destroy();
    }
    this.#connections.set(socket, 0);
    socket.once('close', () => this.#connections.delete(socket));
  }

  /** Counts a request that comes or ends. @returns how many are under way on the connection. */
  #count(socket: Socket, change: 1 | -1): number {
    const requests = (this.#connections.get(socket) ?? 0) + change;
    if (this.#connections.has(socket)) this.#connections.set(socket, requests);
    return requests;
  }

  async #respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (hasBody(request)) response.shouldKeepAlive = false;
    if (this.#count(request.socket, 1) > maxPipelinedRequests) {
      request.socket.destroy();
      return;
    }
    response.once('close', () => {
      this.#count(request.socket, -1);
      if (this.#closing !== undefined) setImmediate(() => this.#server.closeIdleConnections());
    });
    try {
      const handler = this.#find(request);
      if (handler === undefined) sendNotFound(response);
      else await handler(request, response);
    } catch (error) {
      this.#logger.error({ err: error, path: request.url }, 'An HTTP request failed');
      if (response.headersSent) response.destroy();
      else sendText(response, 500, 'internal server error\n');
    }
  }

  #find(request: IncomingMessage): Handler | undefined {
    const path = requestPath(request);
    const host = (request.headers.host ?? '').replace(/:[0-9]*$/, '');
    if (path === undefined) return undefined;
    let found: Served | undefined;
    for (const candidate of this.#handlers) {
      if (!candidate.pattern.matches(host, path)) continue;
      if (found === undefined || candidate.pattern.precision > found.pattern.precision) found = candidate;
    }
    return found?.handler;
  }

  /** Stops listening and ends all connections within a second; safe to repeat. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing ??= this.#close();
    await this.#closing;
  }

  async #close(): Promise<void> {
    const abort = setTimeout(() => this.#server.closeAllConnections(), closeGraceMs);
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeIdleConnections();
    });
    clearTimeout(abort);
  }
}

/**
 * Listens. Paths are added afterwards; until then everything is 404.
 *
 * @throws {ListenAddressError} for an address that cannot be listened on, a taken port included; Go's text.
 */
export async function startDiagnosticsServer(options: DiagnosticsServerOptions): Promise<DiagnosticsServer> {
  const { host, port } = parseListenAddress(options.address);
  const requestTimeout = options.requestTimeoutMs ?? 10_000;
  const server = createServer({
    maxHeaderSize: maxHeaderBytes,
    headersTimeout: requestTimeout,
    requestTimeout,
    connectionsCheckingInterval: Math.min(1_000, requestTimeout),
    keepAliveTimeout: options.idleTimeoutMs ?? 30_000,
  });
  server.maxHeadersCount = 100;
  server.timeout = options.idleTimeoutMs ?? 30_000;
  await listen(server, options.address, { port, ...(host === '' ? {} : { host }) });
  options.logger.info({ address: options.address }, 'Listening for HTTP');
  return new DiagnosticsServer(server, options.logger);
}

async function listen(server: Server, address: string, options: { host?: string; port: number }): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<undefined>();
  server.once('error', reject);
  server.listen(options, () => resolve(undefined));
  try {
    await promise;
  } catch (error) {
    throw listenError(address, error as NodeJS.ErrnoException);
  } finally {
    server.off('error', reject);
  }
}

const bindReasons = new Map([
  ['EADDRINUSE', 'bind: address already in use'],
  ['EACCES', 'bind: permission denied'],
  ['EADDRNOTAVAIL', 'bind: cannot assign requested address'],
]);

function listenError(address: string, error: NodeJS.ErrnoException): ListenAddressError {
  const reason = bindReasons.get(error.code ?? '');
  if (reason !== undefined) return new ListenAddressError(`listen tcp ${address}: ${reason}`, { cause: error });
  if (error.syscall !== 'getaddrinfo') return new ListenAddressError(`listen tcp ${address}: ${error.message}`);
  return new ListenAddressError(`listen tcp: lookup ${parseListenAddress(address).host}: no such host`);
}

/** The decoded path without its query; undefined if it cannot be decoded. */
function requestPath(request: IncomingMessage): string | undefined {
  const target = (request.url ?? '').replace(/^https?:\/\/[^/?#]*/i, '');
  const path = target.replace(/[?#].*$/s, '');
  try {
    return decodeURIComponent(path === '' ? '/' : path);
  } catch {
    return undefined;
  }
}

function hasBody(request: IncomingMessage): boolean {
  const length = request.headers['content-length'];
  return request.headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0');
}

/** Responds with a short text. Unless it is a success, browsers must not guess its type. */
export function sendText(response: ServerResponse, status: number, text: string): void {
  response.statusCode = status;
  response.setHeader('Content-Type', 'text/plain; charset=utf-8');
  if (status !== 200) response.setHeader('X-Content-Type-Options', 'nosniff');
  response.end(text);
}

/** The response for a path that is not served, as Go gives it. */
export function sendNotFound(response: ServerResponse): void {
  sendText(response, 404, '404 page not found\n');
}

/** Responds with a page. */
export function sendHtml(response: ServerResponse, html: string): void {
  response.setHeader('Content-Type', 'text/html; charset=utf-8');
  response.setHeader('X-Content-Type-Options', 'nosniff');
  response.end(html);
}

/** Responds with a file to save. */
export function sendFile(response: ServerResponse, name: string, content: string | Buffer): void {
  response.setHeader('Content-Type', 'application/octet-stream');
  response.setHeader('Content-Disposition', `attachment; filename="${name}"`);
  response.setHeader('X-Content-Type-Options', 'nosniff');
  response.end(content);
}

/**
 * Serves a health check: 200 `ok`, or 500 with the problem.
 *
 * @param check - the problem, or undefined while all is well. Must not wait.
 * @see Kubernetes, "Configure Liveness, Readiness and Startup Probes".
 */
export function healthHandler(
  check: () => string | undefined,
): (request: IncomingMessage, response: ServerResponse) => void {
  return (_request, response) => {
    const problem = check();
    if (problem === undefined) sendText(response, 200, 'ok');
    else sendText(response, 500, `internal server error: ${problem}\n`);
  };
}
