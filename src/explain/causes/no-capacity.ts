/** More is requested than is available. */
import { defineCause } from './cause.ts';

/** Where the scheduler refuses a Pod for lack of storage. */
export const noRoomCure = 'Free storage on a node that fits the Pod, request less, or use another class';

export const noCapacity = defineCause({
  name: 'no-capacity',
  failures: [
    {
      pattern: /^The selected node could not be removed from the claim /,
      cure: 'Permit the provisioner to update claims, so that another node can be chosen',
    },
    {
      // the CSI specification gives this code its meaning: "Unable to provision in accessible_topology"
      pattern: /code = ResourceExhausted .*(topolog|zone|region|segment|accessib)/is,
      cure: 'The driver cannot create the volume where it is requested. Do what its message says (storage, quota), or request it elsewhere: other nodes for the Pod, or a class with other allowedTopologies',
    },
    {
      pattern: /code = ResourceExhausted /,
      cure: 'Free storage, request less, or use a class with enough capacity',
    },
  ],
  waits: [
    {
      pattern: /^Waiting for a node with room /,
      state: 'stuck',
      cure: 'Free storage on a node, request less, or use a class with enough capacity',
    },
    {
      pattern: /^Waiting for the deletion of a volume: /,
      state: 'stuck',
      cure: 'Delete volumes that nobody needs, or raise the limit of the provisioner or its class',
    },
  ],
});
