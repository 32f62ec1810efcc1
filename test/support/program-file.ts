import path from 'node:path';

const root = path.join(import.meta.dirname, '../..');

const sources = {
  'csi-provisioner': 'src/main.ts',
  'nfs-provisioner': 'provisioners/nfs-server/main.ts',
  'nfs-subdir-external-provisioner': 'provisioners/nfs-subdir/main.ts',
  'kubectl-csi': 'src/cli/plugin/plugin-main.ts',
  'csi-sandbox': 'sandbox/csi-sandbox.js',
  'hostpath-driver': 'sandbox/hostpath/main.ts',
  sandbox: 'sandbox/main.ts',
};

type Program = keyof typeof sources;

/** As `npm run build` makes it. */
export const bundle = path.join(root, 'dist/csi-provisioner.js');

/** Node.js with the flags of the image's entry point. */
export const imageNode = `${process.execPath} --disable-sigusr1 --max-old-space-size-percentage=70 --max-semi-space-size=4`;

/** The command of the bundle as the image runs it. */
export const bundled = `${imageNode} ${bundle}`;

/** The source that starts a program. */
export function programSource(name: Program): string {
  return path.join(root, sources[name]);
}

/**
 * The file that starts a program: in `npm test` the bundle that has been built for the run, which starts with a sixth of the
 * CPU; else its source, so that one test file needs no build.
 */
export function programFile(name: Program): string {
  const built = process.env['TEST_PROGRAMS'];
  return built === undefined
    ? programSource(name)
    : path.join(built, `${name}.${name === 'kubectl-csi' ? 'cjs' : 'js'}`);
}
