/** The API server rejects a request of the provisioner: a permission is missing, or a policy, webhook or quota forbids it. */
import { isRejection } from '../../kube/client/failed-request.ts';
import { defineCause, type TextPattern } from './cause.ts';

/** By texts, since a permission, a quota and a policy share the code 403, and a webhook chooses its own. */
const cures: readonly TextPattern[] = [
  {
    pattern: /exceeded quota: /,
    cure: 'Raise the quota that the message names, or delete what counts against it',
  },
  {
    pattern: /is forbidden: User /,
    cure: 'Permit the provisioner what the message names: its log has the rule to add',
  },
  {
    pattern: /(^|: )Unauthorized/,
    cure: 'Check the service account of the provisioner and its token, or the credentials in its kubeconfig: the API server does not accept them',
  },
  {
    pattern: /is forbidden|denied (the )?request|is invalid: /,
    cure: 'The API server does not accept what the provisioner writes, such as the PersistentVolume of a volume that the driver has created: correct what the message names, such as a policy or a webhook',
  },
];

export const rejected = defineCause({
  name: 'rejected',
  request: { is: isRejection, beatsTexts: false, cures },
  failures: cures.map(({ pattern, cure }) => ({
    pattern: new RegExp(`^Error creating provisioned PV object .*?(${pattern.source})`, 's'),
    cure,
  })),
});
