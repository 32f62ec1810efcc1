/** Which certificate authorities this machine trusts, for servers whose configuration names none. */
import { X509Certificate } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import tls from 'node:tls'; // as a whole: an older Node.js would refuse a name it lacks before its version is checked
import { KubeConfigError } from './kubeconfig-files.ts';

/** The bundles of Debian, Fedora, openSUSE, OpenELEC, CentOS and Alpine; the first that exists counts. */
const bundles = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/pki/tls/cacert.pem',
  '/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem',
  '/etc/ssl/cert.pem',
];
const folders = ['/etc/ssl/certs', '/etc/pki/tls/certs'];
const pem = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

/**
 * The system's store as Go programs find it on Linux (`crypto/x509`, `loadSystemRoots`): one bundle, or the file that
 * `SSL_CERT_FILE` names, and all files of the usual folders, or of those in `SSL_CERT_DIR`, separated by colons. What
 * `NODE_EXTRA_CA_CERTS` names counts too.
 *
 * @returns PEM text; undefined where the machine has no store: those that come with Node.js then count.
 * @throws {KubeConfigError} when one of the two variables is set and nothing can be read.
 */
export function systemRoots(environment: Record<string, string | undefined>): string | undefined {
  const { SSL_CERT_FILE: file = '', SSL_CERT_DIR: dirs = '' } = environment;
  const roots = new Set<string>();
  for (const bundle of file === '' ? bundles : [file]) {
    const text = read(bundle);
    if (text === undefined) continue;
    addCertificates(roots, text);
    break;
  }
  for (const folder of dirs === '' ? folders : dirs.split(':')) {
    for (const name of entries(folder)) addCertificates(roots, read(path.join(folder, name)) ?? '');
  }
  if (roots.size === 0) {
    if (file === '' && dirs === '') return undefined;
    throw new KubeConfigError(
      `no CA certificate could be read: SSL_CERT_FILE is ${JSON.stringify(file)}, SSL_CERT_DIR is ${JSON.stringify(dirs)}`,
      { cure: 'Name a file, or folders, with certificates in PEM format that this process may read, or unset both.' },
    );
  }
  for (const extra of tls.getCACertificates('extra')) roots.add(extra.trim());
  return [...roots].join('\n');
}

function addCertificates(roots: Set<string>, text: string): void {
  for (const [certificate] of text.matchAll(pem)) if (isReadable(certificate)) roots.add(certificate);
}

/** Unreadable files are skipped, so that they do not hide later ones. */
function isReadable(certificate: string): boolean {
  try {
    new X509Certificate(certificate);
    return true;
  } catch {
    return false;
  }
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined; // not there, or a folder
  }
}

function entries(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
