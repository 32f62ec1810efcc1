/**
 * `npm run krew -- --uri URL`: the kubectl plugin as krew installs it: dist/kubectl-csi.tar.gz, which is to be published at the URL,
 * and its manifest dist/csi.yaml. Two runs make the same bytes.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { dump } from 'js-yaml';
import { scriptCommand } from './script-command.ts';

const root = path.join(import.meta.dirname, '..');
const dist = path.join(root, 'dist');
const files = ['kubectl-csi.cjs', 'THIRD-PARTY-LICENSES.txt'];
/** Node.js and kubectl are all that it needs. */
const platforms = ['darwin', 'linux'];

const { uri } = scriptCommand('npm run krew --', 'The kubectl plugin as an archive, and its krew manifest.')
  .requiredOption('--uri <URL>', 'where the archive is going to be published')
  .parse()
  .opts<{ uri: string }>();

const { version } = JSON.parse(await readFile(path.join(root, 'package.json'), 'utf8')) as { version: string };
const { stdout: archive } = await promisify(execFile)(
  'tar',
  [
    '--sort=name',
    '--mtime=@0',
    '--owner=0',
    '--group=0',
    '--numeric-owner',
    '-cf',
    '-',
    '-C',
    dist,
    ...files,
    '-C',
    root,
    'LICENSE',
  ],
  { encoding: 'buffer', maxBuffer: 64 * 1024 ** 2 },
);
const zipped = gzipSync(archive, { level: 9 });
const sha256 = createHash('sha256').update(zipped).digest('hex');
const manifest = {
  apiVersion: 'krew.googlecontainertools.github.com/v1alpha2',
  kind: 'Plugin',
  metadata: { name: 'csi' },
  spec: {
    version: `v${version}`,
    shortDescription: 'Explain pending claims and audit volumes of CSI drivers',
    description:
      'kubectl csi why explains why a PersistentVolumeClaim is not bound, or why a PersistentVolume stays. kubectl csi audit, journal and open work with the csi-provisioner sidecar of a driver.\n',
    caveats: 'It needs Node.js 24 or newer.\n',
    platforms: platforms.map((os) => ({ selector: { matchLabels: { os } }, uri, sha256, bin: 'kubectl-csi.cjs' })),
  },
};
await writeFile(path.join(dist, 'kubectl-csi.tar.gz'), zipped);
await writeFile(path.join(dist, 'csi.yaml'), dump(manifest));
console.log(`dist/kubectl-csi.tar.gz: ${(zipped.length / 1000).toFixed(0)} kB, sha256 ${sha256}\ndist/csi.yaml`);
