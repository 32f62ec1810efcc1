/** In node deployment: the provisioner of the node that was selected does not take the claim. */
import { defineCause } from './cause.ts';

export const provisionerAway = defineCause({
  name: 'provisioner-away',
  waits: [
    {
      pattern: /^Waiting for node ".*", which was selected/,
      state: 'stuck',
      cure: "Start the driver's Pod on that node, or recreate the claim",
    },
  ],
});
