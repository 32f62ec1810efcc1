/** A profile of system calls that was made for another program. */
import type { SidecarFacts } from '../sidecar-facts.ts';
import { defineFinding } from './preflight-finding.ts';

export const foreignSeccompProfile = defineFinding({
  name: 'seccomp',
  check(facts) {
    return (['seccompProfile', 'appArmorProfile'] as const).flatMap((name) => {
      if (profileType(facts, name) !== 'Localhost') return [];
      const message = `Its ${name} is a profile on the node (Localhost). One that was made for the Go sidecar forbids system calls that Node.js needs.`;
      return [
        { level: 'warning' as const, message, cure: 'Use RuntimeDefault, or a profile that was made for this image.' },
      ];
    });
  },
});

function profileType({ container, workload: { pod } }: SidecarFacts, name: string): string | undefined {
  const own = container.fields.part('securityContext')?.part(name);
  return (own ?? pod.part('securityContext')?.part(name))?.text('type');
}
