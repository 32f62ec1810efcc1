import { builtInResources } from './api/built-in-resources.ts';
import { qualifiedResource } from './api/resource-type.ts';
import type { SandboxOptions } from './sandbox.ts';

/** What a command line asks for. */
export type SandboxFlags =
  | { readonly kind: 'run'; readonly options: SandboxOptions }
  | { readonly kind: 'help' }
  | { readonly kind: 'error'; readonly message: string };

/** Text for `--help`. */
export const sandboxUsage = `Usage: csi-sandbox api [flags]

The API of the sandbox with its controllers alone, for programs that start it.

  --port N           port on 127.0.0.1; 0, the default, takes any free one
  --kubeconfig PATH  where to write the kubeconfig; by default a temporary file
  --nodes N          number of nodes, 0 to 1000, alternating between zones a and b; 2 by default
  --data PATH        keep the objects in this file; in memory by default
  --tls              serve HTTPS with an authority made at start, which the kubeconfig names
  --rbac             authorization as a cluster's, over HTTPS; the kubeconfig is that of an administrator. Without it
                     everybody may do everything
  --rbac-manifest FILE
                     as --rbac, with the service account, roles and bindings of the manifest: the line of JSON then has
                     accountKubeconfig, with the rights of that account alone, and a line {"forbidden"} follows for each
                     right that it lacks
  --serve RESOURCE=VERSION
                     serve a resource in this version alone, as an older cluster does, or with \`none\` not at all:
                     --serve volumeattributesclasses.storage.k8s.io=v1beta1; repeatable
  --faults           let clients inject faults and read the request log under /embedded

Prints {"url","kubeconfig","pid"} as one line of JSON when it is ready. Ends with SIGTERM or SIGINT.
`;

const limits = { '--port': 65_535, '--nodes': 1000 } as const;

/** Reads the flags; `--name value` and `--name=value` are the same. */
export function parseSandboxFlags(args: readonly string[]): SandboxFlags {
  let port = 0;
  let nodes = 2;
  let faults = false;
  let tls = false;
  let rbac = false;
  let kubeconfigPath: string | undefined;
  let rbacManifest: string | undefined;
  let dataPath: string | undefined;
  const versions: Record<string, string[]> = {};
  const disabledResources: string[] = [];
  const rest = args.flatMap((arg) => {
    const split = arg.startsWith('--') ? arg.indexOf('=') : -1;
    return split === -1 ? [arg] : [arg.slice(0, split), arg.slice(split + 1)];
  });
  for (let flag = rest.shift(); flag !== undefined; flag = rest.shift()) {
    switch (flag) {
      case '--help':
      case '-h':
        return { kind: 'help' };
      case '--faults':
        faults = true;
        break;
      case '--tls':
        tls = true;
        break;
      case '--rbac':
        rbac = true;
        break;
      case '--kubeconfig':
      case '--rbac-manifest':
      case '--data': {
        const path = rest.shift();
        if (path === undefined || path === '') return wrong(flag, path, 'a file path');
        if (flag === '--data') dataPath = path;
        else if (flag === '--rbac-manifest') rbacManifest = path;
        else kubeconfigPath = path;
        break;
      }
      case '--serve': {
        const text = rest.shift();
        const [, resource, version] = /^([a-z.0-9-]+)=(none|v\d+(?:(?:alpha|beta)\d+)?)$/.exec(text ?? '') ?? [];
        const known = builtInResources.some((type) => qualifiedResource(type) === resource);
        if (resource === undefined || version === undefined || !known) {
          return wrong(flag, text, 'PLURAL.GROUP=VERSION or PLURAL.GROUP=none of a built-in resource');
        }
        if (version === 'none') disabledResources.push(resource);
        else versions[resource] = [version];
        break;
      }
      case '--port':
      case '--nodes': {
        const text = rest.shift();
        const value = /^\d+$/.test(text ?? '') ? Number(text) : NaN;
        if (!(value <= limits[flag])) return wrong(flag, text, `a whole number from 0 to ${limits[flag]}`);
        if (flag === '--port') port = value;
        else nodes = value;
        break;
      }
      default:
        return wrong(
          flag,
          undefined,
          '--port, --kubeconfig, --nodes, --data, --tls, --rbac, --rbac-manifest, --serve, --faults or --help',
          'unknown flag',
        );
    }
  }
  return {
    kind: 'run',
    options: {
      api: {
        port,
        faults,
        tls,
        ...(Object.keys(versions).length > 0 && { versions }),
        ...(disabledResources.length > 0 && { disabledResources }),
        ...(dataPath === undefined ? {} : { persistence: { path: dataPath } }),
      },
      nodes,
      rbac,
      ...(rbacManifest === undefined ? {} : { rbacManifest }),
      ...(kubeconfigPath === undefined ? {} : { kubeconfigPath }),
    },
  };
}

function wrong(flag: string, value: string | undefined, accepted: string, problem = 'invalid value'): SandboxFlags {
  const shown = value === undefined ? '' : ` ${JSON.stringify(value)}`;
  return { kind: 'error', message: `${problem}: ${flag}${shown}: must be ${accepted}` };
}
