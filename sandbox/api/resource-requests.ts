import type { Clock } from '../../src/base/clock.ts';
import type { Authentication } from './authentication.ts';
import { invalidObject, required } from './field-error.ts';
import { arrayAt, at, copyJson, isObject, type JsonObject, objectAt, stringAt } from './json.ts';
import { jsonPatch, mergePatch } from './json-patch.ts';
import { readList, type Scope, scopeFilter, tooLargeResourceVersion } from './list-read.ts';
import { noSuchPath, notFound, StatusError } from './status-error.ts';
import { bindPod, podStreamError, scaleOf, withScale } from './subresources.ts';
import type { ObjectRegistry, Target, WritePart, WriteResult } from './object-registry.ts';
import { choosePresentation, Renderer } from './presentation.ts';
import { parseReadOptions, type ReadOptions } from './read-options.ts';
import { objectTypes, parseBody, parseObject } from './request-body.ts';
import { deleteOptions, patchTypes, readDeleteOptions, type ResourceRequest, writeOptions } from './write-options.ts';
import type { Store } from './store.ts';
import { strategicMerge } from './strategic-merge.ts';
import { timestamp } from './timestamps.ts';
import { type WatchSettings, WatchStream } from './watch-stream.ts';

/** What requests are served from. */
export interface ResourceRequestsOptions {
  readonly store: Store;
  readonly registry: ObjectRegistry;
  readonly authentication: Authentication;
  readonly clock: Clock;
  readonly random: () => number;
  /** Whether lists are streamed on request. */
  readonly watchList: boolean;
  readonly watches: WatchSettings;
}

const futureRvWaitMs = 3000;
const defaultTokenSeconds = 3600;

/** Serves requests for resources: the HTTP side of reading and writing. */
export class ResourceRequests {
  readonly #options: ResourceRequestsOptions;
  readonly #openWatches = new Set<WatchStream>();

  constructor(options: ResourceRequestsOptions) {
    this.#options = options;
  }

  /** Ends all watches cleanly. */
  endWatches(): void {
    for (const watch of this.#openWatches) watch.end();
  }

  /** @throws {StatusError} for every response that is a failure. */
  async handle(request: ResourceRequest): Promise<void> {
    const { verb, target, of } = request;
    if (of.type.namespaced && target.namespace === '' && target.name !== '') throw noSuchPath();
    if (!of.type.namespaced && target.namespace !== '') throw noSuchPath();
    if (target.subresource !== '') {
      const stream = podStreamError(target);
      if (stream !== undefined) {
        this.#options.registry.read(addressed(request));
        throw stream;
      }
      if (!(of.type.subresources as readonly string[]).includes(target.subresource)) throw noSuchPath();
      if (verb === 'create') return this.#createSubresource(request);
      if (target.subresource === 'scale') return this.#scale(request);
      if (target.subresource !== 'status' && target.subresource !== 'finalize') throw methodNotAllowed();
    }
    if (request.fault?.type === 'conflictOnce' && target.name !== '') this.#touch(request);
    switch (verb) {
      case 'get': {
        this.#get(request);
        return;
      }
      case 'list':
        return this.#list(request);
      case 'watch':
        return this.#watch(request);
      case 'create':
        return this.#create(request);
      case 'update':
        return this.#update(request);
      case 'patch':
        return this.#patch(request);
      case 'delete':
        return this.#delete(request);
      case 'deletecollection':
        return this.#deleteCollection(request);
    }
  }

  #get(request: ResourceRequest): void {
    const { of, target, fault } = request;
    const { store, registry } = this.#options;
    const renderer = this.#renderer(request);
    if (fault?.type !== 'staleRead') {
      request.reply.json(200, renderer.object(registry.read(addressed(request))));
      return;
    }
    const past = store.listAt(of.type.storage, Math.max(store.compactedRv, store.rv - fault.rvBack)) ?? [];
    const revision = past.find(({ namespace, name }) => namespace === target.namespace && name === target.name);
    if (revision === undefined) throw notFound(of.type, target.name);
    request.reply.json(200, renderer.object(revision));
  }

  async #list(request: ResourceRequest): Promise<void> {
    const { store } = this.#options;
    const { fault, query } = request;
    const renderer = this.#renderer(request);
    let options = parseReadOptions(query, { watchList: this.#options.watchList });
    await this.#waitFor(options, request.signal);
    if (fault?.type === 'staleRead') {
      const resourceVersion = Math.max(store.compactedRv, store.rv - fault.rvBack);
      options = { ...options, resourceVersion, resourceVersionMatch: 'Exact' };
    }
    if (fault?.type === 'expireContinue' && options.continueToken !== undefined) store.compact();
    const page = readList(store, scopeOf(request), options);
    request.reply.json(200, renderer.list(page.revisions, page));
  }

  async #watch(request: ResourceRequest): Promise<void> {
    const { store, clock, watches, random } = this.#options;
    const { fault, reply, query } = request;
    const watchList = this.#options.watchList && fault?.type !== 'noWatchList';
    if (fault?.type === 'ignoreWatchListParams') {
      query.delete('sendInitialEvents');
      query.delete('resourceVersionMatch');
    }
    const options = parseReadOptions(query, { watchList });
    if (options.sendInitialEvents === true) await this.#waitFor(options, request.signal);
    const watch = new WatchStream({
      store,
      clock,
      scope: scopeOf(request),
      options: { ...options, watch: true },
      renderer: this.#renderer(request),
      reply,
      settings: watches,
      fault,
      random,
    });
    this.#openWatches.add(watch);
    reply.response.once('close', () => this.#openWatches.delete(watch));
    watch.start();
  }

  async #create(request: ResourceRequest): Promise<void> {
    const { of, target, reply } = request;
    if (target.name !== '' || (of.type.namespaced && target.namespace === '')) throw methodNotAllowed();
    const renderer = this.#renderer(request);
    const body = await parseObject(request.body, request.contentType, objectTypes);
    const options = writeOptions(request);
    const { revision } = this.#options.registry.create(of, target.namespace, body, options);
    if (of.type.group === 'apps') reply.warn(`the sandbox runs no controller for ${of.type.plural}: no pods follow`);
    reply.json(201, renderer.object(revision));
  }

  async #update(request: ResourceRequest): Promise<void> {
    if (request.target.name === '') throw methodNotAllowed();
    const renderer = this.#renderer(request);
    const body = await parseObject(request.body, request.contentType, objectTypes);
    const { registry } = this.#options;
    const result = registry.update(addressed(request), body, partOf(request), writeOptions(request));
    request.reply.json(result.created ? 201 : 200, renderer.object(result.revision));
  }

  async #patch(request: ResourceRequest): Promise<void> {
    const { of, contentType, target, query } = request;
    const { registry } = this.#options;
    if (target.name === '') throw methodNotAllowed();
    const renderer = this.#renderer(request);
    const [to, part, options] = [addressed(request), partOf(request), writeOptions(request)];
    const patch = await parseBody(request.body, contentType, patchTypes(of));
    let result: WriteResult;
    if (contentType === 'application/json-patch+json') {
      result = registry.patch(to, (current) => jsonPatch(current, patch), part, options);
    } else {
      if (!isObject(patch)) throw new StatusError('BadRequest', 'the patch must be an object');
      if (contentType === 'application/apply-patch+yaml') {
        const { fieldManager } = options;
        if (fieldManager === undefined) {
          throw invalidObject('PatchOptions', 'meta.k8s.io', '', [
            required('fieldManager', 'is required for apply patch'),
          ]);
        }
        if (arrayAt(patch, 'metadata', 'managedFields').length > 0) {
          throw new StatusError('BadRequest', 'metadata.managedFields must be nil');
        }
        const force = query.get('force') === 'true' || query.get('force') === '1';
        result = registry.apply(to, patch, part, { ...options, fieldManager, force });
      } else if (contentType === 'application/strategic-merge-patch+json') {
        result = registry.patch(to, (current) => strategicMerge(current, patch, of.type.kind), part, options);
      } else result = registry.patch(to, (current) => mergePatch(current, patch), part, options);
    }
    request.reply.json(result.created ? 201 : 200, renderer.object(result.revision));
  }

  async #scale(request: ResourceRequest): Promise<void> {
    const { contentType, reply, verb } = request;
    const { registry } = this.#options;
    const to = addressed(request);
    const current = registry.read(to).object;
    let scale: JsonObject | undefined;
    if (verb === 'update') scale = await parseObject(request.body, contentType, objectTypes);
    else if (verb === 'patch') {
      const accepted = ['application/merge-patch+json', 'application/json-patch+json'];
      const patch = await parseBody(request.body, contentType, accepted);
      const patched = contentType === accepted[0] ? mergePatch : jsonPatch;
      scale = patched(scaleOf(current), patch) as JsonObject;
    } else if (verb !== 'get') throw methodNotAllowed();
    const wanted = scale;
    const { object } =
      wanted === undefined
        ? { object: current }
        : registry.patch(to, (workload) => withScale(workload, wanted), 'main', writeOptions(request)).revision;
    reply.json(200, JSON.stringify(scaleOf(object)));
  }

  async #delete(request: ResourceRequest): Promise<void> {
    const { of, reply, target } = request;
    const renderer = this.#renderer(request);
    const { revision, removed } = this.#options.registry.delete(addressed(request), await deleteOptions(request));
    if (!removed || of.type.deleteReturnsObject) {
      reply.json(200, renderer.object(revision));
      return;
    }
    const { group, plural } = of.type;
    reply.json(
      200,
      JSON.stringify({
        kind: 'Status',
        apiVersion: 'v1',
        metadata: {},
        status: 'Success',
        details: {
          name: target.name,
          ...(group === '' ? {} : { group }),
          kind: plural,
          uid: revision.object.metadata.uid,
        },
      }),
    );
  }

  async #deleteCollection(request: ResourceRequest): Promise<void> {
    const { of, query } = request;
    const { store, registry } = this.#options;
    const renderer = this.#renderer(request);
    const options = parseReadOptions(query, { watchList: this.#options.watchList });
    const deletion = await deleteOptions(request);
    const scope = scopeOf(request);
    const chosen = store.list(of.type.storage, scope.namespace).filter(scopeFilter(scope, options));
    for (const { namespace, name } of chosen) registry.delete({ ...of, namespace, name }, deletion);
    request.reply.json(200, renderer.list(chosen, { rv: store.rv }));
  }

  async #createSubresource(request: ResourceRequest): Promise<void> {
    const { target, reply } = request;
    const { registry } = this.#options;
    const body = await parseObject(request.body, request.contentType, objectTypes);
    switch (target.subresource) {
      case 'binding': {
        bindPod(registry, addressed(request), stringAt(body, 'target', 'name'), this.#options.clock.wallMs());
        reply.json(
          201,
          JSON.stringify({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 }),
        );
        return;
      }
      case 'eviction':
        registry.delete(addressed(request), readDeleteOptions(objectAt(body, 'deleteOptions')));
        {
          reply.json(
            201,
            JSON.stringify({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 }),
          );
          return;
        }
      case 'token': {
        reply.json(201, JSON.stringify(this.#mintToken(addressed(request), body)));
        return;
      }
      default:
        throw methodNotAllowed();
    }
  }

  #mintToken(target: Target, body: JsonObject): object {
    const { registry, authentication, clock } = this.#options;
    const { uid = '' } = registry.read(target).object.metadata;
    const wanted = at(body, 'spec', 'expirationSeconds');
    const seconds = typeof wanted === 'number' && wanted > 0 ? wanted : defaultTokenSeconds;
    const token = authentication.mint(target.namespace, target.name, uid, seconds * 1000);
    const status = { token, expirationTimestamp: timestamp(clock.wallMs() + seconds * 1000) };
    const spec = { ...objectAt(body, 'spec'), expirationSeconds: seconds };
    const metadata = { name: target.name, namespace: target.namespace, creationTimestamp: timestamp(clock.wallMs()) };
    return { kind: 'TokenRequest', apiVersion: 'authentication.k8s.io/v1', metadata, spec, status };
  }

  /** Waits for an RV that lies ahead. @throws {StatusError} `Timeout` if it does not come. */
  async #waitFor({ resourceVersion = 0 }: ReadOptions, signal: AbortSignal): Promise<void> {
    const { store, clock } = this.#options;
    if (resourceVersion <= store.rv) return;
    const arrived = Promise.withResolvers<undefined>();
    const subscription = store.onEveryCommit(({ rv }) => {
      if (rv >= resourceVersion) arrived.resolve(undefined);
    });
    const timer = clock.after(futureRvWaitMs, () => arrived.resolve(undefined));
    const abort = (): void => arrived.resolve(undefined);
    signal.addEventListener('abort', abort);
    await arrived.promise;
    signal.removeEventListener('abort', abort);
    timer.cancel();
    subscription.close();
    if (resourceVersion > store.rv) throw tooLargeResourceVersion(resourceVersion, store.rv);
  }

  /** Gives the object a new RV, as if somebody else had written it just now. */
  #touch({ of, target }: ResourceRequest): void {
    const revision = this.#options.store.get(of.type.storage, target.namespace, target.name);
    if (revision !== undefined) this.#options.store.put(of.type.storage, copyJson(revision.object));
  }

  #renderer({ of, accept, query }: ResourceRequest): Renderer {
    return new Renderer(of, choosePresentation(accept, query), () => this.#options.clock.wallMs());
  }
}

function addressed({ of, target }: ResourceRequest): Target {
  return { ...of, namespace: target.namespace, name: target.name };
}

function scopeOf({ of, target }: ResourceRequest): Scope {
  const namespace = target.namespace === '' ? undefined : target.namespace;
  return { type: of.type, namespace, name: target.name === '' ? undefined : target.name };
}

function partOf({ target }: ResourceRequest): WritePart {
  return target.subresource === 'status' || target.subresource === 'finalize' ? target.subresource : 'main';
}

/** The 405 for a method that a path does not have. */
export function methodNotAllowed(): StatusError {
  return new StatusError('MethodNotAllowed', 'the server does not allow this method on the requested resource', {
    details: {},
  });
}
