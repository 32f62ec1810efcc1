/**
 * `npm run krew -- --uri URL`: the kubectl plugin as krew installs it: dist/kubectl-csi.tar.gz, which is to be published at the URL,
 * and its manifest dist/csi.yaml. Two runs make the same bytes.
 */
import { createHash } from 'node:crypto';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { dump } from 'js-yaml';
import { writeArchive } from './release/archive.ts';
import { scriptCommand } from './script-command.ts';

const root = path.join(import.meta.dirname, '..');
const dist = path.join(root, 'dist');
const files = ['LICENSE', 'THIRD-PARTY-LICENSES.txt', 'kubectl-csi.cjs'];
/** Node.js and kubectl are all that it needs. */
const platforms = ['darwin', 'linux'];

const { uri } = scriptCommand('npm run krew --', 'The kubectl plugin as an archive, and its krew manifest.')
  .requiredOption('--uri <URL>', 'where the archive is going to be published')
  .parse()
  .opts<{ uri: string }>();

const { version } = JSON.parse(await readFile(path.join(root, 'package.json'), 'utf8')) as { version: string };
await using cleanup = new AsyncDisposableStack();
const folder = await mkdtemp(path.join(tmpdir(), 'krew-'));
cleanup.defer(() => rm(folder, { recursive: true, force: true }));
for (const file of files) await cp(path.join(file === 'LICENSE' ? root : dist, file), path.join(folder, file));
const archive = path.join(dist, 'kubectl-csi.tar.gz');
await writeArchive(archive, { folder, paths: files, epoch: 0 });
const zipped = await readFile(archive);
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
await writeFile(path.join(dist, 'csi.yaml'), dump(manifest));
console.log(`dist/kubectl-csi.tar.gz: ${(zipped.length / 1000).toFixed(0)} kB, sha256 ${sha256}\ndist/csi.yaml`);
