/** Works on /etc/exports with the real `exportfs`, in a mount namespace of its own; prints what is exported then. */
import { execFileSync } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { silentLogger } from '../../../src/index.ts';
import { AtomicFile } from '../../../provisioners/nfs-server/atomic-file.ts';
import { Exports } from '../../../provisioners/nfs-server/exports.ts';
import { kernelFormat, kernelServer } from '../../../provisioners/nfs-server/kernel-exports.ts';

const [root = ''] = process.argv.slice(2);
const { signal } = new AbortController();
const file = new AtomicFile('/etc/exports', 0o644);
await file.write('');
const exports = await Exports.open({ file, format: kernelFormat('*'), server: kernelServer, logger: silentLogger });
for (const name of ['pvc-1', 'pvc-2', 'pvc-9']) await mkdir(`${root}/${name}`);
await exports.add({ directory: `${root}/pvc-1`, squash: 'no_root_squash' }, signal);
await exports.add({ directory: `${root}/pvc-2`, squash: 'root_id_squash' }, signal);
await exports.restore([{ id: 9, path: `${root}/pvc-9`, squash: 'no_root_squash' }], () => true, signal);
await exports.remove(`${root}/pvc-1`, signal);
process.stdout.write(execFileSync('exportfs', ['-s'], { encoding: 'utf8' }));
