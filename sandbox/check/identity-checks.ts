import type { Bench } from './bench.ts';
import type { Check, Findings } from './check.ts';
import type { Method } from './csi-messages.ts';
import { prefixes, segmentMistakes } from './topology-rules.ts';
import { CheckSkipped } from './outcome.ts';

const pluginName = /^[A-Za-z0-9]([-.A-Za-z0-9]{0,61}[A-Za-z0-9])?$/;

/** The call that each capability of the controller promises. */
const promised: Record<string, Method> = {
  CREATE_DELETE_VOLUME: 'DeleteVolume',
  PUBLISH_UNPUBLISH_VOLUME: 'ControllerUnpublishVolume',
  LIST_VOLUMES: 'ListVolumes',
  GET_CAPACITY: 'GetCapacity',
  CREATE_DELETE_SNAPSHOT: 'DeleteSnapshot',
  LIST_SNAPSHOTS: 'ListSnapshots',
  EXPAND_VOLUME: 'ControllerExpandVolume',
  GET_VOLUME: 'ControllerGetVolume',
  MODIFY_VOLUME: 'ControllerModifyVolume',
  GET_SNAPSHOT: 'GetSnapshot',
};

export const identityChecks: readonly Check[] = [
  {
    id: 'probe',
    title: 'Probe says that the driver is ready',
    section: 'Probe',
    part: 'driver',
    async run(bench, findings) {
      const answer = await bench.call('Probe');
      if (!answer.ok) {
        findings.fail(bench.described(answer));
        return;
      }
      const { ready } = answer.response;
      if (ready !== undefined && ready.value !== true) findings.fail('Probe: ready is false');
    },
  },
  {
    id: 'plugin-info',
    title: 'GetPluginInfo returns a name that Kubernetes accepts, and a version',
    section: 'GetPluginInfo',
    part: 'driver',
    run({ facts: { info } }, findings) {
      if (!info.ok) {
        findings.fail(`GetPluginInfo: ${info.code}: ${info.message}`);
        return;
      }
      const { name = '', vendor_version: version = '' } = info.response;
      if (!pluginName.test(name)) {
        findings.fail(
          `the name ${JSON.stringify(name)} is not a domain name of at most 63 letters, digits, dashes and dots`,
        );
      }
      if (version === '') findings.warn('vendor_version is empty, but the field is REQUIRED');
    },
  },
  {
    id: 'plugin-capabilities',
    title: 'GetPluginCapabilities agrees with the capabilities of the controller and the node',
    section: 'GetPluginCapabilities',
    part: 'driver',
    run: checkPluginCapabilities,
  },
  {
    id: 'controller-capabilities',
    title: 'ControllerGetCapabilities is complete and consistent',
    section: 'ControllerGetCapabilities',
    part: 'driver',
    run: checkControllerCapabilities,
  },
  {
    id: 'promised-calls',
    title: 'every call that a capability promises is implemented',
    section: 'ControllerGetCapabilities',
    part: 'driver',
    needs: ['controller-capabilities'],
    run: checkPromisedCalls,
  },
  {
    id: 'node-info',
    title: 'NodeGetInfo returns a node id, and segments that can be labels',
    section: 'NodeGetInfo',
    part: 'driver',
    run: checkNodeInfo,
  },
];

function checkPluginCapabilities(bench: Bench, findings: Findings): void {
  const { pluginCapabilities: answer, plugin, expansion, controller, node } = bench.facts;
  if (!answer.ok) {
    findings.fail(bench.described(answer));
    return;
  }
  if (plugin.has('UNKNOWN') || plugin.has('undefined')) findings.fail('a capability has the type UNKNOWN');
  if (!plugin.has('CONTROLLER_SERVICE')) {
    findings.fail('CONTROLLER_SERVICE is missing: Kubernetes provisions no volume with this driver');
  }
  const expands = controller.has('EXPAND_VOLUME') || node.has('EXPAND_VOLUME');
  if (expansion.has('ONLINE') && !expands) {
    findings.fail('ONLINE expansion is announced, but EXPAND_VOLUME by neither the controller nor the node');
  }
  if (expansion.has('OFFLINE') && !controller.has('EXPAND_VOLUME')) {
    findings.fail('OFFLINE expansion is announced, but the controller has no EXPAND_VOLUME');
  }
}

function checkControllerCapabilities(bench: Bench, findings: Findings): void {
  const { controllerCapabilities: answer, controller } = bench.facts;
  if (!answer.ok) {
    findings.fail(bench.described(answer));
    return;
  }
  if (!controller.has('CREATE_DELETE_VOLUME')) {
    findings.fail('CREATE_DELETE_VOLUME is missing: Kubernetes provisions no volume with this driver');
  }
  for (const name of ['LIST_VOLUMES_PUBLISHED_NODES', 'PUBLISH_READONLY']) {
    if (controller.has(name) && !controller.has('PUBLISH_UNPUBLISH_VOLUME')) {
      findings.fail(`${name} is announced without PUBLISH_UNPUBLISH_VOLUME`);
    }
  }
  const names = (answer.response.capabilities ?? []).map(({ rpc }) => String(rpc?.type ?? ''));
  const doubles = new Set(names.filter((name, index) => names.indexOf(name) !== index));
  if (doubles.size > 0) findings.warn(`announced twice: ${[...doubles].join(', ')}`);
}

/** Without their required fields all of them fail, but not as calls that are missing. */
async function checkPromisedCalls(bench: Bench, findings: Findings): Promise<void> {
  for (const [capability, method] of Object.entries(promised)) {
    if (!bench.facts.controller.has(capability)) continue;
    const answer = await bench.call(method);
    if (answer.ok) continue;
    if (answer.code === 'UNIMPLEMENTED') findings.fail(`${capability} is announced, but ${method} is UNIMPLEMENTED`);
    if (answer.stalled) findings.fail(bench.described(answer));
  }
}

function checkNodeInfo(bench: Bench, findings: Findings): void {
  const { nodeInfo: answer, controller, nodeId, segments } = bench.facts;
  if (!answer.ok) {
    if (answer.code !== 'UNIMPLEMENTED') {
      findings.fail(bench.described(answer));
      return;
    }
    throw new CheckSkipped('there is no node service at this socket, as is usual for a separate controller plugin');
  }
  const bytes = Buffer.byteLength(nodeId);
  if (bytes === 0) {
    const text = 'node_id is empty, but the field is REQUIRED';
    if (controller.has('PUBLISH_UNPUBLISH_VOLUME')) findings.fail(text);
    else findings.warn(text);
  }
  if (bytes > 256) findings.fail(`node_id has ${bytes} bytes; at most 256 are allowed`);
  else if (bytes > 128) findings.warn(`node_id has ${bytes} bytes; more than 128 are not recommended`);
  if (Number(answer.response.max_volumes_per_node ?? 0) < 0) findings.fail('max_volumes_per_node is negative');
  for (const mistake of segmentMistakes(segments)) findings.fail(mistake, 'CreateVolume, Topology');
  const some = prefixes(segments);
  if (some.length > 1)
    findings.warn(`the topology keys have several prefixes: ${some.join(', ')}`, 'CreateVolume, Topology');
  const announced = bench.topology;
  if (announced && Object.keys(segments).length === 0) {
    findings.fail('VOLUME_ACCESSIBILITY_CONSTRAINTS is announced, but accessible_topology is empty');
  }
  if (!announced && Object.keys(segments).length > 0) {
    findings.fail('accessible_topology is set without VOLUME_ACCESSIBILITY_CONSTRAINTS');
  }
}
