/** Drivers that are broken where a process of its own runs on each node, and what `csi-sandbox check` must say of them. */
import type { Message, Spoil } from './broken-driver.ts';
import { type Defect, volume } from './defects.ts';

export interface NodeDefect extends Pick<Defect, 'does' | 'check' | 'section' | 'says' | 'consequences'> {
  /** Called for each pair of drivers, as some remember calls. @returns what is spoiled on a node. */
  readonly spoils: () => (node: string) => Record<string, Spoil>;
  readonly flags?: readonly string[];
  /** The checks to make, with those that they need. Default: all of node deployment. */
  readonly only?: readonly string[];
}

const kubernetes = 'Kubernetes, node deployment';

const otherNode = (node: string): string => (node === 'node-1' ? 'node-2' : 'node-1');

/** Changes the response of NodeGetInfo. */
const info =
  (change: Message): Spoil =>
  async (_, proper) => ({ ...(await proper()), ...change });

export const nodeDefects: readonly NodeDefect[] = [
  {
    does: 'has one node_id for all nodes',
    spoils: () => () => ({ NodeGetInfo: info({ node_id: 'localhost' }) }),
    check: 'node-identity',
    section: 'NodeGetInfo',
    says: /the drivers of node-1 and node-2 have the same node_id "localhost"/,
  },
  {
    does: 'does not say where its node is',
    spoils: () => () => ({ NodeGetInfo: info({ accessible_topology: undefined }) }),
    check: 'node-identity',
    section: 'NodeGetInfo',
    says: /on node-1, accessible_topology is empty/,
  },
  {
    does: 'says that all nodes are the first one',
    spoils: () => {
      const segments = { node: 'node-1' };
      return () => ({
        NodeGetInfo: info({ accessible_topology: { segments } }),
        CreateVolume: async (request, proper) => {
          const response = await proper({ ...request, accessibility_requirements: undefined });
          return { volume: { ...(response['volume'] as Message), accessible_topology: [{ segments }] } };
        },
      });
    },
    check: 'node-claim-late',
    section: kubernetes,
    says: /the node affinity of the volume of node-1 includes node-2, whose driver does not know it/,
    consequences: ['node-claim'],
  },
  {
    does: 'says that its volumes are on the other node',
    spoils: () => (node) => ({
      CreateVolume: volume(() => ({ accessible_topology: [{ segments: { node: otherNode(node) } }] })),
    }),
    check: 'node-claim-late',
    section: kubernetes,
    says: /the volume of node-1 cannot be used there: .*"node-2"/,
    consequences: ['node-claim'],
  },
  {
    does: 'does not say where its volumes are',
    spoils: () => () => ({ CreateVolume: volume(() => ({ accessible_topology: [] })) }),
    check: 'node-claim-late',
    section: kubernetes,
    says: /the volume of node-1 has no node affinity, as accessible_topology of CreateVolume is empty/,
    consequences: ['node-claim'],
  },
  {
    does: 'makes each volume on the other node, too, and forgets it there',
    spoils: () => {
      const copies: { node: string; volume: Message }[] = [];
      return (node) => ({
        CreateVolume: volume((made) => {
          copies.push({ node: otherNode(node), volume: made });
          return {};
        }),
        ListVolumes: async (request, proper) => {
          const { entries = [], ...rest } = (await proper(request)) as { entries?: Message[] };
          return { ...rest, entries: [...entries, ...copies.filter((copy) => copy.node === node)] };
        },
      });
    },
    check: 'node-delete',
    section: kubernetes,
    says: /all volumes were deleted, but node-2 still lists: /,
  },
  {
    does: 'counts its volumes on each node from 1',
    spoils: () => () => {
      const ids: unknown[] = [];
      return {
        CreateVolume: volume(({ volume_id: id }) => {
          if (!ids.includes(id)) ids.push(id);
          return { volume_id: `volume-${ids.indexOf(id) + 1}` };
        }),
        DeleteVolume: async ({ volume_id: id }, proper) =>
          await proper({ volume_id: ids[Number(String(id).split('-')[1]) - 1] }),
      };
    },
    flags: ['--capabilities-off=LIST_VOLUMES,LIST_VOLUMES_PUBLISHED_NODES,GET_VOLUME'],
    check: 'node-volume-id',
    section: 'CreateVolume, volume_id',
    says: /the drivers of node-1 and node-2 have given the same volume_id: volume-1/,
    only: ['node-claim-late', 'node-volume-id'],
  },
];
