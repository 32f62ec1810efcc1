import manifest from '../../package.json' with { type: 'json' };

/** The version of this program, such as `v0.1.0`. */
export const version = `v${manifest.version}`;
