/** Where the API server is and who we are there: found by `@kubernetes/client-node`, checked and completed here. */
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { KubeConfig, loadYaml } from '@kubernetes/client-node';

export interface KubeConfigSource {
  /** Path of a kubeconfig file. */
  kubeconfig?: string | undefined;
  /** URL of the API server; alone it is used without credentials, with a kubeconfig it replaces the server. */
  master?: string | undefined;
  /** The process environment: where the in-cluster variables are looked up. */
  environment: Record<string, string | undefined>;
}

/** A configuration and what client-node leaves out of it. */
export interface LoadedKubeConfig {
  config: KubeConfig;
  /** `tokenFile` of the current user, absolute. */
  tokenFile?: string | undefined;
}

/** The configuration cannot be used; the message names the file or variable. */
export class KubeConfigError extends Error {
  override readonly name = 'KubeConfigError';
}

/** The paths every pod has (Kubernetes page "Accessing the Kubernetes API from a Pod"). */
const serviceAccountFolder = '/var/run/secrets/kubernetes.io/serviceaccount';

/**
 * Reads the configuration: a kubeconfig file, else a bare server URL, else the pod's service account. Safe to repeat:
 * that is how credentials are renewed.
 *
 * @throws {KubeConfigError} when nothing usable is found.
 */
export function loadKubeConfig(source: KubeConfigSource): LoadedKubeConfig {
  if (source.kubeconfig !== undefined && source.kubeconfig !== '') return fromFile(source.kubeconfig, source.master);
  if (source.master !== undefined && source.master !== '') return { config: fromServer(source.master) };
  return fromCluster(source.environment);
}

function fromFile(file: string, master: string | undefined): LoadedKubeConfig {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    const why = code === 'ENOENT' ? 'no such file or directory' : (error as Error).message;
    throw new KubeConfigError(`stat ${file}: ${why}`, { cause: error });
  }
  const config = new KubeConfig();
  try {
    if (text.trim() !== '') config.loadFromFile(file);
  } catch (error) {
    throw new KubeConfigError(`error loading config file ${JSON.stringify(file)}: ${(error as Error).message}`, {
      cause: error,
    });
  }
  const cluster = config.getCurrentCluster();
  if (cluster === null && (master === undefined || master === '')) {
    throw new KubeConfigError(
      `invalid configuration: no configuration has been provided, ${file} names no current context with a cluster`,
    );
  }
  if (master !== undefined && master !== '') replaceServer(config, serverUrl(master));
  return { config, tokenFile: tokenFileOf(config, text, path.dirname(file)) };
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

/** A host and port without scheme means http, as in the original. */
function serverUrl(master: string): string {
  const text = /^[a-z][a-z0-9+.-]*:\/\//i.test(master) ? master : `http://${master}`;
  if (!URL.canParse(text)) throw new KubeConfigError(`--master: ${JSON.stringify(master)} is no URL and no host:port`);
  return text;
}

function fromCluster(environment: Record<string, string | undefined>): LoadedKubeConfig {
  const host = environment['KUBERNETES_SERVICE_HOST'] ?? '';
  const port = environment['KUBERNETES_SERVICE_PORT'] ?? '';
  if (host === '' || port === '') {
    throw new KubeConfigError(
      'unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined',
    );
  }
  const tokenFile = path.join(serviceAccountFolder, 'token');
  try {
    readFileSync(tokenFile);
  } catch (error) {
    throw new KubeConfigError(`open ${tokenFile}: ${(error as Error).message}`, { cause: error });
  }
  const config = new KubeConfig();
  const caFile = path.join(serviceAccountFolder, 'ca.crt');
  config.loadFromClusterAndUser(
    {
      name: 'in-cluster',
      server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`, // always https, whatever the port
      skipTLSVerify: false,
      ...(existsSync(caFile) ? { caFile } : {}),
    },
    { name: 'in-cluster' },
  );
  return { config, tokenFile };
}

/** `users[].user.tokenFile` of the current user, which client-node does not read. */
function tokenFileOf(config: KubeConfig, text: string, folder: string): string | undefined {
  const name = config.getCurrentUser()?.name;
  if (name === undefined) return undefined;
  const raw = loadYaml<{ users?: { name?: string; user?: { tokenFile?: string } }[] }>(text);
  const file = raw.users?.find((user) => user.name === name)?.user?.tokenFile;
  return file === undefined || file === '' ? undefined : path.resolve(folder, file);
}
