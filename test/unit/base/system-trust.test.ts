import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, test } from 'node:test';
import { promisify } from 'node:util';
import { CertificateAuthority } from '../../../sandbox/api/certificates.ts';

const run = promisify(execFile);
const moduleUrl = new URL('../../../src/base/system-trust.ts', import.meta.url).href;

const withoutSpace = (text: string): string => text.replaceAll(/\s/g, '');

/** Trust is of a whole process, so that each look is one of its own. */
async function trusted(file: string, script: string): Promise<string[]> {
  const print = `process.stdout.write(JSON.stringify(tls.getCACertificates('default').map((text) => text.replaceAll(/\\s/g, ''))))`;
  const { stdout } = await run(
    process.execPath,
    ['--input-type=module', '-e', `import tls from 'node:tls';\n${script}\n${print}`],
    {
      env: { ...process.env, SSL_CERT_FILE: file, SSL_CERT_DIR: path.dirname(file), NODE_OPTIONS: '' },
      maxBuffer: 10_000_000,
    },
  );
  return JSON.parse(stdout) as string[];
}

describe('the trust in the certificate authorities of the system', () => {
  test('is added to that of Node.js, each authority once', async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'trust-'));
    try {
      const own = new CertificateAuthority({ nowMs: Date.now() }).cert;
      const file = path.join(folder, 'ca.pem');
      await writeFile(file, own);
      const before = await trusted(file, '');
      assert.ok(before.length > 10);
      assert.ok(!before.includes(withoutSpace(own)), 'what Node.js trusts by itself');
      const call = `(await import('${moduleUrl}')).trustSystemCertificates();`;
      const after = await trusted(file, `${call}\n${call}`);
      assert.ok(after.includes(withoutSpace(own)));
      assert.ok(before.every((authority) => after.includes(authority)));
      assert.equal(after.length, new Set(before).size + 1);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test('is not added before Node.js 24.5, which has no means for it', async () => {
    const older = 'delete tls.setDefaultCACertificates;';
    const call = `(await import('${moduleUrl}')).trustSystemCertificates();`;
    assert.deepEqual(await trusted('/nowhere', `${older}\n${call}`), await trusted('/nowhere', older));
  });
});
