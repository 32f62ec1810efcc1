/** Whose log says more about an error of the driver, and in which container it is. */
import { shellCommand } from '../base/shell-word.ts';
import { type Pod, pods } from './cluster-objects.ts';
import { type ClusterReader, found, type Reading } from './cluster-reader.ts';
import type { ProvisionerFacts } from './provisioner-facts.ts';
import type { History, Recorded } from './provisioning-events.ts';

/** The Pod whose provisioner has recorded an event. */
export interface DriverPod {
  /** Of the process: the name of its Pod, or, on the network of the host, of its node. */
  host: string;
  /** Of the Lease; undefined: there is none, so where the Pod is cannot be seen. */
  namespace?: string | undefined;
  pod?: Reading<Pod> | undefined;
}

/** The containers beside a driver that are none: their names, and those of their images. */
const sidecars =
  /^((csi-|external-)?(provisioner|attacher|resizer|snapshotter|(external-)?health-monitor.*|(node-)?driver-registrar)|.*liveness-?probe|.*rbac-proxy)$/;

/** No provisioner has a longer timeout for one call, in milliseconds. */
export const callEndsWithinMs = 30 * 60_000;

/** What is recorded about a call of which the log of the driver says more. */
export function loggedCall({ failed, started }: History, nowMs: number): Recorded | undefined {
  if (failed !== undefined) return failed.text.includes('rpc error: ') ? failed : undefined;
  return started !== undefined && nowMs - started.atMs > callEndsWithinMs ? started : undefined;
}

/** At most one request. @param recorded - the event about the error. */
export async function readDriverPod(
  recorded: Recorded | undefined,
  provisioner: ProvisionerFacts | undefined,
  reader: ClusterReader,
): Promise<DriverPod | undefined> {
  // provisioners name themselves by their driver, their host and a random part
  const [, host] = /^[^_]+_([^_]+)/.exec(recorded?.component ?? '') ?? [];
  if (host === undefined) return undefined;
  const [lease] = found(provisioner?.leases) ?? [];
  const namespace = lease?.metadata.namespace;
  if (namespace === undefined) return { host };
  return { host, namespace, pod: await reader.get<Pod>(pods, { namespace, name: host }) };
}

/** As in `See the log of container hostpath in Pod driver/pod-1: kubectl logs ...`, without a full stop. */
export function driverLogText(known: DriverPod | undefined): string {
  if (known === undefined) return "See the log of the driver's container, which is in the Pod of the provisioner";
  const { host, namespace, pod } = known;
  if (namespace === undefined) return `See the log of the driver's container in Pod ${host}, beside the provisioner`;
  if (pod?.kind === 'missing') return `See the log of the driver's container on ${host}, beside the provisioner`;
  const words = ['kubectl', 'logs', '-n', namespace, host];
  const containers = (found(pod)?.spec?.containers ?? []).filter(({ name, image = '' }) => {
    const [imageName = ''] = (image.split('/').at(-1) ?? '').split(/[:@]/);
    return !sidecars.test(name) && !sidecars.test(imageName);
  });
  const [first, ...others] = containers.map(({ name }) => name);
  if (pod?.kind === 'found' && first === undefined) {
    const node = pod.value.spec?.nodeName ?? '';
    return `See the log of the driver's own Pod on node ${node}: Pod ${namespace}/${host}, whose provisioner has called it, has no container of the driver`;
  }
  const command = shellCommand(
    first === undefined ? [...words, '--all-containers', '--since=1h'] : [...words, '-c', first],
  );
  const which = first === undefined ? "the driver's container" : `container ${first}`;
  const more = others.length === 0 ? '' : ` (or ${others.join(', ')})`;
  const text = `See the log of ${which}${more} in Pod ${namespace}/${host}`;
  return command === undefined ? text : `${text}: ${command}`;
}
