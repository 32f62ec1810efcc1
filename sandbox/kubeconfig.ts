/** What a client needs to know to reach a server. */
export interface KubeconfigTarget {
  readonly url: string;
  /** PEM text of the CA that signed the server's certificate. */
  readonly ca?: string;
  /** Bearer token; clients do not send it over plain HTTP. */
  readonly token?: string;
  /** Of the context. Default `default`. */
  readonly namespace?: string;
}

/** Whether a file's text is empty or was made by `kubeconfigText`. */
export function isSandboxKubeconfig(text: string): boolean {
  return text.trim() === '' || /^current-context: sandbox$/m.test(text);
}

/** The text of a kubeconfig file with one context, `sandbox` (Kubernetes, "Organizing Cluster Access"). */
export function kubeconfigText({ url, ca, token, namespace = 'default' }: KubeconfigTarget): string {
  const authority = ca === undefined ? '' : `\n      certificate-authority-data: ${Buffer.from(ca).toString('base64')}`;
  // the JavaScript client takes a plain HTTP server only together with this
  const plain = url.startsWith('http:') ? '\n      insecure-skip-tls-verify: true' : '';
  const user = token === undefined ? '{}' : `\n      token: ${JSON.stringify(token)}`;
  return `apiVersion: v1
kind: Config
clusters:
  - name: sandbox
    cluster:
      server: ${url}${authority}${plain}
users:
  - name: sandbox
    user: ${user}
contexts:
  - name: sandbox
    context:
      cluster: sandbox
      user: sandbox
      namespace: ${namespace}
current-context: sandbox
`;
}
