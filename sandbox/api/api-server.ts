import { createServer as createHttpServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import { type Logger, silentLogger } from '../../src/base/logger.ts';
import { AppendLog, type PersistenceOptions } from './append-log.ts';
import { Authentication, type AuthenticationOptions } from './authentication.ts';
import { Authorization, type AuthorizationOptions, bootstrapRoles } from './authorization.ts';
import { builtInResources } from './built-in-resources.ts';
import { CertificateAuthority } from './certificates.ts';
import type { SandboxClient, Subscription } from './client.ts';
import { serveCustomResources } from './custom-resources.ts';
import { kubernetesVersion } from './discovery.ts';
import { EmbeddedRequests } from './embedded-requests.ts';
import { EventExpiry, EventRecording } from './event-recording.ts';
import { Faults } from './faults.ts';
import { InProcessClient } from './in-process-client.ts';
import { stringAt } from './json.ts';
import type { RandomSource } from './names.ts';
import { ObjectRegistry } from './object-registry.ts';
import { PathRequests } from './path-requests.ts';
import { RequestHandler } from './request-handler.ts';
import { RequestLog } from './request-log.ts';
import { ResourceRequests } from './resource-requests.ts';
import { qualifiedResource, ResourceTypes } from './resource-type.ts';
import { Store } from './store.ts';

/** Everything about a server that can be chosen; the defaults are those of the demo. */
export interface ApiServerOptions {
  /** 0, the default, takes any free port. */
  readonly port?: number;
  /** HTTPS, with an authority of its own made at start or with these PEM texts; plain HTTP by default. */
  readonly tls?: boolean | { readonly cert: string; readonly key: string; readonly ca?: string };
  readonly logger?: Logger;
  readonly clock?: Clock;
  /** For names, uids and faults; seeded, two runs give the same ones. */
  readonly random?: RandomSource;
  /** Changes kept for watches and pages, for 5 min at most; 10 000 by default. */
  readonly historyLimit?: number;
  /** 60 s by default. */
  readonly bookmarkIntervalMs?: number;
  /** 410 as HTTP status of a watch instead of an ERROR event; off by default. */
  readonly goneAsHttpStatus?: boolean;
  /** Streaming lists; on by default. */
  readonly watchList?: boolean;
  /** Who is let in and what they may do; everybody everything by default. */
  readonly auth?: AuthenticationOptions & { readonly authorization?: AuthorizationOptions };
  /** Lets HTTP clients control faults and read the request log under `/embedded`; off by default. */
  readonly faults?: boolean;
  /** Groups (`snapshot.storage.k8s.io`) and resources (`volumeattributesclasses.storage.k8s.io`) not to serve. */
  readonly disabledResources?: readonly string[];
  /** Versions to serve of a resource in place of its own, as an older cluster would, by `plural.group`. */
  readonly versions?: Readonly<Record<string, readonly string[]>>;
  /** Requests kept in the log; 100 000 by default. */
  readonly requestLogLimit?: number;
  /** Keeps the objects in a file; in memory only by default. */
  readonly persistence?: PersistenceOptions;
  /** Namespaces there from the start; `default` and `kube-system` by default. */
  readonly namespaces?: readonly string[];
}

/** Node closes idle connections after 5 s by default, which clients with longer pools see as resets. */
const keepAliveMs = 130_000;
const firstRv = 1000;
const historyAgeMs = 300_000;
/** How long events live after their last write, as the default of `--event-ttl` of kube-apiserver. */
const eventTtlMs = 3_600_000;

/**
 * A Kubernetes API server in this process: real HTTP on a loopback port, objects in memory. It runs no controllers:
 * those come through `client`.
 */
export class ApiServer implements AsyncDisposable {
  /** Every request so far, for tests. */
  readonly requestLog: RequestLog;
  /** Faults to make, in process. */
  readonly faults: Faults;
  /** Tokens, to be granted and revoked. */
  readonly authentication: Authentication;
  /** Grants, to be replaced. */
  readonly authorization: Authorization;
  /** Issues client certificates; only with `tls: true`. */
  readonly certificates: CertificateAuthority | undefined;

  readonly #options: ApiServerOptions;
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #types: ResourceTypes;
  readonly #store: Store;
  readonly #registry: ObjectRegistry;
  readonly #events: EventRecording;
  readonly #expiry: EventExpiry;
  readonly #resources: ResourceRequests;
  readonly #handler: RequestHandler;
  readonly #log: AppendLog | undefined;
  readonly #customResources: Subscription;
  readonly #tls: { readonly cert: string; readonly key: string; readonly ca?: string } | undefined;
  #server: Server | undefined;

  constructor(options: ApiServerOptions = {}) {
    this.#options = options;
    const clock = (this.#clock = options.clock ?? systemClock);
    const logger = (this.#logger = options.logger ?? silentLogger);
    const random = options.random ?? Math.random;
    const disabled = new Set(options.disabledResources);
    const types = (this.#types = new ResourceTypes(
      builtInResources
        .filter((type) => !disabled.has(type.group) && !disabled.has(qualifiedResource(type)))
        .map((type) => ({ ...type, versions: options.versions?.[qualifiedResource(type)] ?? type.versions })),
    ));
    const store = (this.#store = new Store({
      clock,
      historyLimit: options.historyLimit ?? 10_000,
      historyAgeMs,
      firstRv,
    }));
    const registry = (this.#registry = new ObjectRegistry({
      store,
      clock,
      ...(options.random === undefined ? {} : { random: options.random }),
    }));
    this.#log = options.persistence === undefined ? undefined : new AppendLog({ ...options.persistence, store });
    this.#customResources = serveCustomResources({
      store,
      types,
      registry,
      clock,
      isBuiltIn: ({ group, plural }) => builtInResources.some((type) => type.group === group && type.plural === plural),
    });
    this.certificates = options.tls === true ? new CertificateAuthority({ nowMs: clock.wallMs() }) : undefined;
    this.#tls =
      this.certificates === undefined
        ? typeof options.tls === 'object'
          ? options.tls
          : undefined
        : { ...this.certificates.server(), ca: this.certificates.cert };
    this.requestLog = new RequestLog({ limit: options.requestLogLimit ?? 100_000 });
    this.faults = new Faults({ random });
    this.authentication = new Authentication({
      ...options.auth,
      clock,
      accountUid: (namespace, name) => store.get('serviceaccounts', namespace, name)?.object.metadata.uid,
    });
    this.authorization = new Authorization({ ...options.auth?.authorization, store });
    this.#events = new EventRecording({ registry, types, clock });
    this.#expiry = new EventExpiry({ store, clock, ttlMs: eventTtlMs });
    this.#resources = new ResourceRequests({
      store,
      registry,
      authentication: this.authentication,
      clock,
      random,
      watchList: options.watchList ?? true,
      watches: {
        bookmarkIntervalMs: options.bookmarkIntervalMs ?? 60_000,
        goneAsHttpStatus: options.goneAsHttpStatus ?? false,
      },
    });
    this.#handler = new RequestHandler({
      clock,
      logger,
      types,
      store,
      requestLog: this.requestLog,
      faults: this.faults,
      authentication: this.authentication,
      authorization: this.authorization,
      resources: this.#resources,
      paths: new PathRequests({
        types,
        version: kubernetesVersion,
        embedded:
          options.faults === true
            ? new EmbeddedRequests({ faults: this.faults, requestLog: this.requestLog })
            : undefined,
      }),
    });
    if (options.auth?.authorization?.mode === 'rbac') {
      for (const { plural, object } of bootstrapRoles) {
        const of = types.find({ group: 'rbac.authorization.k8s.io', version: 'v1', plural });
        const name = stringAt(object, 'metadata', 'name');
        if (of !== undefined && store.get(of.type.storage, '', name) === undefined) registry.create(of, '', object);
      }
    }
    const namespaces = types.find({ group: '', version: 'v1', plural: 'namespaces' });
    for (const name of namespaces === undefined ? [] : (options.namespaces ?? ['default', 'kube-system'])) {
      if (namespaces === undefined || store.get('namespaces', '', name) !== undefined) continue;
      registry.create(namespaces, '', { metadata: { name } });
    }
  }

  /** Opens the port; rejects if it is taken. Not to be repeated. */
  async start(): Promise<{ url: string; port: number }> {
    const { port = 0 } = this.#options;
    const tls = this.#tls;
    const settings = { keepAliveTimeout: keepAliveMs, requestTimeout: 0, noDelay: true };
    const handle = (request: IncomingMessage, response: ServerResponse): void => {
      void this.#handler.handle(request, response);
    };
    const server =
      tls === undefined
        ? createHttpServer(settings, handle)
        : createHttpsServer(
            { ...settings, ...tls, requestCert: tls.ca !== undefined, rejectUnauthorized: false },
            handle,
          );
    this.#server = server;
    const { promise, resolve, reject } = Promise.withResolvers<undefined>();
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => resolve(undefined));
    await promise;
    server.off('error', reject);
    const bound = server.address() as AddressInfo;
    const url = `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${bound.port}`;
    this.#logger.info({ url }, 'the API server listens');
    return { url, port: bound.port };
  }

  /** The API without HTTP, for a controller of this process that goes by the name `user`. */
  client(user: string): SandboxClient {
    return new InProcessClient({
      user,
      store: this.#store,
      registry: this.#registry,
      types: this.#types,
      clock: this.#clock,
      requestLog: this.requestLog,
      events: this.#events,
    });
  }

  /** PEM text of the authority that clients must trust; `undefined` over plain HTTP. */
  get ca(): string | undefined {
    return this.#tls?.ca ?? this.#tls?.cert;
  }

  /** RV of the latest change. */
  get resourceVersion(): string {
    return String(this.#store.rv);
  }

  /** Forgets the history up to `rv`, by default all of it: older watches and pages get 410. */
  compact(rv?: number): void {
    this.#store.compact(rv);
  }

  /** Ends watches, closes what is left and frees the port, within a second. Safe to repeat. */
  async close(): Promise<void> {
    this.#expiry[Symbol.dispose]();
    this.#customResources.close();
    this.#resources.endWatches();
    const server = this.#server;
    this.#server = undefined;
    if (server === undefined) {
      this.#log?.[Symbol.dispose]();
      return;
    }
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    server.closeIdleConnections();
    // Responses under way get a moment; real time, since no clock of a test may hold up the end.
    const closing = setTimeout(() => server.closeAllConnections(), 200);
    await closed;
    clearTimeout(closing);
    this.#log?.[Symbol.dispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
