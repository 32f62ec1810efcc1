import {
  aggregatedDiscovery,
  aggregatedVersion,
  coreVersions,
  groupInfo,
  groupList,
  resourceList,
  versionInfo,
} from './discovery.ts';
import type { EmbeddedRequests, PathRequest } from './embedded-requests.ts';
import { noSuchPath } from './status-error.ts';
import { openApiDocument, openApiIndex } from './openapi.ts';
import { choosePresentation } from './presentation.ts';
import { methodNotAllowed } from './resource-requests.ts';
import type { ResourceTypes } from './resource-type.ts';

const openApiProtobuf = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf';
/** A document of version 2 without kinds: kubectl asks for it when it does not find a kind in those of version 3. */
const emptyOpenApi = Buffer.from([0x0a, 0x03, ...Buffer.from('2.0')]);

/** Serves discovery, schemas, version and health, and passes on what tests control. */
export class PathRequests {
  readonly #types: ResourceTypes;
  readonly #version: string;
  readonly #embedded: EmbeddedRequests | undefined;

  /**
   * @param options.version - the Kubernetes version the server claims to have, such as `1.36.3`.
   * @param options.embedded - what tests control under `/embedded`; not reachable if absent.
   */
  constructor(options: { types: ResourceTypes; version: string; embedded?: EmbeddedRequests | undefined }) {
    this.#types = options.types;
    this.#version = options.version;
    this.#embedded = options.embedded;
  }

  /** @throws {StatusError} `NotFound`, `MethodNotAllowed`. */
  async handle(exchange: PathRequest): Promise<void> {
    const { method, path, reply, query, request } = exchange;
    if (path.startsWith('/embedded/')) {
      if (this.#embedded === undefined) throw noSuchPath();
      return this.#embedded.handle(exchange);
    }
    if (method !== 'GET' && method !== 'HEAD') throw methodNotAllowed();
    if (path === '/healthz' || path === '/livez' || path === '/readyz') {
      reply.text(200, query.has('verbose') ? `[+]ping ok\n${path.slice(1)} check passed\n` : 'ok');
      return;
    }
    if (path === '/openapi/v2' && request.headers.accept?.includes('proto-openapi') === true) {
      reply.bytes(200, emptyOpenApi, openApiProtobuf);
      return;
    }
    const body = this.#document(exchange);
    if (body === undefined) throw noSuchPath();
    reply.json(200, JSON.stringify(body.body), body.contentType);
  }

  #document({ path, request, query }: PathRequest): { body: object; contentType?: string } | undefined {
    const types = this.#types;
    const [root, first = '', second = '', ...more] = path.split('/').slice(1);
    if (root === 'openapi' && path !== '/openapi/v3') return some(this.#openApi(path));
    const { accept } = request.headers;
    const aggregated = aggregatedVersion(accept);
    if ((path === '/api' || path === '/apis') && aggregated !== undefined) {
      return aggregatedDiscovery(types, aggregated, path === '/api');
    }
    choosePresentation(accept, query);
    switch (root) {
      case '':
        return { body: { paths: ['/api', '/apis', '/healthz', '/livez', '/openapi/v3', '/readyz', '/version'] } };
      case 'version':
        return first === '' ? { body: versionInfo(this.#version) } : undefined;
      case 'openapi':
        return { body: openApiIndex(types) };
      case 'api':
      case 'apis': {
        if (more.length > 0) return undefined;
        if (first === '') return { body: root === 'api' ? coreVersions() : groupList(types) };
        if (root === 'api') return second === '' ? some(resourceList(types, '', first)) : undefined;
        return some(second === '' ? groupInfo(types, first) : resourceList(types, first, second));
      }
      default:
        return undefined;
    }
  }

  #openApi(path: string): object | undefined {
    const [, , version, root, first = '', second = '', ...more] = path.split('/');
    if (version !== 'v3' || more.length > 0) return undefined;
    if (root === 'api') return second === '' ? openApiDocument(this.#types, '', first) : undefined;
    return root === 'apis' ? openApiDocument(this.#types, first, second) : undefined;
  }
}

function some(body: object | undefined): { body: object } | undefined {
  return body === undefined ? undefined : { body };
}
