import tls from 'node:tls'; // the whole module: an older Node.js rejects an import of a missing name before its version is checked

/**
 * Makes TLS connections of this process that have no `ca` of their own trust the certificate authorities of the system
 * (`SSL_CERT_FILE` and `SSL_CERT_DIR` included) in addition to those of Node.js. This loads about 150 certificates into 5 MB
 * of memory, so call it only in processes that make such connections. Has no effect before Node.js 24.5. Safe to repeat.
 */
export function trustSystemCertificates(): void {
  if (!('setDefaultCACertificates' in tls)) return;
  const sources = ['default', 'system'] as const;
  tls.setDefaultCACertificates([...new Set(sources.flatMap((source) => tls.getCACertificates(source)))]);
}
