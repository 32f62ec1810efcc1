/** There is no sign of the provisioner, or Kubernetes has no such plugin. */
import { attempts } from '../attempts.ts';
import type { ClaimFacts } from '../claim-facts-reader.ts';
import type { Finding } from '../explanation.ts';
import { checkServing } from '../serving.ts';
import { defineCause } from './cause.ts';

export const noProvisioner = defineCause({
  name: 'no-provisioner',
  failures: [
    {
      pattern: /^no volume plugin matched/,
      cure: 'Kubernetes has no such plugin, or no longer has it: recreate the class with the name of a CSI driver',
    },
  ],
});

/** Whether there is one, and whether it has a leader. */
export function checkProvisioner(facts: ClaimFacts): Finding | undefined {
  const { provisioner, events, nowMs } = facts;
  if (provisioner === undefined) return undefined;
  const { lastMs } = attempts(facts);
  const causes = { nobody: 'no-provisioner', away: 'no-leader' } as const;
  return checkServing({ provisioner, nowMs, events, lastSignMs: lastMs, ...causes });
}
