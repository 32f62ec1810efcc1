/** A request of the provisioner to the API server fails for a reason that passes, and is sent again. */
import { isPassing } from '../../kube/client/failed-request.ts';
import { defineCause } from './cause.ts';

const cure =
  'Usually nothing: a request to the API server failed, and is sent again. If it lasts, see whether the API server responds, and what is between it and the provisioner';
const webhookCure =
  'See whether the webhook that the message names runs: the API server calls it for each such request, which is sent again until that succeeds';

export const apiServer = defineCause({
  name: 'api-server',
  request: {
    is: isPassing,
    beatsTexts: true, // such as one about a Secret: nobody knows whether it exists
    cures: [
      { pattern: /failed calling webhook /, cure: webhookCure },
      { pattern: /^/, cure },
    ],
  },
  failures: [
    { pattern: /^Error creating provisioned PV object .*failed calling webhook /s, cure: webhookCure },
    { pattern: /^Error creating provisioned PV object /, cure }, // those that are rejected come before
    { pattern: /^error getting secret /, cure }, // one that is missing, or forbidden, comes before
    { pattern: /^(GET|POST|PUT|PATCH|DELETE) \S+: |^[a-z]+ [a-z]+: the response is /, cure },
  ],
  waits: [
    {
      pattern: /^Waiting for the API server /,
      state: 'waiting',
      cure: 'Nothing to do about the claim; the API server is overloaded or unavailable',
    },
  ],
});
