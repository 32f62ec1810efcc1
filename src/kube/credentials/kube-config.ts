/** The API server and the credentials for it: read by `@kubernetes/client-node`, checked and completed here. */
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { KubeConfig } from '@kubernetes/client-node';
import { shellWord } from '../../base/shell-word.ts';
import { KubeConfigError } from './kube-config-error.ts';
import { type KubeconfigFiles, readKubeconfig } from './kubeconfig-files.ts';
import { proxyFor } from '../client/proxy.ts';

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

/** A configuration, and the fields that client-node ignores. */
export interface LoadedKubeConfig {
  config: KubeConfig;
  /** `tokenFile` of the current user, absolute. */
  tokenFile?: string | undefined;
  /** The proxy to the API server. */
  proxyUrl?: string | undefined;
  /** `disable-compression` of the cluster: compressed responses are not requested. */
  disableCompression?: boolean | undefined;
  /** Impersonation by the current user, beside `as`. */
  impersonate?: Impersonation | undefined;
  environment: Record<string, string | undefined>;
  /** To be logged; the configuration can still be used. */
  problem?: string | undefined;
}

/** `as-groups`, `as-uid` and `as-user-extra` of a user. */
export interface Impersonation {
  groups: readonly string[];
  uid: string | undefined;
  extra: Readonly<Record<string, readonly string[]>>;
}

/** The name of cluster and user where the configuration is that of the pod. */
const inClusterName = 'in-cluster';
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
  const cluster = found.config.getCurrentCluster();
  const server = cluster?.server ?? '';
  const url = URL.parse(server);
  if (url === null) {
    throw new KubeConfigError(`invalid configuration: ${JSON.stringify(server)} is not the URL of a server`, {
      cure: 'Correct the field server of the current cluster in the kubeconfig file, such as https://192.0.2.1:6443',
    });
  }
  const { environment } = source;
  return { ...found, environment, proxyUrl: proxyFor(url, { proxyUrl: cluster?.proxyUrl, environment }) };
}

/**
 * The namespace of the chosen context, or that of the pod; undefined where there is none.
 *
 * @throws {KubeConfigError} when nothing usable is found.
 */
export function contextNamespace(source: KubeConfigSource): string | undefined {
  const { config } = loadKubeConfig(source);
  const named = config.getContextObject(config.getCurrentContext())?.namespace ?? '';
  if (named !== '') return named;
  if (config.getCurrentCluster()?.name !== inClusterName) return undefined;
  const file = path.join(source.serviceAccountFolder ?? mountedFolder, 'namespace');
  return existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined;
}

type Found = Omit<LoadedKubeConfig, 'environment' | 'proxyUrl'>;

function find(source: KubeConfigSource): Found {
  const { kubeconfig = [], context } = source;
  const files = (typeof kubeconfig === 'string' ? [kubeconfig] : kubeconfig).filter((file) => file !== '');
  if (files.length > 0) return fromFiles(files, source);
  if (context !== undefined) {
    throw new KubeConfigError(`context ${JSON.stringify(context)} cannot be chosen without a kubeconfig file`, {
      cure: 'Name the file, such as with the variable KUBECONFIG',
    });
  }
  if (source.master !== undefined && source.master !== '') return { config: fromServer(source.master) };
  return fromCluster(source);
}

function fromFiles(files: readonly string[], { master, context }: Pick<KubeConfigSource, 'master' | 'context'>): Found {
  const read = readKubeconfig(files);
  const { config, names } = read;
  if (context !== undefined) chooseContext(config, context, names);
  const cluster = config.getCurrentCluster();
  if (cluster === null && (master === undefined || master === '')) {
    const where = files.length > 1 ? '' : ` --kubeconfig ${shellWord(names) ?? 'FILE'}`;
    throw new KubeConfigError(
      `invalid configuration: no configuration has been provided, ${names} names no current context with a cluster`,
      { cure: `Choose one: kubectl config use-context NAME${where}` },
    );
  }
  const isUncompressed = read.raw<RawCluster>('clusters', cluster?.name).fields['disable-compression'] === true;
  const user = restOfUser(read);
  if (master !== undefined && master !== '') replaceServer(config, serverUrl(master));
  return { config, disableCompression: isUncompressed, ...user };
}

function chooseContext(config: KubeConfig, context: string, names: string): void {
  if (config.getContextObject(context) === null) {
    throw new KubeConfigError(`${names} has no context ${JSON.stringify(context)}`, {
      cure: `These are there: ${
        config
          .getContexts()
          .map(({ name }) => name)
          .join(', ') || 'none'
      }`,
    });
  }
  config.setCurrentContext(context);
}

function replaceServer(config: KubeConfig, server: string): void {
  const cluster = config.getCurrentCluster();
  const user = config.getCurrentUser();
  config.loadFromClusterAndUser(
    cluster === null ? { name: 'master', server, skipTLSVerify: false } : { ...cluster, server },
    user ?? { name: 'nobody' },
  );
}

function fromServer(master: string): KubeConfig {
  const config = new KubeConfig();
  config.loadFromClusterAndUser(
    { name: 'master', server: serverUrl(master), skipTLSVerify: false },
    { name: 'nobody' },
  );
  return config;
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
  const config = new KubeConfig();
  const caFile = path.join(folder, 'ca.crt');
  const hasCa = existsSync(caFile);
  config.loadFromClusterAndUser(
    {
      name: inClusterName,
      server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`, // always https, whatever the port
      skipTLSVerify: false,
      ...(hasCa && { caFile }),
    },
    { name: inClusterName },
  );
  const problem = hasCa ? undefined : `${caFile} is missing, the CAs of the system are used`;
  return { config, tokenFile, problem };
}

/** The field of a cluster that client-node ignores. */
interface RawCluster {
  'disable-compression'?: boolean;
}

/** The fields of a user that client-node ignores. */
interface RawUser {
  token?: string;
  tokenFile?: string;
  username?: string;
  'as-groups'?: string[];
  'as-uid'?: string;
  'as-user-extra'?: Record<string, string[]>;
  exec?: { command?: string } | null;
  'auth-provider'?: { name?: string; config?: { tokenFile?: string } | null } | null;
}

function restOfUser({ config, raw }: KubeconfigFiles): Pick<Found, 'tokenFile' | 'impersonate'> {
  const name = config.getCurrentUser()?.name;
  const { fields: user, file } = raw<RawUser>('users', name);
  if (user.token && user.username) {
    throw new KubeConfigError(
      `${file}: user ${JSON.stringify(name)} has both a token and a user name, one is allowed`,
      { cure: 'Remove one of the fields token and username of this user' },
    );
  }
  const provider = user['auth-provider'] ?? undefined;
  if (provider !== undefined && provider.name !== 'oidc' && !provider.config?.tokenFile) {
    // without a header each request would be refused, by the API server and without the reason
    throw new KubeConfigError(`${file}: no Auth Provider found for name ${JSON.stringify(provider.name ?? '')}`, {
      cure: 'Use a credential plugin: the field exec of this user',
    });
  }
  const folder = path.dirname(file);
  const exec = config.getCurrentUser()?.exec as RawUser['exec'];
  if (exec?.command?.includes('/') === true) exec.command = path.resolve(folder, exec.command);
  const { 'as-groups': groups, 'as-uid': uid, 'as-user-extra': extra } = user;
  return {
    tokenFile: user.tokenFile ? path.resolve(folder, user.tokenFile) : undefined,
    impersonate: groups || uid || extra ? { groups: groups ?? [], uid, extra: extra ?? {} } : undefined,
  };
}
