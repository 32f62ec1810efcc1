import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { getCACertificates } from 'node:tls';
import { KubeConfigError } from '../../../../src/kube/credentials/kubeconfig-files.ts';
import { systemRoots } from '../../../../src/kube/credentials/system-roots.ts';
import { CertificateAuthority } from '../../../../sandbox/api/certificates.ts';

const [one, two, three] = Array.from({ length: 3 }, () => new CertificateAuthority({ nowMs: Date.now() }).cert.trim());
const broken = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n';
const count = (text: string | undefined): number => text?.match(/BEGIN CERTIFICATE/g)?.length ?? 0;
let folder = '';

describe('the roots that the system trusts', () => {
  beforeEach(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'roots-'));
    for (const name of ['a', 'b', 'empty']) mkdirSync(path.join(folder, name));
    writeFileSync(path.join(folder, 'bundle.pem'), `# a comment\n${one}\n${broken}${two}\n`);
    writeFileSync(path.join(folder, 'a', 'two.pem'), `${two}\n`);
    writeFileSync(path.join(folder, 'a', 'README'), 'no certificate');
    writeFileSync(path.join(folder, 'b', 'three'), `${three}\n`);
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const within = (...names: string[]): string => names.map((name) => path.join(folder, name)).join(':');

  test('come from SSL_CERT_FILE and SSL_CERT_DIR, each once, past what cannot be read', () => {
    const roots = systemRoots({ SSL_CERT_FILE: within('bundle.pem'), SSL_CERT_DIR: within('a', 'missing', 'b') });
    for (const root of [one, two, three]) assert.equal(roots?.split(root ?? '').length, 2);
    assert.equal(count(roots), 3 + getCACertificates('extra').length);
  });

  test('SSL_CERT_FILE stands in for the bundle of the system', () => {
    const alone = systemRoots({ SSL_CERT_FILE: within('bundle.pem'), SSL_CERT_DIR: within('empty') });
    assert.equal(count(alone), 2 + getCACertificates('extra').length);
  });

  test('where the variables lead to nothing the error names them', () => {
    assert.throws(
      () => systemRoots({ SSL_CERT_FILE: '/missing.pem', SSL_CERT_DIR: within('empty') }),
      (error) =>
        error instanceof KubeConfigError && error.message.includes('SSL_CERT_FILE is "/missing.pem", SSL_CERT_DIR is '),
    );
  });
});
