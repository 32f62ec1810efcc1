/** The node that was chosen for the claim does not exist. */
import { shortValue } from '../../base/short-value.ts';
import { selectedNode } from '../../provision/claim/claim-fields.ts';
import { attempts } from '../attempts.ts';
import type { ClaimFacts } from '../claim-facts-reader.ts';
import type { Finding } from '../explanation.ts';
import { signOfLifeMs } from '../serving.ts';
import { defineCause } from './cause.ts';

export const selectedNodeGone = defineCause({
  name: 'selected-node-gone',
  failures: [
    {
      pattern: /^failed to get selected (CSINode|Node) /,
      cure: 'Usually the scheduler chooses another node at once. If it chooses this one again, check that the driver runs there',
    },
  ],
});

export function checkNode(facts: ClaimFacts): Finding | undefined {
  const { claim, node, events, nowMs } = facts;
  const name = selectedNode(claim);
  if (name === '' || node === undefined) return undefined;
  if (node.kind === 'unreadable')
    return { state: 'unknown', detail: `node ${shortValue(name)} was chosen; ${node.why}` };
  if (node.kind === 'found') return { state: 'ok', detail: `${shortValue(name)} was chosen and exists` };
  const gone = `Node ${shortValue(name)}, which was chosen for the claim, does not exist`;
  if (events?.kind === 'unreadable') return { state: 'unknown', detail: `${gone}; ${events.why}` };
  const { lastMs } = attempts(facts);
  // only drivers with topology need the node, and the provisioner's events say whether it is missed
  if (lastMs !== undefined && nowMs - lastMs < signOfLifeMs) return { state: 'ok', detail: gone };
  return {
    state: 'stuck',
    cause: 'selected-node-gone',
    message: `${gone}.`,
    cure: 'Check that the provisioner runs: it provisions the volume all the same, or asks the scheduler for another node. If neither happens, recreate the claim and its Pod',
  };
}
