/** The Pod must not run as root, and says no user: the image does not either. */
import { defineFinding } from './preflight-finding.ts';

export const imageUser = defineFinding({
  name: 'user',
  check({ container, workload }) {
    const own = container.fields.part('securityContext');
    const shared = workload.pod.part('securityContext');
    const isNonRoot = own?.flag('runAsNonRoot') ?? shared?.flag('runAsNonRoot') ?? false;
    const user = own?.number('runAsUser') ?? shared?.number('runAsUser');
    if (!isNonRoot || user !== undefined) return [];
    return [
      {
        level: 'must',
        message:
          'runAsNonRoot is true and runAsUser is not set. This image sets no user, since only root can reach a driver that runs as root. So the kubelet refuses to start the container.',
        cure: "Set runAsUser to the user that owns the driver's socket, or to 65532 if a group of the Pod owns the socket.",
      },
    ];
  },
});
