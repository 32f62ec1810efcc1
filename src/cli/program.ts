import manifest from '../../package.json' with { type: 'json' };

/** The version of this program, such as `v0.1.0`. */
export const version = `v${manifest.version}`;

/** Where images of this project have Node.js and the program, as their entry point names them. */
export const programInImage = ['/nodejs/bin/node', '/csi-provisioner.mjs'] as const;
