/** The arguments of `csi-provisioner journal`: an action, a few flags of its own, and those of the sidecar. */
import { meantWords } from './parse-flags.ts';
import {
  durationOf,
  namespacedNameOf,
  outputOf,
  readArguments,
  readValues,
  type SubcommandCall,
  subcommandParser,
} from './subcommand-call.ts';
import { sidecarConfig } from './sidecar-connections.ts';

const actions = ['list', 'drain', 'discard', 'adopt'] as const;

type JournalAction = (typeof actions)[number];

export type JournalArguments = NonNullable<ReturnType<typeof journalArguments>>;

interface OwnFlags {
  driver?: string;
  output: string;
  context?: string;
  resume?: boolean;
  wait: string;
  uid?: string[];
  from?: string;
  silence: string;
  yes?: boolean;
}

const notes = `
Actions:
  list      the open records: claim, volume, phase, age, and what each waits for
  drain     have the sidecar begin no new volume, and wait until no record is open, such as before
            another provisioner takes over; --resume ends it
  discard   have the sidecar forget the records of --uid, which are stuck; no volume is deleted
  adopt     take the records of another journal, --from, once nobody works on them any more, such as after
            a change of --leader-election-namespace or --node-deployment; the sidecar takes them over
            within a minute

All flags of the sidecar are accepted as well. These have an effect: --csi-address, --timeout,
--kubeconfig, --intent-journal, --leader-election-namespace, --node-deployment with the variable
NODE_NAME, and -v.
The others have no effect: the arguments of the sidecar can be copied.

Exit codes: 0 done; 1 wrong arguments, or a record that must not be discarded; 2 records are stuck
or could not be adopted, or drain has waited in vain; 3 the journal could not be read or written.`;

/**
 * Reads the arguments.
 *
 * @returns undefined when help was asked for and printed.
 * @throws {SubcommandError} for arguments that cannot be understood.
 */
export function journalArguments(call: SubcommandCall, { usageCode }: { usageCode: number }) {
  const parser = subcommandParser(call)
    .usage('list|drain|discard|adopt [options]')
    .description('Shows the intent journal, the records of volumes in progress, and prepares a change of provisioner.')
    .option('--driver <name>', 'name of the driver (default: the driver on --csi-address is asked)')
    .option('-o, --output <format>', 'for list: table or json', 'table')
    .option('--resume', 'for drain: new volumes are begun again')
    .option('--wait <duration>', 'for drain: how long to wait until no record is open', '10m')
    .option('--uid <uid...>', 'for discard: UIDs of the claims')
    .option('--from <namespace/name>', 'for adopt: the Lease of the other journal, without -journal-0')
    .option('--silence <duration>', 'for adopt: how long nobody may have written the other journal', '40s')
    .option('--yes', 'discard or adopt without confirmation')
    .option('--context <name>', 'context in the kubeconfig (default: its current one)')
    .addHelpText('after', notes)
    .allowUnknownOption()
    .allowExcessArguments();
  if (!readArguments(parser, call, { usageCode })) return undefined;
  const flags = parser.opts<OwnFlags>();
  const [action] = meantWords(parser.args);
  return readValues(call, { usageCode }, () => {
    const known = actionOf(action);
    return {
      action: known,
      /** As the sidecar would run. */
      config: sidecarConfig(call, parser.args, { words: 1 }),
      context: flags.context,
      /** Name of the driver; undefined: it is asked. */
      driver: flags.driver,
      output: outputOf(flags.output),
      /** Of `drain`: ends it. */
      resume: onlyFor(known, 'drain', '--resume', flags.resume) ?? false,
      /** Of `drain`: max wait until nothing is open. */
      waitMs: durationOf('--wait', flags.wait),
      /** Of `discard`: UIDs of claims. */
      uids: uidsOf(known, flags.uid),
      /** Of `adopt`: the journal whose records are taken. */
      from: fromOf(known, flags.from),
      /** Of `adopt`: for how long nobody may have written that journal. */
      silenceMs: durationOf('--silence', flags.silence),
      isAgreed: flags.yes ?? false,
    };
  });
}

/** @throws {RangeError} */
function actionOf(text: string | undefined): JournalAction {
  const action = actions.find((each) => each === text);
  if (action !== undefined) return action;
  const got = text === undefined ? 'none' : JSON.stringify(text);
  throw new RangeError(`the first argument must be one of ${actions.join(', ')}, got ${got}`);
}

/** @throws {RangeError} */
function onlyFor<T>(action: JournalAction, wanted: JournalAction, flag: string, value: T | undefined): T | undefined {
  if (value === undefined || action === wanted) return value;
  throw new RangeError(`${flag} is a flag of ${wanted}, not of ${action}`);
}

/** @throws {RangeError} */
function uidsOf(action: JournalAction, given: readonly string[] | undefined): string[] {
  const uids = onlyFor(action, 'discard', '--uid', given) ?? [];
  if (action === 'discard' && uids.length === 0) throw new RangeError('discard needs --uid, with the UIDs of claims');
  if (uids.some((uid) => uid.trim() === '' || uid.includes(','))) {
    throw new RangeError('--uid must be followed by UIDs of claims, separated by spaces');
  }
  return [...new Set(uids)];
}

/** @throws {RangeError} */
function fromOf(action: JournalAction, given: string | undefined): { namespace: string; lockName: string } | undefined {
  const text = onlyFor(action, 'adopt', '--from', given);
  if (action === 'adopt' && text === undefined) throw new RangeError('adopt needs --from NAMESPACE/NAME');
  if (text === undefined) return undefined;
  const { namespace, name } = namespacedNameOf('--from', text);
  return { namespace, lockName: name.replace(/-journal-[0-9]+$/, '') };
}
