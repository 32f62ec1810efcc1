/** `csi-provisioner why`: arguments and output around the explanation. */
import { KubeClient } from '../kube/kube-client.ts';
import { persistentVolumeClaims, persistentVolumes } from '../provision/objects.ts';
import { connectCluster, type ConnectionFlags } from './cluster-connection.ts';
import { readArguments, type SubcommandCall, subcommandParser, usageError } from './subcommand-call.ts';

/** The exit code when nothing could be said. */
const unknownCode = 3;

interface WhyFlags extends ConnectionFlags {
  namespace?: string;
}

/** Explains what a claim or a volume waits for. Reads alone: safe to repeat. */
export async function explainWhy(call: SubcommandCall): Promise<number> {
  const parser = subcommandParser(call)
    .description('Explains why a PersistentVolumeClaim is not bound, or why a PersistentVolume stays.')
    .argument('<object>', 'NAMESPACE/CLAIM, CLAIM, or pv/NAME for a volume')
    .option('-n, --namespace <name>', 'namespace of the claim (default: that of the context)')
    .option('--kubeconfig <file>', 'default: $KUBECONFIG, ~/.kube/config, or the service account of the Pod')
    .option('--context <name>', 'context in the kubeconfig (default: its current one)');
  if (!readArguments(parser, call, { usageCode: unknownCode })) return 0;
  const flags = parser.opts<WhyFlags>();
  const [object = ''] = parser.args;
  const [first = '', second, ...rest] = object.split('/');
  if (first === '' || second === '' || rest.length > 0) {
    throw usageError(call, `${JSON.stringify(object)} is neither NAMESPACE/CLAIM nor pv/NAME`, {
      usageCode: unknownCode,
    });
  }
  const { transport, namespace } = connectCluster(call, flags, { failureCode: unknownCode });
  await using _ = transport;
  const client = new KubeClient({ transport, fieldManager: 'csi-provisioner' });
  const found =
    first === 'pv' && second !== undefined
      ? await client.get(persistentVolumes, { name: second })
      : await client.get(persistentVolumeClaims, {
          namespace: second === undefined ? (flags.namespace ?? namespace) : first,
          name: second ?? first,
        });
  call.stdout.write(`${JSON.stringify(found)}\n`);
  return 0;
}
