/** Reasons for which tests may be skipped in `.ci/run`, by why that is no gap that nobody knows. Any other skip fails it. */
const knownSkips: Readonly<Record<string, readonly (string | RegExp)[]>> = {
  'the machine of `.ci/run` may not permit it: containers without root, mounts or namespaces': [
    'needs root',
    'needs root and immutable files',
    'needs root and loop devices',
    'needs root and FUSE',
    'needs control groups',
    'only root may become another user',
    'only root replaces files of others',
    'exportfs needs root',
    'ganesha opens files by handle, which only root may',
    'no namespaces',
    'no file system can be mounted here',
    'nothing may be mounted here',
    'this process may not mount',
    /^no mounts are permitted here: /,
    'processes with a host name of their own are not permitted here',
    /^two (rivals|Pods) on one machine need `unshare --uts`, which is not permitted here$/,
    'this machine has no IPv6 loopback address',
  ],
  'the machine may lack the program, and `.ci/run` cannot always install it, or takes minutes for it': [
    /^NOT tested: no Chromium at /,
    /^(exportfs|ganesha) is not installed, and could not be downloaded: /,
    /^one of .* is missing$/,
    'no older Node.js here',
    'no script(1) here to make a terminal',
    'Helm 4 is not there: test/support/helm/build.sh 4 compiles it, with Go',
  ],
  'the public charts are not in this repository': ['ORIGINAL_CHARTS names no folder with the public charts'],
  'the step with the real control plane runs it': [
    'needs the real control plane',
    'only the real control plane has an etcd that so many objects can be written into',
    /^the sandbox (has|answers|cannot|is of) /,
    'attributes classes are not served',
    'the API server drops volumeAttributesClassName from claims',
    /^the API server does not serve volumeattributesclasses /,
  ],
};

const reasons = Object.values(knownSkips).flat();

/** @param reason - of the test; true where it gives none. */
export function isKnownSkip(reason: string | true): boolean {
  return reasons.some((known) => (typeof known === 'string' ? known === reason : known.test(String(reason))));
}
