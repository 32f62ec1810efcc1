/** The oldest Node.js that has what the sources use; the same as `engines` in package.json. */
const oldestMajor = 24;

/**
 * What is wrong with a version of Node.js, in one line; undefined on one that will do.
 *
 * @param version - such as `24.1.0`, as in `process.versions.node`.
 */
export function nodeVersionProblem(version: string): string | undefined {
  if (parseInt(version, 10) >= oldestMajor) return undefined;
  return `csi-provisioner needs Node.js ${oldestMajor} or newer, and this is Node.js ${version}`;
}
