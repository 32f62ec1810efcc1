/** Where the kubectl plugin starts. */
import { runSubcommand } from '../subcommand-call.ts';
import { version } from '../program.ts';
import { commands, program } from './kubectl-csi.ts';

const usageCode = 1;

/** Runs the command that the arguments name; resolves at its end, with `process.exitCode` set. */
async function main(): Promise<void> {
  const [name = '--help', ...args] = process.argv.slice(2);
  const command = commands[name];
  if (command !== undefined) {
    process.exitCode = await runSubcommand({ run: command.run, program: `${program} ${name}`, args }, process);
    return;
  }
  const isHelp = ['-h', '--help', 'help'].includes(name);
  if (name === '--version') process.stdout.write(`${version}\n`);
  else if (isHelp) process.stdout.write(help());
  else process.stderr.write(`${program}: unknown command ${JSON.stringify(name)}\n\n${help()}`);
  if (!isHelp && name !== '--version') process.exitCode = usageCode;
}

function help(): string {
  const rows = Object.entries(commands).map(([name, { summary }]) => `  ${name.padEnd(11)}${summary}`);
  return [`Usage: ${program} COMMAND [options]`, '', 'Commands (each has --help)', ...rows, ''].join('\n');
}

void main();
