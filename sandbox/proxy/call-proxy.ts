/**
 * Stands between a sidecar and a driver, and spoils calls. It passes on HTTP/2 streams as they are, so it works for every
 * message that the two exchange, known or not.
 */
import { once } from 'node:events';
import {
  type ClientHttp2Session,
  connect,
  constants,
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import net from 'node:net';
import type { Readable } from 'node:stream';
import { status } from '@grpc/grpc-js';
import type { CodeName } from '../hostpath/call-error.ts';
import type { FaultAction } from './call-fault.ts';
import type { FaultSource } from './fault-source.ts';
import { listeningProcess } from './listening-process.ts';

const { HTTP2_HEADER_CONTENT_TYPE, HTTP2_HEADER_PATH, HTTP2_HEADER_STATUS, NGHTTP2_CANCEL } = constants;

export interface CallProxyOptions {
  /** Of the driver. */
  readonly driverSocket: string;
  /** Where the proxy listens. */
  readonly socketPath: string;
  readonly faults: Pick<FaultSource, 'take'>;
  /** Takes a line about each fault. */
  readonly report: (text: string) => void;
  /** Takes each call that has reached the driver, at its end. Default: nothing does. */
  readonly observe?: ((call: ObservedCall) => void) | undefined;
}

/** A call that has ended. */
export interface ObservedCall {
  /** Such as `/csi.v1.Controller/CreateVolume`. */
  readonly path: string;
  /** The message; undefined where the caller ended before. */
  readonly request: Buffer | undefined;
  /** Of gRPC; 0 is OK. */
  readonly code: number;
  /** Text of the error as it is sent, percent-encoded; empty for none. */
  readonly text: string;
  /** The message that the caller got, or is to get; undefined for none. */
  readonly response: Buffer | undefined;
}

/** A call of the sidecar. */
interface Call {
  readonly stream: ServerHttp2Stream;
  readonly headers: IncomingHttpHeaders;
  /** The connection to the driver that goes with the sidecar's. */
  readonly driver: ClientHttp2Session;
  /** Ends the sidecar's connection as a driver does that dies. */
  readonly cut: () => void;
}

/** A proxy that listens, until it is disposed of. */
export class CallProxy implements AsyncDisposable {
  readonly #options: CallProxyOptions;
  readonly #server: Http2Server;
  readonly #sockets = new Set<net.Socket>();

  private constructor(options: CallProxyOptions) {
    this.#options = options;
    this.#server = createServer();
    let connected: net.Socket;
    this.#server.prependListener('connection', (socket: net.Socket) => (connected = socket)); // its session comes next
    this.#server.on('session', (session) => this.#serve(session, connected));
    this.#server.on('sessionError', () => undefined); // a client that ended is not news
  }

  /** @throws when it cannot listen. */
  static async start(options: CallProxyOptions): Promise<CallProxy> {
    const proxy = new CallProxy(options);
    proxy.#server.listen(options.socketPath);
    await once(proxy.#server, 'listening');
    return proxy;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  /** Each connection has one to the driver, which ends with it: a sidecar notices a driver that goes away as without the proxy. */
  #serve(session: ServerHttp2Session, socket: net.Socket): void {
    this.#sockets.add(socket);
    const cut = (): void => void socket.destroy(); // the end of the session alone would say so politely
    const { driverSocket } = this.#options;
    const driver = connect('http://localhost', { createConnection: () => net.connect(driverSocket) });
    driver.on('error', cut);
    driver.once('close', cut);
    session.on('error', cut);
    session.once('close', () => {
      this.#sockets.delete(socket);
      driver.destroy();
    });
    session.on('stream', (stream, headers) => void this.#pass({ stream, headers, driver, cut }));
  }

  async #pass(call: Call): Promise<void> {
    const { stream, headers, driver } = call;
    stream.on('error', () => undefined); // its close says the same
    const fault = this.#take(String(headers[HTTP2_HEADER_PATH]), stream);
    if (fault === 'refused') return;
    if (fault?.kind === 'code') {
      refuse(stream, fault.code, 'injected by csi-sandbox --fault');
      return;
    }
    if (fault?.kind === 'delay') await unlessClosed(stream, fault.ms);
    if (!stream.closed && !driver.closed) this.#forward(call, fault);
  }

  #take(path: string, stream: ServerHttp2Stream): FaultAction | 'refused' | undefined {
    const method = path.split('/').at(-1) ?? '';
    try {
      const fault = this.#options.faults.take(method);
      if (fault !== undefined) this.#options.report(`Fault: ${method} ${described(fault)}`);
      return fault;
    } catch (error) {
      refuse(stream, 'INTERNAL', (error as Error).message);
      return 'refused';
    }
  }

  #forward({ stream, headers, driver, cut }: Call, fault: FaultAction | undefined): void {
    const { observe } = this.#options;
    const call = driver.request(headers, { endStream: false });
    call.on('error', () => stream.close(NGHTTP2_CANCEL));
    const request = observe && collected(stream);
    let response: (() => Buffer) | undefined;
    let trailers: IncomingHttpHeaders = {};
    let observed = false;
    const end = (): void => {
      if (observed) return;
      observed = true;
      observe?.({
        path: String(headers[HTTP2_HEADER_PATH]),
        request: messageOf(request?.()),
        code: Number(trailers['grpc-status'] ?? status.UNKNOWN),
        text: String(trailers['grpc-message'] ?? ''),
        response: messageOf(response?.()),
      });
    };
    call.once('close', end);
    stream.once('close', () => call.close(stream.rstCode === 0 ? undefined : stream.rstCode));
    stream.pipe(call);
    if (fault?.kind === 'kill') stream.once('end', () => setImmediate(() => this.#kill()));
    call.once('trailers', (received: IncomingHttpHeaders) => (trailers = received));
    call.once('response', (answer, flags) => {
      if (answer['grpc-status'] !== undefined) trailers = answer; // a response that is an error alone
      if (fault?.kind === 'drop' || fault?.kind === 'kill') call.resume();
      else if (fault?.kind === 'cut') cut();
      else if (fault?.kind === 'late') void unlessClosed(stream, fault.ms).then(() => respond());
      else if (fault?.kind === 'hold') {
        const body = (response = collected(call));
        call.once('end', () => {
          end(); // whoever holds it knows what is held
          void fault.until.then(() => respond(body()));
        });
      } else respond();
      function respond(held?: Buffer): void {
        if (stream.closed) return;
        const endStream = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0;
        stream.once('wantTrailers', () => {
          end(); // before the caller has all of it
          stream.sendTrailers(trailers);
        });
        if (endStream) end();
        stream.respond(answer, { endStream, waitForTrailers: !endStream });
        if (held !== undefined) {
          if (!endStream) stream.end(held);
          return;
        }
        response = observe && collected(call);
        if (!endStream) call.pipe(stream);
      }
    });
  }

  #kill(): void {
    const { driverSocket, report } = this.#options;
    const pid = listeningProcess(driverSocket);
    if (pid === undefined) report(`Fault: no process of this user listens on ${driverSocket}, so none was killed`);
    else process.kill(pid, 'SIGKILL');
  }
}

/** What comes of a stream from now on. */
function collected(stream: Readable): () => Buffer {
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  return () => Buffer.concat(chunks);
}

/** A unary call has one message, after a byte for its compression, which nobody uses here, and four for its length. */
function messageOf(body: Buffer | undefined): Buffer | undefined {
  return body === undefined || body.length < 5 || body[0] !== 0 ? undefined : body.subarray(5);
}

/** A response that is an error alone. */
function refuse(stream: ServerHttp2Stream, code: CodeName, message: string): void {
  stream.respond(
    {
      [HTTP2_HEADER_STATUS]: 200,
      [HTTP2_HEADER_CONTENT_TYPE]: 'application/grpc+proto',
      'grpc-status': String(status[code]),
      'grpc-message': encodeURI(message),
    },
    { endStream: true },
  );
}

/** Resolves after so many milliseconds, or when the caller has given up. */
async function unlessClosed(stream: ServerHttp2Stream, ms: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => resolve(undefined), ms);
  stream.once('close', () => resolve(undefined));
  await promise;
  clearTimeout(timer);
}

function described(fault: FaultAction): string {
  switch (fault.kind) {
    case 'drop':
      return 'reaches the driver, its response is dropped';
    case 'delay':
      return `reaches the driver ${fault.ms} ms late`;
    case 'late':
      return `is answered ${fault.ms} ms late`;
    case 'hold':
      return 'reaches the driver, its response is held back';
    case 'code':
      return `fails with ${fault.code} and does not reach the driver`;
    case 'cut':
      return 'reaches the driver, the connection is cut instead of its response';
    case 'kill':
      return 'reaches the driver, which is killed';
  }
}
