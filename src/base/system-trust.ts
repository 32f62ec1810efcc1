import tls from 'node:tls'; // as a whole: an older Node.js would refuse a name it lacks before its version is checked

/**
 * From now on TLS connections of this process without a `ca` of their own trust the certificate authorities of the system
 * too (`SSL_CERT_FILE` and `SSL_CERT_DIR` count), not only those that come with Node.js. Reads some 150 certificates, 5 MB of
 * memory: call it only in programs that make such connections. Without effect before Node.js 24.5. Safe to repeat.
 */
export function trustSystemCertificates(): void {
  if (!('setDefaultCACertificates' in tls)) return; // before Node.js 24.5
  const sources = ['default', 'system'] as const;
  tls.setDefaultCACertificates([...new Set(sources.flatMap((source) => tls.getCACertificates(source)))]);
}
