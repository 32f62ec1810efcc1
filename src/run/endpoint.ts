import { goQuote } from '../base/go-quote.ts';
import type { Logger } from '../base/logger.ts';
import type { MetricRegistry } from '../base/metrics.ts';
import { type DiagnosticsServer, healthHandler, startDiagnosticsServer } from '../diagnostics/http-server.ts';
import { metricsHandler } from '../diagnostics/metrics-handler.ts';
import { healthPath, livePath, readyPath } from '../diagnostics/http-paths.ts';
import { startProfiles } from '../diagnostics/profiles.ts';
import { fatalExit } from './exit.ts';
import type { Health } from './health.ts';

/** Where the endpoint listens, and what it serves. */
export interface HttpOptions {
  /** `host:port`; `:port` means all interfaces. */
  readonly address: string;
  readonly metricsPath: string;
  /** Whether `/healthz/leader-election` is served. */
  readonly health: boolean;
  /** Whether profiles of this process are served under `/debug/pprof/`. */
  readonly profiles: boolean;
}

/** Further paths of the endpoint; disposed of before the server closes. */
interface ServedPages extends AsyncDisposable {
  serveOn(server: DiagnosticsServer): void;
}

interface Endpoint extends AsyncDisposable {
  /** Makes liveness depend on this check, and serves it under a path of its own, where the endpoint serves health. */
  serveHealth(check: () => string | undefined): void;
}

/**
 * Starts the HTTP server, if one is configured.
 *
 * @throws {ExitError} with code 255 when it cannot listen.
 */
export async function startEndpoint(options: {
  http: HttpOptions | null;
  logger: Logger;
  registry: MetricRegistry;
  ready: Health;
  /** Served beside the rest, and disposed of with it. Default none. */
  pages?: ServedPages | undefined;
}): Promise<Endpoint> {
  const { http, logger, registry, ready, pages } = options;
  const opened = new AsyncDisposableStack();
  const close = (): Promise<void> => opened.disposeAsync();
  if (http === null) return { serveHealth: () => undefined, [Symbol.asyncDispose]: close };
  let election = (): string | undefined => undefined;
  try {
    const server = opened.use(await startDiagnosticsServer({ address: http.address, logger }));
    server.handle(http.metricsPath, metricsHandler(registry));
    server.handle(
      livePath,
      healthHandler(() => election()),
    );
    server.handle(
      readyPath,
      healthHandler(() => ready.unhealthyReason),
    );
    if (pages !== undefined) opened.use(pages).serveOn(server);
    if (http.profiles) opened.use(await startProfiles()).serveOn(server);
    return {
      serveHealth: (check) => {
        election = check;
        if (http.health) server.handle(healthPath, healthHandler(check));
      },
      [Symbol.asyncDispose]: close,
    };
  } catch (error) {
    await close();
    throw httpFailure(http, error);
  }
}

/** The exit of a process whose HTTP endpoint cannot listen, such as on a port in use. */
export function httpFailure(http: Pick<HttpOptions, 'address' | 'metricsPath'>, error: unknown): Error {
  const reason = error instanceof Error ? error.message : String(error);
  return fatalExit(
    `Failed to start HTTP server at specified address (${goQuote(http.address)}) and metrics path ` +
      `(${goQuote(http.metricsPath)}): ${reason}`,
    error,
  );
}
