/** A parameter of the class is wrong. */
import { defineCause } from './cause.ts';

export const classParameters = defineCause({
  name: 'class-parameters',
  failures: [
    {
      pattern: /^failed to strip CSI Parameters of prefixed keys: /,
      cure: 'Correct or remove this key, which no sidecar knows: delete the class and create it again',
    },
    {
      pattern: /^fstype specified in parameters with both /,
      cure: 'Keep csi.storage.k8s.io/fstype and leave out fstype: delete the class and create it again',
    },
  ],
});
