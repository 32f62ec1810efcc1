import { existsSync, statSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { durationMs } from '../../src/base/go-duration.ts';
import { checkNames } from '../cluster/given-nodes.ts';
import { socketPathOf } from '../cluster/socket-address.ts';
import { parseByteSize } from '../hostpath/byte-size.ts';
import { parseProblem } from '../parse-problem.ts';
import { catalogue } from './catalogue.ts';
import type { StringMap } from './csi-messages.ts';

/** A command line that cannot be served; the message is one line. */
export class CheckFlagError extends Error {
  override readonly name = 'CheckFlagError';
}

/** What a command line asks for. */
export interface CheckSettings {
  readonly socketPath: string;
  readonly classParameters: StringMap;
  readonly mutableParameters: StringMap;
  readonly secrets: StringMap;
  readonly nodes: readonly { readonly name: string; readonly segments: StringMap }[];
  readonly sizeBytes: bigint;
  readonly timeoutMs: number;
  readonly checkTimeoutMs: number;
  readonly waitMs: number;
  readonly only: readonly string[];
  readonly strict: boolean;
  readonly junit: string | undefined;
  readonly json: string | undefined;
  readonly driverCommand: string | undefined;
  readonly nodeDriverCommand: string | undefined;
  /** Empty: the one of PATH. */
  readonly sanity: string | undefined;
  readonly logFolder: string | undefined;
}

export type CheckCommand =
  { readonly kind: 'help' } | { readonly kind: 'list' } | { readonly kind: 'run'; readonly settings: CheckSettings };

export const checkUsage = `Usage: csi-sandbox check --csi-address PATH [flags]

Does to a CSI driver what Kubernetes will do to it, and reports what it gets wrong, with the section of the CSI specification.
Exit code 0: no check failed; 1: a check failed, or the driver is not ready; 2: the command line is wrong.

  --csi-address PATH         the driver's socket, or unix:///path
  --driver-command COMMAND   starts the driver with sh -c; it is also killed during calls and started again. Without it the driver
                             must be running already, and the checks that kill it are skipped
  --node-driver-command COMMAND  starts the driver of one node with sh -c, at the socket $CSI_ADDRESS for the node $NODE_NAME, for
                             the checks of node deployment, which are skipped without it
  --class-parameter KEY=VALUE    a parameter of the StorageClass; repeatable
  --mutable-parameter KEY=VALUE  a parameter that ControllerModifyVolume accepts; repeatable
  --secret KEY=VALUE         goes with every call that takes secrets; repeatable
  --node NAME=KEY=VALUE,...  a further node with its topology segments, which the driver serves; repeatable
  --size SIZE                size of a volume; default 1Gi
  --timeout DURATION         how long a call may take; default 10s
  --check-timeout DURATION   how long a check may take; default 90s
  --wait DURATION            how long to wait until the driver is ready, also after a restart; default 60s
  --only ID                  this check and those it needs; repeatable
  --strict                   warnings fail, too
  --junit FILE               writes the report as JUnit XML
  --json FILE                writes the report as JSON
  --sanity [PATH]            also runs csi-sanity, the program at PATH or else the one in $PATH; most drivers need root for it,
                             since it mounts
  --log DIR                  folder for the logs of the sidecar and the driver; without it they are not kept
  --list                     lists the checks
  --help                     shows this
`;

/** Reads the flags. @throws {CheckFlagError} for anything that cannot be served. */
export function parseCheckFlags(argv: readonly string[]): CheckCommand {
  const values = parse(sanityWithValue(argv));
  if (values.help === true) return { kind: 'help' };
  if (values.list === true) return { kind: 'list' };
  const address = values['csi-address'];
  if (address === undefined || address === '') {
    throw new CheckFlagError("--csi-address is missing; give the path of your driver's socket");
  }
  return {
    kind: 'run',
    settings: {
      socketPath: socketPath(address),
      classParameters: pairs('--class-parameter', values['class-parameter']),
      mutableParameters: pairs('--mutable-parameter', values['mutable-parameter']),
      secrets: pairs('--secret', values.secret, { hidden: true }),
      nodes: nodes(values.node),
      sizeBytes: size(values.size),
      timeoutMs: duration('--timeout', values.timeout),
      checkTimeoutMs: duration('--check-timeout', values['check-timeout']),
      waitMs: duration('--wait', values.wait),
      only: values.only.map(known),
      strict: values.strict,
      junit: reportFile('--junit', values.junit),
      json: reportFile('--json', values.json),
      driverCommand: notEmpty('--driver-command', values['driver-command'], 'give the command that starts your driver'),
      nodeDriverCommand: nodeDriverCommand(values['node-driver-command']),
      sanity: values.sanity,
      logFolder: folder('--log', values.log),
    },
  };
}

function parse(argv: readonly string[]) {
  try {
    return parseArgs({
      args: [...argv],
      options: {
        'csi-address': { type: 'string' },
        'driver-command': { type: 'string' },
        'node-driver-command': { type: 'string' },
        'class-parameter': { type: 'string', multiple: true, default: [] },
        'mutable-parameter': { type: 'string', multiple: true, default: [] },
        secret: { type: 'string', multiple: true, default: [] },
        node: { type: 'string', multiple: true, default: [] },
        size: { type: 'string', default: '1Gi' },
        timeout: { type: 'string', default: '10s' },
        'check-timeout': { type: 'string', default: '90s' },
        wait: { type: 'string', default: '60s' },
        only: { type: 'string', multiple: true, default: [] },
        strict: { type: 'boolean', default: false },
        junit: { type: 'string' },
        json: { type: 'string' },
        sanity: { type: 'string' },
        log: { type: 'string' },
        list: { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
      },
    }).values;
  } catch (error) {
    throw new CheckFlagError(`${parseProblem(error)}; see csi-sandbox check --help`, { cause: error });
  }
}

/** `--sanity` may stand alone, which `parseArgs` does not know. */
function sanityWithValue(argv: readonly string[]): string[] {
  return argv.map((word, index) => {
    const next = argv[index + 1];
    return word === '--sanity' && (next === undefined || next.startsWith('-')) ? '--sanity=' : word;
  });
}

function socketPath(address: string): string {
  try {
    return socketPathOf(address);
  } catch (error) {
    throw new CheckFlagError((error as Error).message, { cause: error });
  }
}

/** @param hidden - a wrong value is not repeated. */
function pairs(flag: string, texts: readonly string[], { hidden = false } = {}): StringMap {
  return Object.fromEntries(
    texts.map((text) => {
      const at = text.indexOf('=');
      const shown = hidden ? 'its value' : JSON.stringify(text);
      if (at < 1) throw new CheckFlagError(`${flag}: ${shown} is not KEY=VALUE`);
      return [text.slice(0, at), text.slice(at + 1)];
    }),
  );
}

const nodeName = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;

function nodes(texts: readonly string[]): CheckSettings['nodes'] {
  const given = texts.map(node);
  try {
    checkNames(given);
  } catch (error) {
    throw new CheckFlagError(`--node: ${(error as Error).message}`, { cause: error });
  }
  return given;
}

function node(text: string): { name: string; segments: StringMap } {
  const at = text.indexOf('=');
  const name = at === -1 ? text : text.slice(0, at);
  const parts = at === -1 ? [] : text.slice(at + 1).split(',');
  if (!nodeName.test(name) || parts.some((part) => !/^[^=]+=[^=]+$/.test(part))) {
    throw new CheckFlagError(
      `--node: ${JSON.stringify(text)} is not NAME=KEY=VALUE,..., such as far=example.com/zone=south`,
    );
  }
  return { name, segments: pairs('--node', parts) };
}

function size(text: string): bigint {
  const bytes = parseByteSize(text);
  if (bytes !== undefined && bytes > 0n) return bytes;
  throw new CheckFlagError(`--size: ${JSON.stringify(text)} is no size of a volume, such as 1Gi`);
}

function duration(flag: string, text: string): number {
  const ms = durationMs(text);
  if (ms !== undefined && ms >= 1 && ms <= 2 ** 31 - 1) return ms;
  throw new CheckFlagError(`${flag}: ${JSON.stringify(text)} is no duration from 1ms, such as 10s`);
}

function known(id: string): string {
  if (catalogue.some((check) => check.id === id)) return id;
  throw new CheckFlagError(`--only: there is no check ${JSON.stringify(id)}; --list names them all`);
}

function notEmpty(flag: string, text: string | undefined, wayOut: string): string | undefined {
  if (text?.trim() === '') throw new CheckFlagError(`${flag} is empty; ${wayOut}`);
  return text;
}

/** A command that uses one socket for all nodes would take it from the driver that runs there. */
function nodeDriverCommand(text: string | undefined): string | undefined {
  if (text === undefined || text.includes('CSI_ADDRESS')) return text;
  throw new CheckFlagError(
    '--node-driver-command must use $CSI_ADDRESS, the socket of the node; also give it $NODE_NAME',
  );
}

function reportFile(flag: string, text: string | undefined): string | undefined {
  if (notEmpty(flag, text, 'give a file') === undefined) return undefined;
  const file = path.resolve(text ?? '');
  if (statSync(file, { throwIfNoEntry: false })?.isDirectory() === true)
    throw new CheckFlagError(`${flag}: ${file} is a folder; give a file`);
  if (!existsSync(path.dirname(file)))
    throw new CheckFlagError(`${flag}: there is no folder ${path.dirname(file)}; make it first`);
  return file;
}

function folder(flag: string, text: string | undefined): string | undefined {
  if (notEmpty(flag, text, 'give a folder') === undefined) return undefined;
  const found = path.resolve(text ?? '');
  if (statSync(found, { throwIfNoEntry: false })?.isFile() === true)
    throw new CheckFlagError(`${flag}: ${found} is a file; give a folder`);
  return found;
}
