/** The API server and the user: of a kubeconfig, of a flag, or of the pod. */
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { shellWord } from '../../base/shell-word.ts';
import { type Cluster, type Entry, KubeConfigError, readKubeconfig, type User } from './kubeconfig-files.ts';
import { proxyFor } from './proxy.ts';

export interface KubeConfigSource {
  /** Path of a kubeconfig file, or of several that are merged; of these some may be missing. */
  kubeconfig?: string | readonly string[] | undefined;
  /** Name of a context in there. Default: the current one. */
  context?: string | undefined;
  /** URL of the API server; alone it is used without credentials, with a kubeconfig it replaces the server. */
  master?: string | undefined;
  /** The process environment: in-cluster variables, proxies, and what credential plugins start with. */
  environment: Record<string, string | undefined>;
  /** Where a pod finds its token and the CA. Default: where Kubernetes mounts them. */
  serviceAccountFolder?: string | undefined;
}

/** The API server, the user, and the way to it. */
export interface LoadedKubeConfig {
  cluster: Cluster;
  user: User;
  /** Of the context. */
  namespace?: string | undefined;
  /** The proxy to the API server. */
  proxyUrl?: string | undefined;
  environment: Record<string, string | undefined>;
  /** To be logged; the configuration can still be used. */
  problem?: string | undefined;
  /** The configuration is that of the pod. */
  inCluster?: boolean;
}

/** The paths every pod has (Kubernetes page "Accessing the Kubernetes API from a Pod"). */
const mountedFolder = '/var/run/secrets/kubernetes.io/serviceaccount';

/**
 * Reads the configuration: a kubeconfig file, else a bare server URL, else the pod's service account. Safe to repeat:
 * that is how credentials are renewed.
 *
 * @throws {KubeConfigError} when nothing usable is found.
 */
export function loadKubeConfig(source: KubeConfigSource): LoadedKubeConfig {
  const found = find(source);
  const { server, 'proxy-url': proxyUrl } = found.cluster;
  const url = URL.parse(server);
  if (url === null) {
    throw new KubeConfigError(`invalid configuration: ${JSON.stringify(server)} is not the URL of a server`, {
      cure: 'Correct the field server of the current cluster in the kubeconfig file, such as https://192.0.2.1:6443',
    });
  }
  const { environment } = source;
  return { ...found, environment, proxyUrl: proxyFor(url, { proxyUrl, environment }) };
}

/**
 * The namespace of the chosen context, or that of the pod; undefined where there is none.
 *
 * @throws {KubeConfigError} when nothing usable is found.
 */
export function contextNamespace(source: KubeConfigSource): string | undefined {
  const { namespace, inCluster = false } = loadKubeConfig(source);
  if (!inCluster) return namespace;
  const file = path.join(source.serviceAccountFolder ?? mountedFolder, 'namespace');
  return existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined;
}

type Found = Omit<LoadedKubeConfig, 'environment' | 'proxyUrl'>;

function find(source: KubeConfigSource): Found {
  const { kubeconfig = [], context, master = '' } = source;
  const files = (typeof kubeconfig === 'string' ? [kubeconfig] : kubeconfig).filter((file) => file !== '');
  if (files.length > 0) return fromFiles(files, { master, context });
  if (context !== undefined) {
    throw new KubeConfigError(`context ${JSON.stringify(context)} cannot be chosen without a kubeconfig file`, {
      cure: 'Name the file, such as with the variable KUBECONFIG',
    });
  }
  return master === '' ? fromCluster(source) : { cluster: { server: serverUrl(master) }, user: {} };
}

function fromFiles(
  files: readonly string[],
  { master, context }: { master: string; context?: string | undefined },
): Found {
  const read = readKubeconfig(files);
  const { names } = read;
  if (context !== undefined && !read.contexts.has(context)) {
    throw new KubeConfigError(`${names} has no context ${JSON.stringify(context)}`, {
      cure: `These are there: ${[...read.contexts.keys()].join(', ') || 'none'}`,
    });
  }
  const chosen = read.contexts.get(context ?? read.currentContext ?? '')?.fields;
  const cluster = read.clusters.get(chosen?.cluster ?? '')?.fields;
  if (cluster === undefined && master === '') {
    const where = files.length > 1 ? '' : ` --kubeconfig ${shellWord(names) ?? 'FILE'}`;
    throw new KubeConfigError(
      `invalid configuration: no configuration has been provided, ${names} names no current context with a cluster`,
      { cure: `Choose one: kubectl config use-context NAME${where}` },
    );
  }
  const user = read.users.get(chosen?.user ?? '');
  if (user !== undefined) checkUser(user);
  return {
    cluster: { server: '', ...cluster, ...(master !== '' && { server: serverUrl(master) }) },
    user: user?.fields ?? {},
    namespace: chosen?.namespace || undefined,
  };
}

/** @throws {KubeConfigError} when the user cannot be authenticated as it says. */
function checkUser({ name, fields: user, file }: Entry<User>): void {
  if (user.token && user.username) {
    throw new KubeConfigError(
      `${file}: user ${JSON.stringify(name)} has both a token and a user name, one is allowed`,
      { cure: 'Remove one of the fields token and username of this user' },
    );
  }
  const provider = user['auth-provider'] ?? undefined;
  if (provider !== undefined && provider.name !== 'oidc' && !provider.config?.['tokenFile']) {
    // without a header each request would be refused, by the API server and without the reason
    throw new KubeConfigError(`${file}: no Auth Provider found for name ${JSON.stringify(provider.name ?? '')}`, {
      cure: 'Use a credential plugin: the field exec of this user',
    });
  }
}

/** Without scheme a host and port alone, which URLs read more generously: of `/a` or `http:///a` they make the host `a`. */
const serverPattern = /^(?:[a-z][a-z0-9+.-]*:\/\/[^/\\\s][^\\\s]*|[^/\\\s]+)$/i;

/** A host and port without scheme means http, as in the original. */
function serverUrl(master: string): string {
  const text = /^[a-z][a-z0-9+.-]*:\/\//i.test(master) ? master : `http://${master}`;
  if (!serverPattern.test(master) || !URL.canParse(text)) {
    throw new KubeConfigError(`--master: ${JSON.stringify(master)} is neither a URL nor host:port`, {
      cure: 'Give the URL of the API server, such as https://192.0.2.1:6443',
    });
  }
  return text;
}

function fromCluster({ environment, serviceAccountFolder: folder = mountedFolder }: KubeConfigSource): Found {
  const host = environment['KUBERNETES_SERVICE_HOST'] ?? '';
  const port = environment['KUBERNETES_SERVICE_PORT'] ?? '';
  if (host === '' || port === '') {
    throw new KubeConfigError(
      'unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined',
      { cure: 'In a pod they are set. Elsewhere name a kubeconfig file, such as with the variable KUBECONFIG' },
    );
  }
  const tokenFile = path.join(folder, 'token');
  try {
    readFileSync(tokenFile);
  } catch (error) {
    const cure =
      'Mount a token: automountServiceAccountToken of the pod and its service account must not be false. ' +
      'Elsewhere than in a pod name a kubeconfig file, such as with the variable KUBECONFIG';
    throw new KubeConfigError(`open ${tokenFile}: ${(error as Error).message}`, { cure, cause: error });
  }
  const caFile = path.join(folder, 'ca.crt');
  const hasCa = existsSync(caFile);
  return {
    cluster: {
      server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`, // always https, whatever the port
      ...(hasCa && { 'certificate-authority': caFile }),
    },
    user: { tokenFile },
    problem: hasCa ? undefined : `${caFile} is missing, the CAs of the system are used`,
    inCluster: true,
  };
}
