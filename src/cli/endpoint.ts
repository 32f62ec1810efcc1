import type { Logger } from '../base/logger.ts';
import type { MetricRegistry } from '../base/metrics.ts';
import { healthHandler } from '../diagnostics/health-handler.ts';
import { startDiagnosticsServer } from '../diagnostics/http-server.ts';
import { metricsHandler } from '../diagnostics/metrics-handler.ts';
import { healthPath, livePath, readyPath } from '../diagnostics/paths.ts';
import { startProfiles } from '../diagnostics/profiles.ts';
import type { HttpConfig } from './config.ts';
import { httpFailure } from './config-checks.ts';
import type { Health } from './health.ts';

/** The HTTP endpoint, as far as the rest of the program has to do with it. */
export interface Endpoint extends AsyncDisposable {
  /** Lets liveness depend on this check from now on, and serves its own path where one is served at all. */
  serveHealth(check: () => string | undefined): void;
}

/**
 * Starts the HTTP server, where one is asked for.
 *
 * @throws {ExitError} with code 255 when it cannot listen.
 */
export async function startEndpoint(options: {
  http: HttpConfig | null;
  logger: Logger;
  registry: MetricRegistry;
  ready: Health;
}): Promise<Endpoint> {
  const { http, logger, registry, ready } = options;
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
      healthHandler(() => ready.complaint),
    );
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
