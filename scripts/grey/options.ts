import { InvalidArgumentError, Option } from 'commander';
import { bundled } from '../../test/support/program-file.ts';
import { goHelp } from '../../test/support/go-sidecar/go-sidecar.ts';
import { scriptCommand } from '../script-command.ts';
import type { Candidate } from './stage.ts';

export interface GreyOptions {
  target: 'sandbox' | 'kubernetes';
  /** Names of scenarios, in the order of the table. */
  names: readonly string[];
  short: boolean;
  ours: Candidate;
  /** Its command may be `go`. */
  peer: Candidate | undefined;
  /** The folder of the logs; undefined: they are not kept. */
  logFolder: string | undefined;
}

interface Values {
  cluster: GreyOptions['target'];
  only?: readonly string[];
  short: boolean;
  program: string;
  peer?: string;
  peerFlags: string;
  logs?: string;
}

/**
 * Reads the command line; an invalid one ends the process.
 *
 * @param scenarios - all scenarios.
 * @param shortNames - names of the scenarios of the short form.
 */
export function parseOptions(
  argv: readonly string[],
  scenarios: readonly { name: string; about: string }[],
  shortNames: readonly string[],
): GreyOptions {
  const names = scenarios.map(({ name }) => name);
  const width = Math.max(...names.map((name) => name.length)) + 2;
  const values = scriptCommand(
    'npm run grey --',
    `Runs the sidecar while what it depends on fails in part, and prints a table of the results. Exit
code 1 when it has missed a goal; the results of the peer do not count.`,
  )
    .addOption(new Option('--cluster <NAME>', 'cluster').choices(['kubernetes', 'sandbox']).default('kubernetes'))
    .option('--only <NAMES>', 'only these scenarios, separated by commas', namesAmong(names))
    .option('--short', 'fewer and smaller scenarios, on the sandbox, with generous goals', false)
    .option('--program <CMD>', 'the command of the sidecar; default: the bundle as the image runs it', bundled)
    .option('--peer <CMD>', `the command of another sidecar, for comparison in the same run; ${goHelp}`)
    .option('--peer-flags <F>', 'further flags for the peer, such as a raised client-side rate limit', '')
    .option('--logs <DIR>', 'folder to keep the logs of all sidecars in')
    .addHelpText(
      'after',
      `\nScenarios:\n${scenarios.map((each) => `  ${each.name.padEnd(width)}${each.about}`).join('\n')}`,
    )
    .parse(argv, { from: 'user' })
    .opts<Values>();
  const { cluster, short, only = short ? shortNames : names, program, peer, peerFlags, logs } = values;
  return {
    target: short ? 'sandbox' : cluster,
    names: names.filter((name) => only.includes(name)),
    short,
    ours: { name: 'ours', command: program, flags: [] },
    peer: peer === undefined ? undefined : { name: 'peer', command: peer, flags: words(peerFlags) },
    logFolder: logs,
  };
}

function namesAmong(known: readonly string[]): (text: string) => string[] {
  return (text) => {
    const names = text.split(',').filter((name) => name !== '');
    const unknown = names.find((name) => !known.includes(name));
    if (unknown !== undefined || names.length === 0)
      throw new InvalidArgumentError(`${JSON.stringify(unknown ?? text)} is not one of ${known.join(', ')}.`);
    return names;
  };
}

function words(text: string): string[] {
  return text.split(' ').filter((word) => word !== '');
}
