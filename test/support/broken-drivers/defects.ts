/** Drivers that are broken on purpose, each in one way, and what `csi-sandbox check` must say of them. */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import { CallError, type CodeName } from '../../../sandbox/hostpath/call-error.ts';
import type { Message, Spoil } from './broken-driver.ts';

export interface Defect {
  /** What the driver does, as a sentence without its subject. */
  readonly does: string;
  /** Made anew for each driver, for some remember calls. */
  readonly spoils: () => Record<string, Spoil>;
  readonly flags?: readonly string[];
  /** The check that names the mistake. */
  readonly check: string;
  /** Of the CSI specification, as the check gives it. */
  readonly section: string;
  /** What it says. */
  readonly says: RegExp;
  /** How long a call may take, in milliseconds; short where one is not answered. */
  readonly timeoutMs?: number;
  /** Further checks that fail or warn because of it. */
  readonly consequences?: readonly string[];
}

const refuse = (code: CodeName, message = 'broken on purpose'): never => {
  throw new CallError(code, message);
};

/** Changes the volume of CreateVolume's response. */
export const volume =
  (change: (volume: Message, request: Message) => Message): Spoil =>
  async (request, proper) => {
    const response = await proper();
    const made = response['volume'] as Message;
    return { ...response, volume: { ...made, ...change(made, request) } };
  };

/** Fails with another code where the sample driver fails with one. */
const instead =
  (code: string, change: () => Message): Spoil =>
  async (_, proper) => {
    try {
      return await proper();
    } catch (error) {
      if (status[(error as { code: status }).code] !== code) throw error;
      return change();
    }
  };

const sourceOf = (request: Message): { volume?: Message; snapshot?: Message } => request['volume_content_source'] ?? {};

const never = (): Promise<Message> => new Promise(() => undefined);

/** An id that the driver gives to others and takes back. */
const renamed = (suffix: string, methods: readonly string[]): Record<string, Spoil> =>
  Object.fromEntries(
    methods.map((method) => [
      method,
      async (request, proper) =>
        await proper({ ...request, volume_id: ((request['volume_id'] ?? '') as string).replace(suffix, '') }),
    ]),
  );

/** Deletes each id once, and does not know it after that. */
const onlyOnce = (field: string): Spoil => {
  const gone = new Set<unknown>();
  return async ({ [field]: id }, proper) => {
    if (gone.has(id)) return refuse('NOT_FOUND');
    const response = await proper();
    gone.add(id);
    return response;
  };
};

const callsWithId = [
  'DeleteVolume',
  'ValidateVolumeCapabilities',
  'ControllerPublishVolume',
  'ControllerUnpublishVolume',
  'ControllerExpandVolume',
  'ControllerModifyVolume',
];
const longTail = 'x'.repeat(129);

export const defects: readonly Defect[] = [
  {
    does: 'gives no volume_id',
    spoils: () => ({ CreateVolume: volume(() => ({ volume_id: '' })) }),
    check: 'volume-id',
    section: 'CreateVolume, volume_id',
    says: /volume_id is empty/,
    consequences: ['leak'],
  },
  {
    does: 'gives a volume_id of more than 128 bytes',
    spoils: () => ({
      ...renamed(longTail, callsWithId),
      CreateVolume: async (request, proper) => {
        const { volume: source } = (request['volume_content_source'] ?? {}) as { volume?: Message };
        const asked =
          source === undefined
            ? request
            : {
                ...request,
                volume_content_source: { volume: { volume_id: String(source['volume_id']).replace(longTail, '') } },
              };
        const { volume: made } = (await proper(asked)) as { volume: Message };
        return {
          volume: {
            ...made,
            volume_id: `${String(made['volume_id'])}${longTail}`,
            ...(source && { content_source: { volume: source } }),
          },
        };
      },
      ControllerGetVolume: async (request, proper) => {
        const found = await proper({ volume_id: String(request['volume_id']).replace(longTail, '') });
        return { ...found, volume: { ...(found['volume'] as Message), volume_id: request['volume_id'] as string } };
      },
      ListVolumes: async (_, proper) => {
        const { entries = [], ...rest } = (await proper()) as { entries?: { volume: Message }[] };
        return {
          ...rest,
          entries: entries.map((entry) => ({
            ...entry,
            volume: { ...entry.volume, volume_id: `${String(entry.volume['volume_id'])}${longTail}` },
          })),
        };
      },
      CreateSnapshot: async (request, proper) => {
        const { snapshot } = (await proper({
          ...request,
          source_volume_id: String(request['source_volume_id']).replace(longTail, ''),
        })) as { snapshot: Message };
        return { snapshot: { ...snapshot, source_volume_id: `${String(snapshot['source_volume_id'])}${longTail}` } };
      },
    }),
    check: 'volume-id',
    section: 'Size Limits',
    says: /volume_id has 165 bytes; at most 128/,
    consequences: ['create-long-name'],
  },
  {
    does: 'gives two names the same volume_id',
    spoils: () => {
      const ids = new Map<string, string>();
      return {
        CreateVolume: volume(({ volume_id: id }, { name }) => {
          ids.set(String(name), String(id));
          return { volume_id: [...ids.values()][0] };
        }),
        ListVolumes: () => refuse('UNAVAILABLE'),
        DeleteVolume: () => ({}),
        ControllerGetVolume: () => refuse('UNAVAILABLE'),
      };
    },
    flags: [
      '--capabilities-off=LIST_VOLUMES,LIST_VOLUMES_PUBLISHED_NODES,GET_VOLUME,CREATE_DELETE_SNAPSHOT,LIST_SNAPSHOTS,GET_SNAPSHOT',
    ],
    check: 'volume-id',
    section: 'CreateVolume, volume_id',
    says: /was given to two names/,
    consequences: ['clone-unknown', 'delete-in-use', 'delete-no-id', 'expand-unknown', 'leak'],
  },
  {
    does: 'gives a volume_context of more than 4 KiB',
    spoils: () => ({ CreateVolume: volume(() => ({ volume_context: { notes: 'x'.repeat(5000) } })) }),
    flags: ['--capabilities-off=LIST_VOLUMES,GET_VOLUME'],
    check: 'volume-context',
    section: 'Size Limits',
    says: /volume_context has 5005 bytes; at most 4096/,
    consequences: ['validate'],
  },
  {
    does: 'gives another volume_context on a repeat',
    spoils: () => ({ CreateVolume: volume(() => ({ volume_context: { made: randomUUID() } })) }),
    flags: ['--capabilities-off=LIST_VOLUMES,GET_VOLUME'],
    check: 'create-repeat',
    section: 'CreateVolume',
    says: /another volume_context/,
    consequences: ['validate'],
  },
  {
    does: 'makes a second volume on a repeat',
    spoils: () => ({
      CreateVolume: async (request, proper) =>
        await proper({
          ...request,
          name: `${String(request['name'])}${request['name'] === '' ? '' : randomUUID().slice(0, 8)}`.slice(-128),
        }),
    }),
    check: 'create-repeat',
    section: 'CreateVolume',
    says: /another volume_id/,
  },
  {
    does: 'makes two volumes when two calls come at once',
    spoils: () => {
      const running = new Map<string, number>();
      return {
        CreateVolume: async (request, proper) => {
          const name = String(request['name']);
          const others = running.get(name) ?? 0;
          running.set(name, others + 1);
          await delay(5);
          const response = await proper(others === 0 ? request : { ...request, name: `${name}-${others}` });
          running.delete(name);
          return response;
        },
      };
    },
    check: 'create-at-once',
    section: 'CreateVolume',
    says: /one name gave \d volumes/,
  },
  {
    does: 'fails with INTERNAL when a call for the name is in work',
    spoils: () => {
      const running = new Set<string>();
      return {
        CreateVolume: async (request, proper) => {
          const name = String(request['name']);
          if (running.has(name)) return refuse('INTERNAL', 'busy');
          running.add(name);
          await delay(5);
          return await proper().finally(() => running.delete(name));
        },
      };
    },
    check: 'create-at-once',
    section: 'Error Scheme',
    says: /but not with ABORTED: CreateVolume: INTERNAL: busy/,
  },
  {
    does: 'refuses a repeat with ALREADY_EXISTS',
    spoils: () => {
      const seen = new Set<unknown>();
      return {
        CreateVolume: async (request, proper) => {
          if (seen.has(request['name'])) return refuse('ALREADY_EXISTS');
          const response = await proper();
          seen.add(request['name']);
          return response;
        },
      };
    },
    check: 'create-repeat',
    section: 'CreateVolume',
    says: /ALREADY_EXISTS/,
    consequences: ['create-after-delete'],
  },
  {
    does: 'takes another size for a name that is taken',
    spoils: () => ({
      CreateVolume: async (request, proper) => {
        try {
          return await proper();
        } catch (error) {
          if ((error as { code?: number }).code !== 6) throw error;
          return await proper({ ...request, capacity_range: {} });
        }
      },
    }),
    check: 'create-other-size',
    section: 'CreateVolume Errors',
    says: /returned OK, expected ALREADY_EXISTS/,
    consequences: ['volume-capacity'],
  },
  {
    does: 'refuses another size for a name with INTERNAL',
    spoils: () => ({ CreateVolume: instead('ALREADY_EXISTS', () => refuse('INTERNAL')) }),
    check: 'create-other-size',
    section: 'CreateVolume Errors',
    says: /returned INTERNAL .*, expected ALREADY_EXISTS/,
  },
  {
    does: 'makes volumes smaller than required',
    spoils: () => ({
      CreateVolume: volume(({ capacity_bytes: bytes }) => ({ capacity_bytes: String(BigInt(String(bytes)) / 2n) })),
    }),
    check: 'volume-capacity',
    section: 'CreateVolume, CapacityRange',
    says: /less than required_bytes/,
  },
  {
    does: 'makes volumes larger than their limit',
    spoils: () => ({ CreateVolume: volume(() => ({ capacity_bytes: String(2n ** 31n) })) }),
    check: 'volume-capacity',
    section: 'CreateVolume, CapacityRange',
    says: /more than limit_bytes/,
  },
  {
    does: 'gives a negative size',
    spoils: () => ({ CreateVolume: volume(() => ({ capacity_bytes: '-1' })) }),
    check: 'volume-capacity',
    section: 'CreateVolume, CapacityRange',
    says: /capacity_bytes is negative/,
  },
  {
    does: 'promises topology and gives none',
    spoils: () => ({ CreateVolume: volume(() => ({ accessible_topology: [] })) }),
    check: 'volume-topology',
    section: 'CreateVolume, accessible_topology',
    says: /accessible_topology is empty/,
  },
  {
    does: 'gives topology that it does not promise',
    spoils: () => ({ CreateVolume: volume(() => ({ accessible_topology: [{ segments: { zone: 'a' } }] })) }),
    flags: ['--capabilities-off=VOLUME_ACCESSIBILITY_CONSTRAINTS'],
    check: 'volume-topology',
    section: 'CreateVolume, accessible_topology',
    says: /is set without VOLUME_ACCESSIBILITY_CONSTRAINTS/,
  },
  {
    does: 'gives topology that cannot be a label',
    spoils: () => ({ CreateVolume: volume(() => ({ accessible_topology: [{ segments: { 'not a key!': 'x y' } }] })) }),
    check: 'volume-topology',
    section: 'CreateVolume, accessible_topology',
    says: /"not a key!" is not a valid topology key/,
    consequences: ['create-topology'],
  },
  {
    does: 'gives topology that no node has',
    spoils: () => ({ CreateVolume: volume(() => ({ accessible_topology: [{ segments: { zone: 'moon' } }] })) }),
    check: 'volume-topology',
    section: 'CreateVolume, accessible_topology',
    says: /where there is no node/,
    consequences: ['create-topology'],
  },
  {
    does: 'makes volumes elsewhere than asked for',
    spoils: () => ({
      CreateVolume: async (request, proper) =>
        await proper({ ...request, accessibility_requirements: { requisite: [{ segments: { zone: 'a' } }] } }),
    }),
    check: 'create-topology',
    section: 'CreateVolume, TopologyRequirement',
    says: /\{"zone":"b"\} was requested, but the volume is in \[\{"zone":"a"\}\]/,
    consequences: ['create-elsewhere', 'volume-topology'],
  },
  {
    does: 'does not know a deleted volume and says NOT_FOUND',
    spoils: () => ({ DeleteVolume: onlyOnce('volume_id') }),
    check: 'delete-repeat',
    section: 'DeleteVolume',
    says: /the second time: DeleteVolume: NOT_FOUND/,
  },
  {
    does: 'says NOT_FOUND of an id that it never gave',
    spoils: () => {
      const given = new Set<unknown>();
      return {
        CreateVolume: volume(({ volume_id: id }) => {
          given.add(id);
          return {};
        }),
        DeleteVolume: async ({ volume_id: id }, proper) =>
          id === undefined || id === '' || given.has(id) ? await proper() : refuse('NOT_FOUND'),
      };
    },
    check: 'delete-unknown',
    section: 'DeleteVolume',
    says: /must be OK: DeleteVolume: NOT_FOUND/,
  },
  {
    does: 'says that volumes are deleted and keeps them',
    spoils: () => ({
      DeleteVolume: ({ volume_id: id }) => (id === undefined || id === '' ? refuse('INVALID_ARGUMENT') : {}),
    }),
    check: 'leak',
    section: 'DeleteVolume',
    says: /deleted with OK, but still listed/,
    consequences: ['get-volume', 'delete-in-use', 'clone-unknown', 'expand-unknown', 'snapshot-unknown'],
  },
  {
    does: 'deletes a volume that is in use',
    spoils: () => ({
      DeleteVolume: async (request, proper) => {
        try {
          return await proper();
        } catch (error) {
          if ((error as { code?: number }).code !== 9) throw error;
          return {};
        }
      },
    }),
    check: 'delete-in-use',
    section: 'DeleteVolume Errors',
    says: /returned OK, expected FAILED_PRECONDITION/,
    consequences: ['leak'],
  },
  {
    does: 'refuses the deletion of a volume in use with INTERNAL',
    spoils: () => ({ DeleteVolume: instead('FAILED_PRECONDITION', () => refuse('INTERNAL')) }),
    check: 'delete-in-use',
    section: 'DeleteVolume Errors',
    says: /returned INTERNAL .*, expected FAILED_PRECONDITION/,
  },
  {
    does: 'makes a volume without a name',
    spoils: () => ({
      CreateVolume: async (request, proper) => await proper({ ...request, name: request['name'] || 'nameless' }),
    }),
    check: 'create-no-name',
    section: 'Error Scheme',
    says: /without a name returned OK, expected INVALID_ARGUMENT/,
  },
  {
    does: 'says UNKNOWN where a field is missing',
    spoils: () => ({ CreateVolume: instead('INVALID_ARGUMENT', () => refuse('UNKNOWN')) }),
    check: 'create-no-name',
    section: 'Error Scheme',
    says: /returned UNKNOWN .*, expected INVALID_ARGUMENT/,
    consequences: ['create-no-capabilities', 'error-status'],
  },
  {
    does: 'does not say of what a clone is made',
    spoils: () => ({
      CreateVolume: volume((_, request) =>
        sourceOf(request).volume === undefined ? {} : { content_source: undefined },
      ),
    }),
    check: 'clone',
    section: 'CreateVolume, content_source',
    says: /content_source is null/,
  },
  {
    does: 'does not say of which snapshot a volume is made',
    spoils: () => ({
      CreateVolume: volume((_, request) =>
        sourceOf(request).snapshot === undefined ? {} : { content_source: undefined },
      ),
    }),
    check: 'restore',
    section: 'CreateVolume, content_source',
    says: /content_source is null/,
  },
  {
    does: 'says INTERNAL where the source snapshot is gone',
    spoils: () => ({ CreateVolume: instead('NOT_FOUND', () => refuse('INTERNAL')) }),
    check: 'restore-unknown',
    section: 'CreateVolume Errors',
    says: /returned INTERNAL .*, expected NOT_FOUND/,
    consequences: ['clone-unknown'],
  },
  {
    does: 'makes a second snapshot on a repeat',
    spoils: () => ({
      CreateSnapshot: async (request, proper) =>
        await proper({ ...request, name: request['name'] === undefined ? '' : randomUUID() }),
    }),
    check: 'snapshot-repeat',
    section: 'CreateSnapshot',
    says: /another snapshot_id/,
  },
  {
    does: 'says NOT_FOUND of a snapshot that is deleted already',
    spoils: () => ({ DeleteSnapshot: onlyOnce('snapshot_id') }),
    check: 'snapshot-delete',
    section: 'DeleteSnapshot',
    says: /the second time: DeleteSnapshot: NOT_FOUND/,
  },
  {
    does: 'grows a volume to less than required',
    spoils: () => ({
      ControllerExpandVolume: async (_, proper) => {
        const response = await proper();
        return { ...response, capacity_bytes: String(BigInt(String(response['capacity_bytes'])) - 1n) };
      },
    }),
    check: 'expand',
    section: 'ControllerExpandVolume',
    says: /capacity_bytes is \d+; required_bytes was \d+/,
  },
  {
    does: 'grows a volume that is not there',
    spoils: () => ({ ControllerExpandVolume: instead('NOT_FOUND', () => ({ capacity_bytes: String(2n ** 31n) })) }),
    check: 'expand-unknown',
    section: 'ControllerExpandVolume Errors',
    says: /returned OK, expected NOT_FOUND/,
  },
  {
    does: 'says INTERNAL for a mutable parameter that it does not know',
    spoils: () => ({ ControllerModifyVolume: instead('INVALID_ARGUMENT', () => refuse('INTERNAL')) }),
    check: 'modify-unknown-key',
    section: 'ControllerModifyVolume Errors',
    says: /returned INTERNAL .*, expected INVALID_ARGUMENT/,
  },
  {
    does: 'lists only the first volume',
    spoils: () => ({
      ListVolumes: async (_, proper) => {
        const { entries = [] } = (await proper()) as { entries?: Message[] };
        return { entries: entries.slice(0, 1) };
      },
    }),
    check: 'list',
    section: 'ListVolumes',
    says: /which was just created, is not listed/,
  },
  {
    does: 'gives more entries than max_entries',
    spoils: () => ({ ListVolumes: async (request, proper) => await proper({ ...request, max_entries: 0 }) }),
    check: 'list-pages',
    section: 'ListVolumes',
    says: /with max_entries 2, a page has \d+ entries/,
  },
  {
    does: 'takes any starting_token',
    spoils: () => ({ ListVolumes: instead('ABORTED', () => ({ entries: [] })) }),
    check: 'list-token',
    section: 'ListVolumes Errors',
    says: /returned OK, expected ABORTED/,
  },
  {
    does: 'lists another volume_context than it gave',
    spoils: () => ({
      ListVolumes: async (_, proper) => {
        const { entries = [], ...rest } = (await proper()) as { entries?: { volume: Message }[] };
        return {
          ...rest,
          entries: entries.map((entry) => ({
            ...entry,
            volume: { ...entry.volume, volume_context: { other: 'yes' } },
          })),
        };
      },
    }),
    check: 'list',
    section: 'CreateVolume, volume_context',
    says: /ListVolumes returned volume_context/,
  },
  {
    does: 'has a negative capacity',
    spoils: () => ({ GetCapacity: () => ({ available_capacity: '-1' }) }),
    check: 'capacity',
    section: 'GetCapacity',
    says: /is negative/,
  },
  {
    does: 'has no capacity and makes volumes',
    spoils: () => ({ GetCapacity: () => ({}) }),
    check: 'capacity',
    section: 'GetCapacity',
    says: /available_capacity for \{"zone":"a"\} is 0, but a volume/,
  },
  {
    does: 'announces a call that it does not have',
    spoils: () => ({ ControllerModifyVolume: () => refuse('UNIMPLEMENTED') }),
    check: 'promised-calls',
    section: 'ControllerGetCapabilities',
    says: /MODIFY_VOLUME is announced, but ControllerModifyVolume is UNIMPLEMENTED/,
    consequences: ['modify', 'modify-unknown-key', 'modify-unknown'],
  },
  {
    does: 'announces ONLINE expansion and cannot expand',
    spoils: () => ({
      ControllerGetCapabilities: async (_, proper) => {
        const { capabilities = [] } = (await proper()) as { capabilities?: { rpc: Message }[] };
        return { capabilities: capabilities.filter(({ rpc }) => rpc['type'] !== 'EXPAND_VOLUME') };
      },
      NodeGetCapabilities: () => ({}),
    }),
    check: 'plugin-capabilities',
    section: 'GetPluginCapabilities',
    says: /ONLINE expansion is announced/,
  },
  {
    does: 'has a name that is no domain name',
    spoils: () => ({ GetPluginInfo: () => ({ name: 'my driver/1', vendor_version: '1' }) }),
    check: 'plugin-info',
    section: 'GetPluginInfo',
    says: /"my driver\/1" is not a domain name/,
  },
  {
    does: 'has no node id',
    spoils: () => ({ NodeGetInfo: async (_, proper) => ({ ...(await proper()), node_id: '' }) }),
    check: 'node-info',
    section: 'NodeGetInfo',
    says: /node_id is empty/,
  },
  {
    does: 'has a node id of more than 256 bytes',
    spoils: () => ({ NodeGetInfo: async (_, proper) => ({ ...(await proper()), node_id: 'n'.repeat(257) }) }),
    check: 'node-info',
    section: 'NodeGetInfo',
    says: /node_id has 257 bytes; at most 256/,
    consequences: ['publish'],
  },
  {
    does: 'promises topology and has none for its node',
    spoils: () => ({ NodeGetInfo: async (_, proper) => ({ ...(await proper()), accessible_topology: undefined }) }),
    check: 'node-info',
    section: 'NodeGetInfo',
    says: /accessible_topology is empty/,
  },
  {
    does: 'does not answer when a volume is to be made',
    spoils: () => ({ CreateVolume: never }),
    check: 'create',
    section: 'CreateVolume',
    says: /CreateVolume did not respond within/,
    timeoutMs: 3000,
  },
  {
    does: 'does not answer a repeat',
    spoils: () => {
      const seen = new Set<unknown>();
      return {
        CreateVolume: async (request, proper) => {
          if (seen.has(request['name'])) return await never();
          seen.add(request['name']);
          return await proper();
        },
      };
    },
    check: 'create-repeat',
    section: 'CreateVolume',
    says: /CreateVolume did not respond within/,
    timeoutMs: 3000,
    consequences: ['create-after-delete'],
  },
  {
    does: 'fails without a message',
    spoils: () => ({ ListVolumes: instead('ABORTED', () => refuse('ABORTED', '')) }),
    check: 'error-status',
    section: 'Error Scheme',
    says: /errors without a message: ListVolumes \(ABORTED\)/,
  },
  {
    does: 'does not confirm what it has made',
    spoils: () => ({
      ValidateVolumeCapabilities: async (_, proper) => ({ ...(await proper()), confirmed: undefined, message: 'no' }),
    }),
    check: 'validate',
    section: 'ValidateVolumeCapabilities',
    says: /are not confirmed: no/,
  },
  {
    does: 'finds volumes that are not there',
    spoils: () => ({ ValidateVolumeCapabilities: instead('NOT_FOUND', () => ({ message: 'fine' })) }),
    check: 'validate-unknown',
    section: 'ValidateVolumeCapabilities Errors',
    says: /returned OK, expected NOT_FOUND/,
  },
  {
    does: 'answers with a deleted volume when its name comes again',
    spoils: () => {
      const answers = new Map<unknown, Message>();
      return {
        CreateVolume: async (request, proper) => {
          const known = answers.get(request['name']);
          const same = known?.['bytes'] === (request['capacity_range'] as Message | undefined)?.['required_bytes'];
          if (known !== undefined && same) return known['response'] as Message;
          const response = await proper();
          answers.set(request['name'], {
            response,
            bytes: (request['capacity_range'] as Message | undefined)?.['required_bytes'],
          });
          return response;
        },
      };
    },
    check: 'create-after-delete',
    section: 'CreateVolume',
    says: /no such volume exists/,
  },
  {
    does: 'publishes to a node that is not there',
    spoils: () => ({
      ControllerPublishVolume: async (request, proper) =>
        String(request['node_id']).startsWith('csi-sandbox') ? {} : await proper(),
    }),
    check: 'publish-unknown',
    section: 'ControllerPublishVolume Errors',
    says: /to a node that does not exist returned OK, expected NOT_FOUND/,
  },
  {
    does: 'cannot unpublish twice',
    spoils: () => {
      const published = new Set<unknown>();
      return {
        ControllerPublishVolume: async (request, proper) => {
          const response = await proper();
          published.add(request['volume_id']);
          return response;
        },
        ControllerUnpublishVolume: async (request, proper) => {
          if (request['volume_id'] && !published.delete(request['volume_id'])) return refuse('FAILED_PRECONDITION');
          return await proper();
        },
      };
    },
    check: 'unpublish-repeat',
    section: 'ControllerUnpublishVolume',
    says: /the second time: ControllerUnpublishVolume: FAILED_PRECONDITION/,
  },
];
