/** In node deployment: no volume has come from the selected node yet. Its provisioner may be away, or slow. */
import { defineCause } from './cause.ts';

export const provisionerAway = defineCause({
  name: 'provisioner-away',
  waits: [
    {
      pattern: /^Waiting for node ".*", which was selected/,
      state: 'stuck',
      cure: "Check the driver's Pod on that node. If it is running, it may still be creating the volume: wait. If not, get it running, or recreate the claim",
    },
  ],
});
