import path from 'node:path';
import { parseArgs } from 'node:util';
import { durationMs } from '../../src/base/go-duration.ts';
import { parseProblem } from '../parse-problem.ts';
import { parseByteSize } from './byte-size.ts';
import { chooseCapabilities } from './capabilities.ts';
import type { DriverOptions } from './driver.ts';

/** A command line that cannot be served; the message is one line. */
export class FlagError extends Error {
  override readonly name = 'FlagError';
}

/** Shown for `--help`. */
export const usage = `The sample hostpath CSI driver: volumes are directories below --state-dir.

  --csi-address ADDRESS        unix:///path.sock or /path.sock (required)
  --state-dir DIR              made when missing; keeps volumes, snapshots, faults.json and calls.jsonl (required)
  --driver-name NAME           default hostpath.csi.k8s.io
  --node-id NAME               this node, default localhost; further ones are nodes that volumes can be attached to
  --capacity SIZE              room of each topology segment, such as 500Gi; default 1Pi
  --topology KEY=VALUE         repeatable; several values of one key: this driver serves all of these segments,
                               and the node is in the first
  --mutable-parameters LIST    keys that ControllerModifyVolume accepts; default iops,throughput,tier
  --capabilities-off LIST      capabilities not to announce, such as GET_CAPACITY,node:STAGE_UNSTAGE_VOLUME
  --attach                     serve ControllerPublishVolume and ControllerUnpublishVolume
  --named-ids                  volume ids begin with the name of the request, as those of many drivers contain it
  --max-connection-age AGE     close each connection (GOAWAY) at about this age, such as 30s; default: never
  --call-log                   write each call to calls.jsonl in the state directory, secrets by key only
`;

const list = (text: string): string[] => text.split(',').filter((entry) => entry !== '');

/**
 * Reads the command line.
 *
 * @param argv - without node and the script.
 * @returns the driver's options, or `help`.
 * @throws {FlagError} for anything that cannot be served.
 */
export function parseFlags(argv: readonly string[]): DriverOptions | 'help' {
  const values = parse(argv);
  if (values.help === true) return 'help';
  if (values['csi-address'] === undefined) throw new FlagError('--csi-address is required');
  if (values['state-dir'] === undefined || values['state-dir'] === '') throw new FlagError('--state-dir is required');
  const driverName = values['driver-name'];
  if (driverName.length > 63 || !/^[A-Za-z]([A-Za-z0-9._-]*[A-Za-z0-9])?$/.test(driverName)) {
    throw new FlagError(`--driver-name: ${driverName} is not a CSI driver name`);
  }
  const capacityBytes = parseByteSize(values.capacity);
  if (capacityBytes === undefined) throw new FlagError(`--capacity: ${values.capacity} is not a size`);
  const topology = readTopology(values.topology);
  const off = list(values['capabilities-off']);
  const nodeIds = values['node-id'].filter((id) => id !== '');
  if (nodeIds.length === 0) throw new FlagError('--node-id must not be empty');
  const ageMs = durationMs(values['max-connection-age']);
  if (ageMs === undefined || ageMs < 0) {
    throw new FlagError(`--max-connection-age: ${values['max-connection-age']} is not a duration`);
  }
  try {
    return {
      socketPath: readAddress(values['csi-address']),
      stateDir: path.resolve(values['state-dir']),
      driverName,
      nodeIds,
      capacityBytes,
      topology,
      mutableParameters: list(values['mutable-parameters']),
      capabilities: chooseCapabilities({ attach: values.attach, topology: topology.size > 0, off }),
      namedIds: values['named-ids'],
      maxConnectionAgeMs: ageMs === 0 ? undefined : ageMs,
      callLog: values['call-log'],
    };
  } catch (error) {
    if (error instanceof RangeError) throw new FlagError(`--capabilities-off: ${error.message}`, { cause: error });
    throw error;
  }
}

function parse(argv: readonly string[]) {
  try {
    return parseArgs({
      args: [...argv],
      options: {
        'csi-address': { type: 'string' },
        'state-dir': { type: 'string' },
        'driver-name': { type: 'string', default: 'hostpath.csi.k8s.io' },
        'node-id': { type: 'string', multiple: true, default: ['localhost'] },
        capacity: { type: 'string', default: '1Pi' },
        topology: { type: 'string', multiple: true, default: [] },
        'mutable-parameters': { type: 'string', default: 'iops,throughput,tier' },
        'capabilities-off': { type: 'string', default: '' },
        attach: { type: 'boolean', default: false },
        'named-ids': { type: 'boolean', default: false },
        'max-connection-age': { type: 'string', default: '0s' },
        'call-log': { type: 'boolean', default: false },
        help: { type: 'boolean' },
      },
    }).values;
  } catch (error) {
    throw new FlagError(parseProblem(error), { cause: error });
  }
}

function readAddress(address: string): string {
  const socketPath = address.replace(/^unix:(\/\/)?/, '');
  if (!path.isAbsolute(socketPath)) {
    throw new FlagError(`--csi-address: ${address} is neither unix:///path nor an absolute path`);
  }
  // The kernel's limit for sun_path, less its closing zero byte.
  if (Buffer.byteLength(socketPath) > 107)
    throw new FlagError('--csi-address: a unix socket path has at most 107 bytes');
  return socketPath;
}

function readTopology(pairs: readonly string[]): Map<string, string[]> {
  const topology = new Map<string, string[]>();
  for (const pair of pairs) {
    const [key, value, ...rest] = pair.split('=');
    if (key === undefined || key === '' || value === undefined || value === '' || rest.length > 0) {
      throw new FlagError(`--topology: ${pair} is not KEY=VALUE`);
    }
    topology.set(key, [...(topology.get(key) ?? []), value]);
  }
  return topology;
}
