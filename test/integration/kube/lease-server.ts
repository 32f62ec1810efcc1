/** A scripted API server that holds one Lease, and electors that compete for it, all under one clock. */
import { randomUUID } from 'node:crypto';
import type { Clock } from '../../../src/base/clock.ts';
import { LeaderElector } from '../../../src/kube/election/leader-elector.ts';
import type { LeaderElectorOptions } from '../../../src/kube/election/leader-elector-options.ts';
import type { Lease, LeaseRecord } from '../../../src/kube/election/lease-record.ts';
import type { ObjectReference } from '../../../src/kube/kube-object.ts';
import { connect } from '../../../src/kube/client/connect.ts';
import type { Transport } from '../../../src/kube/client/transport.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';
import { type LogLine, recordedLogger } from '../../support/fakes/recorded-logger.ts';
import { type ScriptedReply, type ScriptedRequest, ScriptedServer } from '../../support/fakes/scripted-server.ts';

const collection = '/apis/coordination.k8s.io/v1/namespaces/ns/leases';

export class LeaseServer implements AsyncDisposable {
  readonly clock = new ManualClock({ awaitsResponses: false });
  readonly server: ScriptedServer;
  readonly #watches = new Set<ScriptedReply>();
  readonly #cutOff = new Set<string>();
  readonly #delayMs = new Map<string, number>();
  readonly #deadPorts = new Set<number>();
  /** What came while the server stands still. */
  #held: (() => void)[] | undefined;
  readonly #candidates: Candidate[] = [];
  readonly #transports: Transport[] = [];
  readonly log: LogLine[] = [];
  readonly #uid = randomUUID();
  #lease: Lease | undefined;
  #version = 100;
  /** Whether watches hear of changes; without, standbys have only their own attempts. */
  tellsWatches = true;
  /** Called after each answer to a GET of the Lease. */
  onRead = (): void => undefined;

  private constructor(server: ScriptedServer) {
    this.server = server;
    server.otherwise((reply, request) => this.#answer(reply, request));
  }

  static async start(): Promise<LeaseServer> {
    let now = (): number => 0;
    const leases = new LeaseServer(await ScriptedServer.start({ now: () => now() }));
    now = () => leases.clock.monotonicMs();
    return leases;
  }

  get spec(): LeaseRecord | undefined {
    return this.#lease?.spec;
  }

  get lease(): Lease | undefined {
    return this.#lease;
  }

  /** Writes the Lease past all checks, as somebody with kubectl would. */
  edit(spec: LeaseRecord, labels?: Record<string, string>): void {
    const metadata = { namespace: 'ns', name: 'lock', ...(labels && { labels }) };
    this.#store({ ...this.#lease, metadata: { ...this.#lease?.metadata, ...metadata }, spec });
  }

  /** As a PUT would, past all checks. */
  write(lease: Lease): void {
    this.#store(lease);
  }

  remove(): void {
    const old = this.#lease;
    this.#lease = undefined;
    if (old !== undefined) this.#tell('DELETED', this.#versioned(old));
  }

  /** From now on requests of this elector get no answer, as if the network between were gone. */
  cutOff(identity: string): void {
    this.#cutOff.add(identity);
  }

  /** The server stands still until `goOn`, as a process that is stopped: it answers nothing, and reads later what comes. */
  standStill(): void {
    this.#held = [];
  }

  goOn(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const answer of held) answer();
  }

  /** All connections stay open and silent from now on, as when the server behind a balancer dies; new ones work. */
  silenceConnections(): void {
    for (const { port } of this.server.requests) this.#deadPorts.add(port);
  }

  /** From now on writes of this elector take effect at once and are answered this late. */
  delayAnswers(identity: string, delayMs: number): void {
    this.#delayMs.set(identity, delayMs);
  }

  /** Requests of one elector that write. */
  writesOf(identity: string): ScriptedRequest[] {
    return this.server.requests.filter(({ method, headers }) => method !== 'GET' && headers['user-agent'] === identity);
  }

  elector(identity: string, options: Partial<LeaderElectorOptions> & { clock?: Clock } = {}): Candidate {
    const clock = options.clock ?? this.clock;
    const logger = recordedLogger(this.log, { identity });
    const transport = this.transport(identity, clock);
    const candidate = new Candidate(this.clock, {
      transport,
      namespace: 'ns',
      name: 'lock',
      identity,
      clock,
      logger,
      random: () => 0.5,
      ...options,
    });
    this.#candidates.push(candidate);
    return candidate;
  }

  /** A transport that names itself as this user agent. */
  transport(userAgent: string, clock: Clock): Transport {
    const logger = recordedLogger(this.log, { identity: userAgent });
    const transport = connect({ master: this.server.url, environment: {}, userAgent, clock, logger });
    this.#transports.push(transport);
    return transport;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#candidates.map((candidate) => candidate.end()));
    await Promise.all(this.#transports.map((transport) => transport[Symbol.asyncDispose]()));
    await this.server[Symbol.asyncDispose]();
  }

  #answer(reply: ScriptedReply, request: ScriptedRequest): void {
    if (this.#deadPorts.has(request.port)) return;
    if (this.#held !== undefined) {
      this.#held.push(() => this.#answer(reply, request));
      return;
    }
    const { method, path, query, body } = request;
    if (this.#cutOff.has(request.headers['user-agent'] ?? '')) return;
    if (method === 'GET' && path === collection && query.has('watch')) this.#watch(reply);
    else if (method === 'POST' && path === collection) this.#create(this.#late(reply, request), body as Lease);
    else if (method === 'PUT' && path === `${collection}/lock`) this.#update(this.#late(reply, request), body as Lease);
    else if (method === 'GET' && path === `${collection}/lock` && this.#lease !== undefined) {
      reply.json(200, this.#lease);
      this.onRead();
    } else reply.status(404, 'NotFound');
  }

  #watch(reply: ScriptedReply): void {
    reply.open();
    if (this.#lease !== undefined) reply.event('ADDED', this.#lease);
    const metadata = {
      resourceVersion: String(this.#version),
      annotations: { 'k8s.io/initial-events-end': 'true' },
    };
    reply.event('BOOKMARK', { kind: 'Lease', apiVersion: 'coordination.k8s.io/v1', metadata });
    this.#watches.add(reply);
    void reply.closed.then(() => this.#watches.delete(reply));
  }

  /** The reply, or one that keeps the whole answer back. */
  #late(reply: ScriptedReply, { headers }: ScriptedRequest): Pick<ScriptedReply, 'json' | 'status'> {
    const delayMs = this.#delayMs.get(headers['user-agent'] ?? '') ?? 0;
    if (delayMs === 0) return reply;
    return {
      json: (...answer) => void this.clock.after(delayMs, () => reply.json(...answer)),
      status: (...answer) => void this.clock.after(delayMs, () => reply.status(...answer)),
    };
  }

  #create(reply: Pick<ScriptedReply, 'json' | 'status'>, lease: Lease): void {
    if (this.#lease !== undefined) reply.status(409, 'AlreadyExists');
    else reply.json(201, this.#store(lease));
  }

  #update(reply: Pick<ScriptedReply, 'json' | 'status'>, lease: Lease): void {
    if (this.#lease === undefined) reply.status(404, 'NotFound');
    else if (this.#lease.metadata.resourceVersion !== lease.metadata.resourceVersion) reply.status(409, 'Conflict');
    else reply.json(200, this.#store(lease));
  }

  #store(lease: Lease): Lease {
    const type = this.#lease === undefined ? 'ADDED' : 'MODIFIED';
    this.#lease = this.#versioned(lease);
    this.#tell(type, this.#lease);
    return this.#lease;
  }

  #versioned(lease: Lease): Lease {
    this.#version += 1;
    const kind = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' };
    return {
      ...kind,
      ...lease,
      metadata: { ...lease.metadata, uid: this.#uid, resourceVersion: String(this.#version) },
    };
  }

  #tell(type: string, lease: Lease): void {
    if (this.tellsWatches) for (const watch of this.#watches) watch.event(type, lease);
  }
}

/** One elector and what became of it. */
export class Candidate {
  readonly elector: LeaderElector;
  readonly events: string[] = [];
  readonly #stop = new AbortController();
  readonly #clock: ManualClock;
  #work = Promise.withResolvers<undefined>();
  #ended: Promise<void> | undefined;
  /** Called in the moment in which the lease is lost. */
  onLost: () => void = () => undefined;
  leadsSinceMs: number | undefined;
  lostAtMs: number | undefined;
  lostBecause: Error | undefined;
  outcome: string | undefined;

  constructor(clock: ManualClock, options: Omit<LeaderElectorOptions, 'recorder'>) {
    this.#clock = clock;
    const event = (_about: ObjectReference, type: string, reason: string, message: string): void =>
      void this.events.push(`${type} ${reason}: ${message}`);
    this.elector = new LeaderElector({ ...options, recorder: { event } });
  }

  /** Joins the election; the work goes on until `finish`, `fail`, or the loss of the lease. */
  run(): this {
    const work = async (lost: AbortSignal): Promise<void> => {
      this.leadsSinceMs = this.#clock.monotonicMs();
      const gone = Promise.withResolvers<undefined>();
      lost.addEventListener('abort', () => {
        this.lostAtMs = this.#clock.monotonicMs();
        this.lostBecause = lost.reason as Error;
        this.onLost();
        gone.resolve(undefined);
      });
      await Promise.race([this.#work.promise, gone.promise]);
    };
    this.#ended = this.elector.run({ stop: this.#stop.signal, work }).then(
      (outcome) => void (this.outcome = outcome),
      (error: unknown) => void (this.outcome = `threw ${String(error)}`),
    );
    return this;
  }

  get leads(): boolean {
    return this.leadsSinceMs !== undefined && this.lostAtMs === undefined && this.outcome === undefined;
  }

  finish(): void {
    this.#work.resolve(undefined);
  }

  fail(error: Error): void {
    this.#work.reject(error);
  }

  stop(): void {
    this.#stop.abort(new Error('stopping'));
  }

  /** Ends whatever it does, without caring how. */
  async end(): Promise<void> {
    this.stop();
    this.finish();
    const ended = this.#ended;
    if (ended === undefined || this.outcome !== undefined) return;
    await this.#clock.until(() => this.outcome !== undefined);
    await ended;
  }
}
