/** In node deployment: other nodes see nothing of the provisioner of the node that was selected. It may be away, or slow. */
import { defineCause } from './cause.ts';

export const provisionerAway = defineCause({
  name: 'provisioner-away',
  waits: [
    {
      pattern: /^Waiting for node ".*", which was selected/,
      state: 'stuck',
      cure: "If the driver's Pod runs on that node, it may still be creating the volume. Else start it, or recreate the claim",
    },
  ],
});
