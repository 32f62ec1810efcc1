import type { Answer, CsiClient } from './csi-client.ts';
import type { Responses, StringMap } from './csi-messages.ts';

/** What a driver says of itself, as it answered. */
export interface DriverFacts {
  readonly info: Answer<Responses['GetPluginInfo']>;
  readonly pluginCapabilities: Answer<Responses['GetPluginCapabilities']>;
  readonly controllerCapabilities: Answer<Responses['ControllerGetCapabilities']>;
  readonly nodeCapabilities: Answer<Responses['NodeGetCapabilities']>;
  readonly nodeInfo: Answer<Responses['NodeGetInfo']>;
  readonly plugin: ReadonlySet<string>;
  readonly expansion: ReadonlySet<string>;
  readonly controller: ReadonlySet<string>;
  readonly node: ReadonlySet<string>;
  /** Of `NodeGetInfo`; empty without. */
  readonly segments: StringMap;
  readonly nodeId: string;
}

/** Reads it. Calls that fail are for the checks to judge. */
export async function readFacts(client: CsiClient): Promise<DriverFacts> {
  const info = await client.call('GetPluginInfo');
  const pluginCapabilities = await client.call('GetPluginCapabilities');
  const controllerCapabilities = await client.call('ControllerGetCapabilities');
  const nodeCapabilities = await client.call('NodeGetCapabilities');
  const nodeInfo = await client.call('NodeGetInfo');
  const announced = pluginCapabilities.ok ? (pluginCapabilities.response.capabilities ?? []) : [];
  return {
    info,
    pluginCapabilities,
    controllerCapabilities,
    nodeCapabilities,
    nodeInfo,
    plugin: new Set(announced.flatMap(({ service }) => (service === undefined ? [] : [String(service.type)]))),
    expansion: new Set(announced.flatMap(({ volume_expansion: way }) => (way === undefined ? [] : [String(way.type)]))),
    controller: calls(controllerCapabilities),
    node: calls(nodeCapabilities),
    segments: nodeInfo.ok ? (nodeInfo.response.accessible_topology?.segments ?? {}) : {},
    nodeId: nodeInfo.ok ? (nodeInfo.response.node_id ?? '') : '',
  };
}

function calls(answer: Answer<Responses['ControllerGetCapabilities']>): Set<string> {
  const announced = answer.ok ? (answer.response.capabilities ?? []) : [];
  return new Set(announced.map(({ rpc }) => String(rpc?.type ?? '')));
}
