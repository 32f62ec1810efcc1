import { writeFile } from 'node:fs/promises';

export interface KubeconfigOptions {
  url: string;
  /** PEM, embedded; without it the file trusts `caFile`. */
  ca?: string;
  caFile?: string;
  token: string;
  /** Proxy to the server. */
  proxyUrl?: string | undefined;
  /** Namespace of the context; default `default`. */
  namespace?: string;
}

/** Writes a kubeconfig with one cluster, user and context; readable by its owner only, for it holds a token. */
export async function writeKubeconfig(path: string, options: KubeconfigOptions): Promise<void> {
  const { url, ca, caFile, token, proxyUrl, namespace = 'default' } = options;
  const trust =
    ca === undefined
      ? { 'certificate-authority': caFile }
      : { 'certificate-authority-data': Buffer.from(ca).toString('base64') };
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'test', cluster: { server: url, ...trust, 'proxy-url': proxyUrl } }],
    users: [{ name: 'test', user: { token } }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test', namespace } }],
    'current-context': 'test',
  };
  await writeFile(path, JSON.stringify(config, undefined, 2), { mode: 0o600 }); // JSON is YAML too
}
