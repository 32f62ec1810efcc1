/** A parameter of the class is wrong. */
import { defineCause } from './cause.ts';

export const classParameters = defineCause({
  name: 'class-parameters',
  failures: [
    {
      pattern: /^fstype specified in parameters with both /,
      cure: 'Keep csi.storage.k8s.io/fstype and leave out fstype: delete the class and create it again',
    },
  ],
});
