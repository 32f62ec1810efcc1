/** A driver that answers as a test tells it, beside the program as a process of its own. */
import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { type StartedProcess, startProcess } from '../../support/started-process.ts';
import { ApiScene, driverName } from '../../support/api-scene.ts';
import { createdVolume, encoded, startAnswers } from './encoded-answers.ts';
import { answerWith, type RawCall, type RawHandler, RawGrpcServer } from './raw-grpc-server.ts';
import { StoredCluster } from './stored-cluster.ts';

const main = join(import.meta.dirname, '../../../src/main.ts');
/** Little room, in MiB: what is not let go of ends the program early. */
const memoryLimits = ['--max-old-space-size=64', '--max-semi-space-size=4'];
export const storageClass = {
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: { name: 'sc' },
  provisioner: driverName,
  reclaimPolicy: 'Delete',
  volumeBindingMode: 'Immediate',
};

/** Ids are made from names, as many drivers do; unique for each claim. */
export const behave: RawHandler = (call) => {
  const { method, request } = call;
  if (method === 'CreateVolume')
    answerWith(call, createdVolume(/pvc-[0-9a-f-]{36}/.exec(request.toString('latin1'))?.[0] ?? ''));
  else answerWith(call, startAnswers[method] ?? Buffer.alloc(0));
};

/** gRPC over HTTP/2: `Length-Prefixed-Message` of any bytes, with any claim about their number. */
const framed = (body: Buffer, claimedLength = body.length, flag = 0): Buffer => {
  const header = Buffer.alloc(5);
  header.writeUInt8(flag, 0);
  header.writeUInt32BE(claimedLength, 1);
  return Buffer.concat([header, body]);
};

const respond = (
  { stream }: RawCall,
  body: Buffer,
  trailers: Record<string, string> | undefined,
  headers = {},
): void => {
  const head = { ':status': 200, 'content-type': 'application/grpc', ...headers };
  stream.respond(head, { waitForTrailers: trailers !== undefined });
  if (trailers !== undefined) stream.on('wantTrailers', () => stream.sendTrailers(trailers));
  stream.end(body);
};

const ok = { 'grpc-status': '0' };
export const unimplemented: RawHandler = ({ stream }) =>
  stream.respond({ ':status': 200, 'content-type': 'application/grpc', 'grpc-status': '12' }, { endStream: true });

/** The program with a driver that a test may let loose. */
export class HostileScene extends ApiScene {
  readonly raw: RawGrpcServer;
  readonly sidecar: StartedProcess;
  /** How CreateVolume is answered now. */
  createVolume: RawHandler = behave;
  /** How everything else is answered now. */
  others: RawHandler = behave;
  #serial = 0;

  private constructor(parts: { raw: RawGrpcServer; cluster: StoredCluster; sidecar: StartedProcess }) {
    const { raw, cluster, sidecar } = parts;
    super({ server: cluster.server, url: cluster.url, opened: new AsyncDisposableStack() });
    this.raw = raw;
    this.sidecar = sidecar;
    this.opened.use(cluster);
    this.opened.use(raw);
    this.opened.defer(() => sidecar.stop('SIGKILL'));
  }

  static async start(flags: readonly string[] = []): Promise<HostileScene> {
    const raw = await RawGrpcServer.start((call) => {
      if (call.method === 'CreateVolume') scene.createVolume(call);
      else scene.others(call);
    });
    const cluster = await StoredCluster.start([storageClass]);
    const sidecar = await startProcess({
      program: process.execPath,
      args: [
        ...memoryLimits,
        main,
        `--csi-address=${raw.socketPath}`,
        `--master=${cluster.url}`,
        '--timeout=1s',
        '--retry-interval-start=20ms',
        '--retry-interval-max=100ms',
        ...flags,
      ],
      env: { KUBECONFIG: undefined },
    });
    const scene = new HostileScene({ raw, cluster, sidecar }); // there before the first call
    return scene;
  }

  override until<T>(what: string, read: () => T | undefined | false): Promise<T> {
    return super.until(what, () => {
      if (!this.sidecar.running()) throw new Error(`the program has ended\n${this.sidecar.log()}`);
      return read();
    });
  }

  async logged(text: string, from = 0): Promise<void> {
    await this.until(`a log line with ${text}`, () => this.sidecar.log().slice(from).includes(text));
  }

  addClaim(): string {
    return this.createClaim(`c${++this.#serial}`).metadata.name;
  }

  /** Messages of warnings about a claim. */
  warnings(claimName: string): string[] {
    return this.events(claimName).flatMap(({ type, message }) => (type === 'Warning' ? [message] : []));
  }

  async warning(claimName: string, text: string | RegExp): Promise<void> {
    await this.until(`a warning ${String(text)} about ${claimName}, not only ${this.warnings(claimName).join()}`, () =>
      this.warnings(claimName).some((message) =>
        typeof text === 'string' ? message.includes(text) : text.test(message),
      ),
    );
  }

  /** The driver behaves, and the program proves that it works. */
  async calm(claimName = this.addClaim()): Promise<void> {
    this.createVolume = behave;
    this.others = behave;
    this.raw.intercept = () => false;
    await this.volume(claimName);
  }

  /** Resident memory of the program, in MiB. */
  async residentMib(): Promise<number> {
    const status = await readFile(`/proc/${this.sidecar.pid}/status`, 'utf8');
    return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
  }
}

const fourMib = 4 * 1024 * 1024;
const big = Buffer.alloc(fourMib + 1, 0x20);
const bomb = framed(gzipSync(Buffer.alloc(16 * fourMib)), undefined, 1);

/** Answers to CreateVolume and what people are told. */
export const answers: { title: string; answer: RawHandler; told: string | RegExp }[] = [
  {
    title: 'no volume in the answer',
    answer: (call) => answerWith(call, Buffer.alloc(0)),
    told: /the response to CreateVolume has no volume$/,
  },
  {
    title: 'an id that is empty',
    answer: (call) => answerWith(call, createdVolume('')),
    told: /the response to CreateVolume has no volume_id$/,
  },
  {
    title: 'a negative capacity',
    answer: (call) => answerWith(call, encoded('CreateVolume', { volume: { volume_id: 'v', capacity_bytes: '-5' } })),
    told: 'created volume capacity -5 less than requested capacity 1073741824',
  },
  {
    title: 'the smallest capacity there is',
    answer: (call) =>
      answerWith(call, encoded('CreateVolume', { volume: { volume_id: 'v', capacity_bytes: '-9223372036854775808' } })),
    told: 'created volume capacity -9223372036854775808 less than requested capacity 1073741824',
  },
  {
    title: 'an answer above 4 MiB',
    answer: (call) => respond(call, framed(big), ok),
    told: 'rpc error: code = ResourceExhausted desc = ',
  },
  {
    title: 'an answer that claims to have 2 GiB',
    answer: (call) => respond(call, framed(Buffer.from('abc'), 0x7fffffff), ok),
    told: 'rpc error: code = ResourceExhausted desc = ',
  },
  {
    title: 'an answer that ends in the middle',
    answer: (call) => respond(call, framed(Buffer.from('abc'), 100), ok),
    told: /rpc error: code = (Internal|Unimplemented) desc = /,
  },
  {
    title: 'bytes that are no message',
    answer: (call) => respond(call, framed(Buffer.from([0xff, 0xff, 0xff, 0xff, 0x0a, 0xff])), ok),
    told: 'rpc error: code = Internal desc = ',
  },
  {
    title: 'a compression that nobody knows',
    answer: (call) => respond(call, framed(Buffer.from('abc'), 3, 1), ok, { 'grpc-encoding': 'snappy' }),
    told: 'rpc error: code = Internal desc = grpc: failed to decompress the received message',
  },
  {
    title: 'bytes that are not gzip',
    answer: (call) => respond(call, framed(Buffer.from('abc'), 3, 1), ok, { 'grpc-encoding': 'gzip' }),
    told: 'rpc error: code = Internal desc = Failed to decompress gzip-encoded message',
  },
  {
    title: 'a small answer that unpacks to 64 MiB',
    answer: (call) => respond(call, bomb, ok, { 'grpc-encoding': 'gzip' }),
    told: 'rpc error: code = ResourceExhausted desc = ',
  },
  {
    title: 'an id that is not UTF-8',
    answer: (call) => {
      const answer = createdVolume('vol');
      answer.writeUInt8(0xff, answer.indexOf('vol'));
      answerWith(call, answer);
    },
    told: 'string field contains invalid UTF-8',
  },
  {
    title: 'OK without a message',
    answer: (call) => respond(call, Buffer.alloc(0), ok),
    told: /rpc error: code = (Internal|Unimplemented) desc = /,
  },
  {
    title: 'two messages',
    answer: (call) => respond(call, Buffer.concat([framed(createdVolume('a')), framed(createdVolume('b'))]), ok),
    told: /rpc error: code = (Internal|DeadlineExceeded) desc = /,
  },
  {
    title: 'a message without a status',
    answer: (call) => respond(call, framed(createdVolume('a')), undefined),
    told: /rpc error: code = (Unknown|Internal) desc = /,
  },
  {
    title: 'a status that is no number',
    answer: (call) => respond(call, Buffer.alloc(0), { 'grpc-status': 'fine' }),
    told: /rpc error: code = .* desc = /,
  },
  {
    title: 'a status that does not exist',
    answer: (call) => respond(call, Buffer.alloc(0), { 'grpc-status': '4711', 'grpc-message': '%ZZ%' }),
    told: 'rpc error: code = Code(4711) desc = ',
  },
  {
    title: 'an error page of a web server',
    answer: (call) => respond(call, Buffer.from('<html>'), undefined, { ':status': 502, 'content-type': 'text/html' }),
    told: 'rpc error: code = Unavailable desc = ',
  },
  {
    title: 'a very long error text',
    answer: (call) => respond(call, Buffer.alloc(0), { 'grpc-status': '13', 'grpc-message': 'x'.repeat(7000) }),
    told: 'rpc error: code = Internal desc = xxxx',
  },
  { title: 'a service that is another', answer: unimplemented, told: 'rpc error: code = Unimplemented desc = ' },
  {
    title: 'nothing at all',
    answer: () => undefined,
    told: 'rpc error: code = DeadlineExceeded desc = context deadline exceeded',
  },
  {
    title: 'headers and then nothing',
    answer: ({ stream }) => stream.respond({ ':status': 200, 'content-type': 'application/grpc' }),
    told: 'rpc error: code = DeadlineExceeded desc = context deadline exceeded',
  },
];

/** What new connections meet. */
export const greetings: { title: string; intercept: (socket: Socket) => boolean }[] = [
  { title: 'garbage', intercept: (socket) => socket.write(Buffer.alloc(4096, 0xa5)) || true },
  { title: 'a page of HTTP/1.1', intercept: (socket) => Boolean(socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')) },
  { title: 'the end of the connection', intercept: (socket) => Boolean(socket.destroy()) },
  { title: 'silence', intercept: () => true },
  {
    title: 'a frame that claims 16 MiB',
    intercept: (socket) => socket.write(Buffer.from([0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0])) || true,
  },
];
