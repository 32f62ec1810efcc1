/** Arguments, or an environment, with which the sidecar does not start. */
import { defineFinding, type Found } from './preflight-finding.ts';

const removedGate = 'HonorPVReclaimPolicy';

export const unreadableArguments = defineFinding({
  name: 'arguments',
  check({ arguments: { problems }, container }) {
    return problems.map((problem): Found => {
      const isEnvironment = /\bNODE_NAME\b|\bNAMESPACE\b|\bPOD_NAME\b/.test(problem);
      const isElsewhere = isEnvironment && container.hasOtherVariables;
      return {
        level: isElsewhere ? 'warning' : 'must',
        message: isElsewhere
          ? `Unless envFrom sets the variable, the process ends at once: ${problem}`
          : `The process would end at once: ${problem}`,
        cure: cureOf(problem, isEnvironment),
      };
    });
  },
});

function cureOf(problem: string, isEnvironment: boolean): string {
  if (problem.endsWith(removedGate)) {
    return `Remove the gate: what it turned on is always on here, and in the Go sidecar since v6.2, which does not know the gate either.`;
  }
  if (isEnvironment) {
    return 'Add the variable with valueFrom.fieldRef: spec.nodeName for NODE_NAME, metadata.namespace for NAMESPACE, metadata.name for POD_NAME.';
  }
  if (problem.startsWith('unknown')) {
    return 'Remove the flag or correct it; docs/flags.md lists all flags. The Go sidecar v6.4 does not know it either.';
  }
  return 'Correct it; docs/flags.md lists all flags.';
}
