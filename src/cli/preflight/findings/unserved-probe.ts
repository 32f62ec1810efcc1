/** A probe asks the HTTP endpoint of the sidecar for a path that it does not serve. */
import { healthPath, livePath, readyPath } from '../../../diagnostics/paths.ts';
import type { HttpConfig } from '../../config.ts';
import type { Fields } from '../manifest.ts';
import { defineFinding } from './preflight-finding.ts';

const probes = ['livenessProbe', 'readinessProbe', 'startupProbe'] as const;

export const unservedProbe = defineFinding({
  name: 'probe',
  check({ container: { fields }, arguments: { config } }) {
    const http = config?.http ?? undefined;
    if (http === undefined) return [];
    return probes.flatMap((name) => {
      const path = askedPath(fields, name, http);
      if (path === undefined || isServed(path, http)) return [];
      const cure =
        path === healthPath
          ? `It is served with --leader-election and --http-endpoint. Otherwise use ${livePath}.`
          : `Use ${livePath}, or ${readyPath} in a readiness probe.`;
      return [
        { level: 'must', message: `Its ${name} requests ${path}, which is not served: it would fail.`, cure } as const,
      ];
    });
  },
});

/** Undefined where the probe asks something else, such as another container of the Pod. */
function askedPath(container: Fields, name: string, http: HttpConfig): string | undefined {
  const get = container.part(name)?.part('httpGet');
  const [, endpoint] = /:(\d+)$/.exec(http.address) ?? [];
  if (get === undefined || portOf(container, get.textOrNumber('port')) !== Number(endpoint)) return undefined;
  const path = get.text('path') ?? '/';
  return path.startsWith('/') ? path : `/${path}`;
}

function portOf(container: Fields, port: string | number | undefined): number | undefined {
  const named = container.parts('ports').find((each) => each.text('name') === port);
  return named?.number('containerPort') ?? (port === undefined ? undefined : Number(port));
}

function isServed(path: string, http: HttpConfig): boolean {
  const [bare = ''] = path.split('?');
  return [livePath, readyPath, http.metricsPath, ...(http.health ? [healthPath] : [])].includes(bare);
}
