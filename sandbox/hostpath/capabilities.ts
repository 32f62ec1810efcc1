/** What this driver can announce, by the three places where CSI announces it (CSI spec, "GetPluginCapabilities"). */
const all = {
  plugin: ['CONTROLLER_SERVICE', 'VOLUME_ACCESSIBILITY_CONSTRAINTS', 'ONLINE'],
  controller: [
    'CREATE_DELETE_VOLUME',
    'PUBLISH_UNPUBLISH_VOLUME',
    'LIST_VOLUMES',
    'GET_CAPACITY',
    'CREATE_DELETE_SNAPSHOT',
    'LIST_SNAPSHOTS',
    'CLONE_VOLUME',
    'PUBLISH_READONLY',
    'EXPAND_VOLUME',
    'LIST_VOLUMES_PUBLISHED_NODES',
    'GET_VOLUME',
    'SINGLE_NODE_MULTI_WRITER',
    'MODIFY_VOLUME',
    'GET_SNAPSHOT',
  ],
  node: ['STAGE_UNSTAGE_VOLUME', 'GET_VOLUME_STATS', 'EXPAND_VOLUME', 'SINGLE_NODE_MULTI_WRITER'],
} as const;

/** Announced only by a driver that attaches volumes to nodes. */
const attachOnly: readonly string[] = ['PUBLISH_UNPUBLISH_VOLUME', 'PUBLISH_READONLY', 'LIST_VOLUMES_PUBLISHED_NODES'];

type Place = keyof typeof all;
/** A service, or how volumes grow. */
export type PluginCapability = (typeof all)['plugin'][number];
/** An RPC or feature of the controller service. */
export type ControllerCapability = (typeof all)['controller'][number];
/** An RPC or feature of the node service. */
export type NodeCapability = (typeof all)['node'][number];

/** The announced capabilities; a call that belongs to a missing one is UNIMPLEMENTED. */
export interface Capabilities {
  readonly plugin: ReadonlySet<PluginCapability>;
  readonly controller: ReadonlySet<ControllerCapability>;
  readonly node: ReadonlySet<NodeCapability>;
}

/**
 * Picks the capabilities.
 *
 * @param off - names to leave out: `EXPAND_VOLUME` everywhere, `node:EXPAND_VOLUME` in one place only.
 * @throws {RangeError} naming the first entry of `off` that is no capability of this driver.
 */
export function chooseCapabilities(options: {
  attach: boolean;
  topology: boolean;
  off: readonly string[];
}): Capabilities {
  const places = Object.keys(all) as Place[];
  for (const entry of options.off) {
    const known = places.some((place) => all[place].some((name) => entry === name || entry === `${place}:${name}`));
    if (!known) throw new RangeError(`unknown capability ${entry}`);
  }
  const pick = <Name extends string>(place: Place, names: readonly Name[]): Set<Name> =>
    new Set(
      names.filter(
        (name) =>
          !options.off.includes(name) &&
          !options.off.includes(`${place}:${name}`) &&
          (options.attach || !attachOnly.includes(name)) &&
          (options.topology || name !== 'VOLUME_ACCESSIBILITY_CONSTRAINTS'),
      ),
    );
  return {
    plugin: pick('plugin', all.plugin),
    controller: pick('controller', all.controller),
    node: pick('node', all.node),
  };
}
