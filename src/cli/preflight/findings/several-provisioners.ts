/** Several containers of one Pod are the Go sidecar. */
import { nameList } from '../../../base/name-list.ts';
import { readArguments } from '../read-arguments.ts';
import { defineFinding, type Found } from './preflight-finding.ts';

export const severalProvisioners = defineFinding({
  name: 'several-provisioners',
  check({ container, workload, sidecars, arguments: { values } }) {
    const others = sidecars.filter((each) => each.workload === workload && each.container !== container);
    if (others.length === 0) return [];
    const names = nameList(
      others.map((each) => each.container.name),
      5,
    );
    const read = others.map((each) => readArguments(each.container, workload.namespace).values);
    const sameSocket = read.some((each) => each['csi-address'] === values['csi-address']);
    const found: Found[] = [
      {
        level: 'note',
        message: `The Pod has another container that is the Go sidecar: ${names}. The image of each can be changed by itself, and either may stay as it is.`,
      },
    ];
    if (!sameSocket) return found;
    return [
      ...found,
      {
        level: 'warning',
        message: `Two sidecars of the Pod have the same --csi-address, ${values['csi-address']}, and would provision the same claims.`,
        cure: 'Remove one of them.',
      },
    ];
  },
});
