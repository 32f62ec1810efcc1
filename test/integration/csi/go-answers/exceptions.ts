/**
 * Where ours means to differ from the answers of the Go sidecar; the migration page says the same in words. One that no line
 * needs any more fails the test.
 */
import type { Exception } from './answers.ts';

const translation = ['migrated', 'delete', 'toCsi', 'toInTree'];
const ofUsers = 'our texts name the value, and what is wrong with it, instead of steps within the code';

function text(files: readonly string[], go: RegExp, ours: RegExp, reason = ofUsers): Exception {
  return { reason, files, fields: { error: { go, ours } } };
}

export const exceptions: readonly Exception[] = [
  text(
    translation,
    /^error parsing volume id: /,
    /^volume handle ".*" does not name a resource group, a storage account/,
  ),
  text(translation, /^failed to get id components\.Got: \d, wanted 6/, /^volume handle ".*" does not name a disk$/),
  text(translation, /^could not get disk name from .*, correct format: /, /^volume handle ".*" does not name a disk$/),
  text(translation, /onvert partition .* to integer: /, /^failed to convert partition ".*" to a whole number/),
  text(translation, /^failed to translate Kubernetes ID to EBS /, /^"aws:.*" is not the name of an EBS volume$/),
  text(translation, /^could not find a secret namespace in /, /^neither the volume nor its claim names the namespace/),
  text(translation, /^failed to translate topology\. PV:.*/s, /^no region: the volume names no zone$/),
  text(translation, /^failed to translate topology\. PV:.*/s, /^the region of zone ".*" is not known$/),
  text(translation, /^failed to get region from zones: /, /^the region of zone ".*" is not known$/),
  text(
    ['topology', 'topology-keysets'],
    /^error parsing topology keys selector: key: Invalid value: /,
    /^error parsing topology keys selector: key: Invalid value: ".*": not the name of a label$/,
    'no API server accepts such a key in a CSINode: why it is no label is left out',
  ),
  {
    reason: 'the storage is that of another driver, which has given the handle a meaning of its own: nothing is sent',
    files: ['delete'],
    fields: {
      error: {
        go: /^(""|rpc error: code = Internal desc = cannot delete)$/,
        ours: /^the storage of the PV is of CSI driver o$/,
      },
      requests: { go: /"delete"/, ours: /^""$/ },
    },
  },
  {
    reason: 'beyond 63 bits a value of Go wraps around or becomes 0; ours stays at the limit',
    files: ['quantity'],
    fields: {
      text: { go: /^(\d+E|9300P|10e18|9{20}|9223372036854775808|9223372036854775807500m)$/, ours: /^/ },
      value: { go: /^(0|7766279631452241919|-9223372036854775808)$/, ours: /^9223372036854775807$/ },
    },
  },
  {
    reason: 'as no plugin wrote it: old and new labels in one volume, no values, zones of vSphere joined in one label',
    files: ['toCsi'],
    lines: [9, 35, 48, 55, 57, 77, 86, 87, 137],
    fields: { affinity: { go: /^\{"required"/, ours: /^\{"required"/ } },
  },
];
