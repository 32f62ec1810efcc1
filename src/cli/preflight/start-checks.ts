/** Checks for what keeps the container from starting, or from being started where it should. */
import { nameList } from '../../base/name-list.ts';
import { healthPath, livePath, readyPath } from '../../diagnostics/http-paths.ts';
import type { HttpConfig } from '../config.ts';
import { programInImage } from '../program.ts';
import type { Fields } from './manifest.ts';
import type { Check, Found } from './preflight-finding.ts';
import type { SidecarFacts } from './sidecar-facts.ts';

const probes = ['livenessProbe', 'readinessProbe', 'startupProbe'] as const;

/** Where images are built for, by the labels of nodes. */
const built: Readonly<Record<string, readonly string[]>> = {
  'kubernetes.io/arch': ['amd64', 'arm64'],
  'kubernetes.io/os': ['linux'],
};

export const startChecks = {
  /** The container overrides the entry point of the image with a program that this image does not have. */
  command({ container: { command, args } }) {
    const [entry = ''] = command ?? [];
    if (command === undefined || isOurs(command)) return undefined;
    const isShell = /(?:^|\/)(?:ba|da|z)?sh$/.test(entry);
    const flags = command.slice(1).filter((word) => word.startsWith('-'));
    const more =
      flags.length === 0 ? '' : `, and move its arguments to args, before the ${args.length} that are there already`;
    return {
      level: 'must',
      message: `The container runs ${JSON.stringify(entry)}, which this image does not have${isShell ? ': it has no shell' : ''}. It would not start.`,
      cure: isShell
        ? 'Remove command, and put the flags of the sidecar into args: the entry point of the image is the program.'
        : `Remove command${more}: the entry point of the image is the program.`,
    };
  },

  /** Arguments, or an environment, with which the sidecar does not start. */
  arguments({ arguments: { problems }, container }) {
    return problems.map((problem): Found => {
      const isEnvironment = /\bNODE_NAME\b|\bNAMESPACE\b|\bPOD_NAME\b/.test(problem);
      const isElsewhere = isEnvironment && container.hasOtherVariables;
      return {
        level: isElsewhere ? 'warning' : 'must',
        message: isElsewhere
          ? `Unless envFrom sets the variable, the process ends at once: ${problem}`
          : `The process would end at once: ${problem}`,
        cure: cureOf(problem, isEnvironment),
      };
    });
  },

  /** A probe or hook runs a program in the container. */
  exec({ container: { fields } }) {
    const lifecycle = fields.part('lifecycle');
    const handlers = [
      ...probes.map((name) => [name, fields.part(name)] as const),
      ...(['postStart', 'preStop'] as const).map((name) => [name, lifecycle?.part(name)] as const),
    ];
    const running = handlers.filter(([, handler]) => {
      const command = handler?.part('exec')?.texts('command') ?? [];
      return command.length > 0 && !isOurs(command);
    });
    if (running.length === 0) return undefined;
    const names = running.map(([name]) => name);
    return {
      level: 'must',
      message: `Its ${nameList(names, 5)} ${names.length === 1 ? 'runs' : 'run'} a program in the container. This image has no other program than the sidecar, and no shell.`,
      cure: 'For a probe use httpGet, with --http-endpoint; for preStop use sleep; or remove it.',
    };
  },

  /** The Pod must not run as root, and says no user: the image does not either. */
  user({ container, workload }) {
    const own = container.fields.part('securityContext');
    const shared = workload.pod.part('securityContext');
    const isNonRoot = own?.flag('runAsNonRoot') ?? shared?.flag('runAsNonRoot') ?? false;
    const user = own?.number('runAsUser') ?? shared?.number('runAsUser');
    if (!isNonRoot || user !== undefined) return undefined;
    return {
      level: 'must',
      message:
        'runAsNonRoot is true and runAsUser is not set. This image sets no user, since only root can reach a driver that runs as root. So the kubelet refuses to start the container.',
      cure: "Set runAsUser to the user that owns the driver's socket, or to 65532 if a group of the Pod owns the socket.",
    };
  },

  /** The Pod runs on nodes for which there is no image. */
  architecture({ workload: { pod } }) {
    return [...pod.textMap('nodeSelector')].flatMap(([label, value]): Found[] => {
      const values = built[label];
      if (values === undefined || values.includes(value)) return [];
      const message = `Its nodeSelector selects nodes with ${label}=${value}; images are built for ${values.join(' and ')}.`;
      return [{ level: 'must', message, cure: 'Build the image for these nodes: docs/deploy.md.' }];
    });
  },

  /** A probe asks the HTTP endpoint of the sidecar for a path that it does not serve. */
  probe({ container: { fields }, arguments: { config } }) {
    const http = config?.http ?? undefined;
    if (http === undefined) return undefined;
    return probes.flatMap((name): Found[] => {
      const path = askedPath(fields, name, http);
      if (path === undefined || isServed(path, http)) return [];
      const cure =
        path === healthPath
          ? `It is served with --leader-election and --http-endpoint. Otherwise use ${livePath}.`
          : `Use ${livePath}, or ${readyPath} in a readiness probe.`;
      return [{ level: 'must', message: `Its ${name} requests ${path}, which is not served: it would fail.`, cure }];
    });
  },

  /** A profile of system calls that was made for another program. */
  seccomp(facts) {
    return (['seccompProfile', 'appArmorProfile'] as const).flatMap((name): Found[] => {
      if (profileType(facts, name) !== 'Localhost') return [];
      const message = `Its ${name} is a profile on the node (Localhost). One that was made for the Go sidecar forbids system calls that Node.js needs.`;
      return [{ level: 'warning', message, cure: 'Use RuntimeDefault, or a profile that was made for this image.' }];
    });
  },
} satisfies Record<string, Check>;

function isOurs(command: readonly string[]): boolean {
  return programInImage.every((word) => command.includes(word));
}

function cureOf(problem: string, isEnvironment: boolean): string {
  if (problem.endsWith('HonorPVReclaimPolicy')) {
    return `Remove the gate: what it turned on is always on here, and in the Go sidecar since v6.2, which does not know the gate either.`;
  }
  if (isEnvironment) {
    return 'Add the variable with valueFrom.fieldRef: spec.nodeName for NODE_NAME, metadata.namespace for NAMESPACE, metadata.name for POD_NAME.';
  }
  if (problem.startsWith('unknown')) {
    return 'Remove the flag or correct it; docs/flags.md lists all flags. The Go sidecar v6.4 does not know it either.';
  }
  return 'Correct it; docs/flags.md lists all flags.';
}

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

function profileType({ container, workload: { pod } }: SidecarFacts, name: string): string | undefined {
  const own = container.fields.part('securityContext')?.part(name);
  return (own ?? pod.part('securityContext')?.part(name))?.text('type');
}
