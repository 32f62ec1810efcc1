/** A driver's end of the socket without any gRPC library: HTTP/2 streams, answered by hand. */
import { mkdtemp, rm } from 'node:fs/promises';
import http2 from 'node:http2';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** One call: its method and request bytes are known; what happens to it is the handler's affair. */
export interface RawCall {
  /** Method name without service. */
  method: string;
  /** The encoded request message. */
  request: Buffer;
  stream: http2.ServerHttp2Stream;
  /** Milliseconds the caller waits, as it says itself; infinite if it does not. */
  timeoutMs: number;
}

export type RawHandler = (call: RawCall) => void;

/** Takes a connection away from HTTP/2: true when it did. */
export type Interceptor = (socket: net.Socket) => boolean;

/** Answers with one encoded message and status OK. */
export function answerWith({ stream }: RawCall, message: Buffer): void {
  stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
  const header = Buffer.alloc(5);
  header.writeUInt32BE(message.length, 1);
  stream.end(Buffer.concat([header, message]));
}

/** A listening server; dispose it. */
export class RawGrpcServer implements AsyncDisposable {
  readonly socketPath: string;
  readonly calls: RawCall[] = [];
  /** What happens to each new connection before HTTP/2 sees it. */
  intercept: Interceptor = () => false;
  /** Connections so far. */
  connections = 0;
  readonly #folder: string;
  readonly #listener: net.Server;
  readonly #sockets = new Set<net.Socket>();

  private constructor(folder: string, handler: RawHandler) {
    this.#folder = folder;
    this.socketPath = join(folder, 'csi.sock');
    // without a limit of its own for what it sends, as servers of gRPC libraries
    const server = http2.createServer({ maxSendHeaderBlockLength: Number.MAX_SAFE_INTEGER });
    this.#listener = net.createServer((socket) => {
      this.connections += 1;
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
      socket.on('error', () => undefined);
      if (!this.intercept(socket)) server.emit('connection', socket);
    });
    server.on('session', (session) => session.on('error', () => undefined));
    server.on('stream', (stream, headers) => {
      const chunks: Buffer[] = [];
      stream.on('error', () => undefined);
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        const method = headers[':path']?.split('/').at(-1) ?? '';
        const timeoutMs = milliseconds(String(headers['grpc-timeout'] ?? ''));
        const call = { method, request: Buffer.concat(chunks).subarray(5), stream, timeoutMs };
        this.calls.push(call);
        handler(call);
      });
    });
  }

  static async start(handler: RawHandler): Promise<RawGrpcServer> {
    const server = new RawGrpcServer(await mkdtemp(join(tmpdir(), 'raw-grpc-')), handler);
    await new Promise<void>((resolve) => server.#listener.listen(server.socketPath, resolve));
    return server;
  }

  callsOf(method: string): RawCall[] {
    return this.calls.filter((call) => call.method === method);
  }

  /** Cuts all connections; new ones are taken. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    this.#listener.close();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

/** gRPC over HTTP/2, "Timeout": a number and its unit. */
function milliseconds(timeout: string): number {
  const [, amount = 'Infinity', unit = 'm'] = /^(\d+)([HMSmun])$/.exec(timeout) ?? [];
  const perUnit: Record<string, number> = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 1e-3, n: 1e-6 };
  return Number(amount) * (perUnit[unit] ?? 1);
}
