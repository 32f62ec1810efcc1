import fc from 'fast-check';
import { transitions } from '../../../../../src/provision/intents/intent-state.ts';
import type { Command } from './command.ts';
import { type CommandChoice, commandSequences, firstCommands, type Focus } from './commands.ts';
import type { BrokenGuards } from './sim-process.ts';
import { World, type WorldOptions } from './world.ts';

/** Runs random sequences of commands. @throws with the shortest sequence that breaks a rule. */
export async function runModel({
  broken = {},
  focus = 'everything',
  elections = fc.boolean(),
  ...parameters
}: Pick<fc.Parameters, 'numRuns' | 'seed' | 'path' | 'interruptAfterTimeLimit' | 'endOnFailure'> & {
  broken?: BrokenGuards;
  /** Which commands. Default: all. */
  focus?: Focus | CommandChoice;
  /** Default: with and without. */
  elections?: fc.Arbitrary<boolean>;
}): Promise<fc.RunDetails<[WorldOptions, Iterable<Command>]>> {
  const settings: fc.Arbitrary<WorldOptions> = fc.record({
    savePauseMs: fc.constantFrom(10_000, 1000),
    handlesFromNames: fc.boolean(),
    hasSource: fc.boolean(),
    election: elections,
    prefixChanges: fc.boolean(),
  });
  const property = fc.asyncProperty(settings, commandSequences(focus), async (given, commands) => {
    const world = new World({ ...given, broken });
    world.startProcess();
    await world.pump();
    const all = [...firstCommands(focus), ...commands];
    await fc.asyncModelRun(() => ({ model: { world }, real: world }), all);
    await world.comeToRest();
    world.check();
    world.checkAtRest();
    for (const process of world.alive) process.alive = false;
  });
  const intact = { ...transitions };
  Object.assign(transitions, broken.transitions);
  try {
    return await fc.check(property, parameters);
  } finally {
    Object.assign(transitions, intact);
  }
}
