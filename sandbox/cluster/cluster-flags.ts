import { existsSync, statSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { durationMs } from '../../src/base/go-duration.ts';
import { parseProblem } from '../parse-problem.ts';
import { type CallFault, parseFault } from '../proxy/call-fault.ts';
import type { ClusterOptions } from './cluster.ts';
import { checkNames, type GivenNode, keyAndValue, type NodeSocket, parseNode } from './given-nodes.ts';
import { socketPathOf } from './socket-address.ts';

/** What a command line asks for. */
export type ClusterCommand =
  | { readonly kind: 'help' }
  | {
      readonly kind: 'run';
      readonly options: ClusterOptions;
      readonly rbac: boolean;
      /** A program and its arguments that the cluster is for; it stands until Ctrl-C if empty. */
      readonly command: readonly string[];
    };

/** A command line that cannot be served; the message is one line. */
export class ClusterFlagError extends Error {
  override readonly name = 'ClusterFlagError';
}

/** Shown for `--help`. */
export const clusterUsage = `Usage: csi-sandbox [flags] [-- COMMAND...]

A small Kubernetes API with a CSI driver and the csi-provisioner sidecar, until Ctrl-C. With a COMMAND: until that ends,
with KUBECONFIG in its environment and its exit code.

  --csi-address PATH    your own driver's socket, or unix:///path; waits for the driver, makes the CSIDriver, the CSINodes
                        of NodeGetInfo and two StorageClasses for it, and runs the sidecar with it; with capacity if the
                        driver has GET_CAPACITY. Without this flag a sample driver is started
  --port N              port of the API on 127.0.0.1; 0, the default, takes any free one
  --kubeconfig PATH     where to write the kubeconfig; by default in a temporary folder
  --log DIR             folder for the logs of the sidecar and the sample driver; by default in a temporary folder
  --wait DURATION       limit for the wait for that driver, such as 60s; by default it is waited for without a limit
  --nodes N             number of nodes, 0 to 1000; 1 with --csi-address, else 2
  --node NAME[=KEY=VALUE,...]
                        a node, with the driver's topology on it in place of that of NodeGetInfo; repeatable, such as
                        --node a=example.com/zone=north --node b=example.com/zone=south
  --node-csi-address [NAME=]PATH
                        the socket of the node plugin, where it is another one than the driver's; of that node alone
                        with a NAME, which is repeatable
  --class-parameter KEY=VALUE
                        a parameter of the StorageClasses that are made for the driver; repeatable
  --rbac                authorization as a cluster's: the sidecar has the permissions of deploy/base/rbac.yaml, over HTTPS.
                        Without it everybody may do everything
  --sidecar-flag FLAG   a further flag for the sidecar, such as --sidecar-flag=--extra-create-metadata; repeatable
  --data PATH           keep the objects in this file; in memory by default
  --fault FAULT         spoils calls between the sidecar and the driver: METHOD:ACTION[:COUNT], repeatable. The action is
                        drop (the driver gets the call, nobody its response), delay=DURATION (before the driver gets it),
                        late=DURATION (after its response), code=CODE (it does not get it), cut (the connection, instead
                        of its response) or kill (the driver, with SIGKILL, at the COUNTth call). COUNT calls are
                        spoiled, by default all; METHOD * is every call. Such as --fault CreateVolume:drop:1
  --fault-file PATH     faults, one in each line, read again when the file changes
  --faults              let clients inject faults and read the request log under /embedded
  --help                show this

  csi-sandbox check --help             does to a driver what Kubernetes will do to it, and says what it gets wrong
  csi-sandbox api --help               the API alone, without driver and sidecar, for a provisioner of your own
  csi-sandbox hostpath-driver --help   the sample driver alone
`;

/** Reads the flags. @throws {ClusterFlagError} for anything that cannot be served. */
export function parseClusterFlags(argv: readonly string[]): ClusterCommand {
  const split = argv.indexOf('--');
  const command = split === -1 ? [] : argv.slice(split + 1);
  if (split !== -1 && command.length === 0) throw new ClusterFlagError('there is no command after --');
  const values = parse(split === -1 ? argv : argv.slice(0, split));
  if (values.help === true) return { kind: 'help' };
  if (values.nodes !== undefined && values.node.length > 0)
    throw new ClusterFlagError('give --nodes or --node, not both');
  const nodes = values.nodes === undefined ? undefined : wholeNumber('--nodes', values.nodes, 1000);
  const kubeconfigPath = givenPath('--kubeconfig', values.kubeconfig);
  const dataPath = givenPath('--data', values.data);
  const logFolder = givenPath('--log', values.log);
  if (logFolder !== undefined && existsSync(logFolder) && !statSync(logFolder).isDirectory()) {
    throw new ClusterFlagError(`--log: ${logFolder} is a file; give a folder`);
  }
  return {
    kind: 'run',
    command,
    rbac: values.rbac,
    options: {
      ...(values['csi-address'] !== undefined && { driverSocket: driverSocket(values['csi-address']) }),
      ...(logFolder !== undefined && { logFolder }),
      ...(values.wait !== undefined && { waitMs: givenWait(values.wait) }),
      ...(values.node.length > 0 && { nodes: givenNodes(values.node) }),
      ...(values['node-csi-address'].length > 0 && { nodeSockets: values['node-csi-address'].map(nodeSocket) }),
      ...(values['class-parameter'].length > 0 && { classParameters: givenParameters(values['class-parameter']) }),
      sidecarFlags: values['sidecar-flag'],
      faults: values.fault.map(givenFault),
      faultFile: givenPath('--fault-file', values['fault-file']),
      sandbox: {
        api: {
          port: wholeNumber('--port', values.port, 65_535),
          faults: values.faults,
          ...(dataPath !== undefined && { persistence: { path: dataPath } }),
        },
        rbac: values.rbac,
        ...(nodes !== undefined && { nodes }),
        ...(kubeconfigPath !== undefined && { kubeconfigPath }),
      },
    },
  };
}

function parse(argv: readonly string[]) {
  try {
    return parseArgs({
      args: [...argv],
      options: {
        'csi-address': { type: 'string' },
        port: { type: 'string', default: '0' },
        kubeconfig: { type: 'string' },
        log: { type: 'string' },
        nodes: { type: 'string' },
        node: { type: 'string', multiple: true, default: [] },
        'node-csi-address': { type: 'string', multiple: true, default: [] },
        'class-parameter': { type: 'string', multiple: true, default: [] },
        wait: { type: 'string' },
        rbac: { type: 'boolean', default: false },
        'sidecar-flag': { type: 'string', multiple: true, default: [] },
        data: { type: 'string' },
        fault: { type: 'string', multiple: true, default: [] },
        'fault-file': { type: 'string' },
        faults: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h' },
      },
    }).values;
  } catch (error) {
    throw new ClusterFlagError(`${parseProblem(error)}; see --help`, { cause: error });
  }
}

function wholeNumber(flag: string, text: string, max: number): number {
  const value = /^\d+$/.test(text) ? Number(text) : NaN;
  if (value <= max) return value;
  throw new ClusterFlagError(`${flag}: ${JSON.stringify(text)} is no whole number from 0 to ${max}`);
}

function givenPath(flag: string, text: string | undefined): string | undefined {
  if (text === '') throw new ClusterFlagError(`${flag} is empty; give a path`);
  return text === undefined ? undefined : path.resolve(text);
}

function givenFault(text: string): CallFault {
  try {
    return parseFault(text);
  } catch (error) {
    throw new ClusterFlagError(`--fault: ${(error as Error).message}`, { cause: error });
  }
}

function givenWait(text: string): number {
  const ms = durationMs(text) ?? 0;
  if (ms > 0) return ms;
  throw new ClusterFlagError(`--wait: ${JSON.stringify(text)} is no duration such as 60s`);
}

function givenNodes(texts: readonly string[]): GivenNode[] {
  return inFlag('--node', () => {
    const nodes = texts.map((text) => parseNode(text));
    checkNames(nodes);
    return nodes;
  });
}

function nodeSocket(text: string): NodeSocket {
  const [, node, address = ''] = /^(?:([^=/]+)=)?(.*)$/s.exec(text) ?? [];
  if (address === '') throw new ClusterFlagError('--node-csi-address has no path; give [NAME=]PATH');
  return { node, socketPath: inFlag('--node-csi-address', () => socketPathOf(address)) };
}

function givenParameters(texts: readonly string[]): Record<string, string> {
  return Object.fromEntries(texts.map((text) => inFlag('--class-parameter', () => keyAndValue(text))));
}

function inFlag<T>(flag: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    const message = (error as Error).message.replace(/^--csi-address: /, '');
    throw new ClusterFlagError(`${flag}: ${message}`, { cause: error });
  }
}

function driverSocket(address: string): string {
  if (address === '') throw new ClusterFlagError("--csi-address is empty; give the path of your driver's socket");
  try {
    return socketPathOf(address);
  } catch (error) {
    throw new ClusterFlagError((error as Error).message, { cause: error });
  }
}
