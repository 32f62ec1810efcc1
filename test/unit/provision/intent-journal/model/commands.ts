/** What can happen, and which of it comes together. */
import fc from 'fast-check';
import { createFaults } from './backend.ts';
import { objectKey } from '../../../../../src/kube/kube-object.ts';
import { type Command, command, picks } from './command.ts';
import { claimCommands, createClaim, volumeCommands } from './object-commands.ts';
import { workAsAnother } from './outsiders.ts';
import type { World } from './world.ts';

const kinds = [
  'CreateVolume',
  'CreateVolume',
  'DeleteVolume',
  'update leases',
  'create persistentvolumes',
  'list persistentvolumes',
  'get persistentvolumeclaims',
] as const;

const callsAreOpen = ({ network }: World): boolean => network.length > 0;

const networkCommands: fc.Arbitrary<Command>[] = [
  fc.array(picks, { minLength: 1, maxLength: 12 }).map((order) =>
    command(`steps ${order.join()}`, callsAreOpen, async (world) => {
      for (const pick of order) await world.step(pick);
    }),
  ),
  fc
    .record({ what: fc.constantFrom(...kinds), state: fc.constantFrom('sent', 'executed') })
    .map(({ what, state }) => command(`until ${what} is ${state}`, callsAreOpen, (world) => world.until(what, state))),
  fc.constant(
    command(
      'late calls are executed',
      ({ network }) => network.lateLength > 0,
      ({ network }) => network.executeLate(),
    ),
  ),
  fc.constant(
    command(
      'late calls are dropped',
      ({ network }) => network.lateLength > 0,
      ({ network }) => network.dropLate(),
    ),
  ),
  fc.constant(command('everything is answered', callsAreOpen, (world) => world.pump())),
  fc
    .record({ pick: picks, executedLater: fc.boolean() })
    .map(({ pick, executedLater }) =>
      command(`connection ${pick} breaks${executedLater ? ', executed later' : ''}`, callsAreOpen, (world) =>
        world.network.break(pick, { executedLater }),
      ),
    ),
];

const timeCommands: fc.Arbitrary<Command>[] = [
  fc.record({ ms: fc.constantFrom(100, 1000, 3000, 16_000, 21_000, 61_000), busy: fc.boolean() }).map(({ ms, busy }) =>
    command(
      `${ms} ms pass${busy ? '' : ' without an answer'}`,
      () => true,
      (world) => world.advance(ms, { busy }),
    ),
  ),
];

const backendCommands: fc.Arbitrary<Command>[] = [
  fc.constantFrom(...createFaults).map((fault) =>
    command(
      `the next CreateVolume: ${fault}`,
      () => true,
      (world) => world.backend.failCreate(fault),
    ),
  ),
  fc.constant(
    command(
      'the next CreateVolume: background, then internal',
      () => true,
      ({ backend }) => {
        backend.failCreate('background');
        backend.failCreate('internal');
      },
    ),
  ),
  fc.constant(
    command(
      'the next DeleteVolume fails',
      () => true,
      (world) => world.backend.failDelete(),
    ),
  ),
  fc.constant(
    command(
      'work in the background ends',
      () => true,
      (world) => world.backend.finishWork({ all: true }),
    ),
  ),
];

const stallCommands: fc.Arbitrary<Command>[] = [
  fc.constant(
    command(
      'the backend stalls',
      ({ alive, network }) => !network.isStalled && alive.length === 1 && alive.every(({ paused }) => !paused),
      ({ network }) => {
        network.isStalled = true;
      },
    ),
  ),
  fc.constant(
    command(
      'the backend goes on',
      ({ network }) => network.isStalled,
      ({ network }) => network.goOn(),
    ),
  ),
];

const processCommands: fc.Arbitrary<Command>[] = [
  picks.map((pick) =>
    command(
      `crash ${pick}`,
      ({ alive }) => alive.length > 0,
      ({ alive }) => {
        const process = alive[pick % alive.length];
        if (process !== undefined) process.alive = false;
      },
    ),
  ),
  fc.constant(
    command(
      'start',
      ({ canStart }) => canStart,
      (world) => world.startProcess(),
    ),
  ),
  fc.constant(
    command(
      'stop',
      ({ alive }) => alive.some(({ stopping }) => !stopping),
      (world) => {
        for (const process of world.alive) process.stop();
      },
    ),
  ),
  fc.constant(
    command(
      'the lease is lost',
      ({ alive }) => alive.length > 0,
      (world) => world.alive[0]?.loseLease(),
    ),
  ),
  picks.map((pick) =>
    command(
      `pause ${pick}`,
      ({ alive, network }) => !network.isStalled && alive.some(({ paused }) => !paused),
      (world) => {
        const running = world.alive.filter(({ paused }) => !paused);
        world.mayBeReported = true; // whoever takes over cannot know everything
        running[pick % running.length]?.pause();
      },
    ),
  ),
  fc.constant(
    command(
      'the paused go on',
      ({ alive }) => alive.some(({ paused }) => paused),
      async (world) => {
        for (const process of world.alive.filter(({ paused }) => paused)) await process.goOn(() => world.settle());
      },
    ),
  ),
  fc.constant(
    command(
      'the watches are held',
      ({ alive }) => alive.length > 0,
      (world) => {
        for (const { transport } of world.alive) transport.holdWatches();
      },
    ),
  ),
  fc.constant(
    command(
      'the watch of volumes is held',
      ({ alive }) => alive.length > 0,
      (world) => {
        for (const { transport } of world.alive) transport.holdVolumes();
      },
    ),
  ),
  fc.constant(
    command(
      'the watches go on',
      ({ alive }) => alive.length > 0,
      (world) => {
        for (const { transport, paused } of world.alive) if (!paused) transport.releaseWatches();
      },
    ),
  ),
];

const outsideCommands: fc.Arbitrary<Command>[] = [
  fc.constant(
    command(
      'another provisioner works',
      ({ alive }) => alive.length === 0,
      (world) => {
        world.mayBeReported = world.anotherWorked = true; // what it did is recorded nowhere
        workAsAnother(world);
      },
    ),
  ),
  fc.constant(
    command(
      'the API server is restarted',
      () => true,
      (world) => world.restartApi(),
    ),
  ),
  fc.constant(
    command(
      'etcd is backed up',
      () => true,
      (world) => world.backUpEtcd(),
    ),
  ),
  fc.constant(
    command(
      'etcd is restored',
      ({ isBackedUp }) => isBackedUp,
      (world) => world.restoreEtcd(),
    ),
  ),
];

const crashAt = fc.record({ what: fc.constantFrom(...kinds), state: fc.constantFrom('sent', 'executed') });

/** All processes crash when a call is this far. */
const crashes: fc.Arbitrary<Command>[] = [false, true].map((again) =>
  crashAt.map(({ what, state }) =>
    command(
      `crash once ${what} is ${state}${again ? ', start again' : ''}`,
      ({ alive }) => alive.length > 0,
      async (world) => {
        await world.until(what, state);
        for (const process of world.alive) process.alive = false;
        if (again) world.startProcess();
      },
    ),
  ),
);

/** A process is paused when a call is this far, and goes on when another one has settled everything. */
const overtaken: fc.Arbitrary<Command> = fc
  .record({ at: crashAt, isWanted: fc.boolean() })
  .map(({ at: { what, state }, isWanted }) =>
    command(
      `pause once ${what} is ${state}, another takes over${isWanted ? '' : ' and the claims go'}`,
      ({ alive, network }) =>
        !network.isStalled && alive.length === 1 && alive.every(({ paused, stopping }) => !paused && !stopping),
      async (world) => {
        const [paused] = world.alive;
        await world.advance(200, { busy: false }); // what waits for company is sent
        await world.until(what, state);
        world.mayBeReported = true;
        paused?.pause();
        if (!isWanted)
          for (const { metadata } of world.claims) world.api.remove('persistentvolumeclaims', objectKey({ metadata }));
        await world.advance(17_000, { busy: true });
        world.startProcess();
        await world.advance(180_000, { busy: true, chunkMs: 5000 });
        await paused?.goOn(() => world.settle());
      },
    ),
  );

const lateThenCrash = command(
  'late calls are executed, all crash',
  ({ network }) => network.lateLength > 0,
  (world) => {
    world.network.executeLate();
    for (const process of world.alive) process.alive = false;
  },
);

const all = fc.oneof(
  ...[createClaim, createClaim, createClaim],
  ...claimCommands,
  ...volumeCommands,
  ...[...networkCommands, ...networkCommands, ...networkCommands],
  ...[...timeCommands, ...timeCommands, ...timeCommands],
  ...backendCommands,
  ...stallCommands,
  ...processCommands,
  ...[...crashes, ...crashes],
  ...[overtaken, overtaken],
  fc.constant(lateThenCrash),
  ...outsideCommands,
);

/** Which commands come together: a few of them go deeper than all at once. */
export const focuses = {
  everything: { only: /./, maxCommands: 60 },
  takeOvers: {
    only: /^(create claim . of class delete|delete claim|crash once (C|up)|crash|start|until C|late calls are executed$|every|1000 ms pass$)/,
    maxCommands: 14,
  },
  lateWrites: {
    only: /^(create claim . of class delete|delete claim|crash once up.* sent, start|start|until C.* executed|late calls are executed, a)/,
    maxCommands: 24,
  },
  failures: {
    only: /^(create claim|delete claim|the next CreateVolume|work in|crash|start|everything|\d+ ms pass$)/,
    maxCommands: 24,
  },
  keptStorage: {
    only: /^(create claim . of class delete|an admin|Kubernetes b|crash once c.* executed|crash|start|every|steps|1000 ms pass$|until [Cc])/,
    maxCommands: 16,
  },
  others: {
    only: /^(create claim . of class delete|an admin|another prov|crash once C|crash|start|every|delete claim|1000 ms pass$|16000 ms pass$)/,
    maxCommands: 20,
  },
  servers: {
    only: /^(create claim . of class delete|an admin|the API|etcd|Kubernetes b|crash once c|crash|start|every|delete claim|1000 ms pass$|61000 ms pass$|connection|the watch)/,
    maxCommands: 24,
  },
  lateAnswers: {
    only: /^(create claim . of class delete|delete claim|the next CreateVolume: (late|background)|Kubernetes b|every|\d+ ms pass$)/,
    maxCommands: 16,
  },
  stalls: {
    only: /^(create claim . of class delete|delete claim|the next CreateVolume: (late|background)|the backend|until C|every|crash 0|start|\d+ ms pass)/,
    maxCommands: 24,
  },
  pauses: {
    only: /^(create claim . of class delete|delete claim|pause|the paused|start|Kubernetes b|every|1000 ms pass$)/,
    maxCommands: 12,
  },
  nodes: {
    only: /^(create claim . of class delete|select node|delete claim|the next CreateVolume|the classes|crash once [Cu]|crash|start|every|until|late calls|pause|the paused|connection|\d+ ms pass$)/,
    maxCommands: 24,
  },
  secondThoughts: {
    only: /^(create claim|hand|until|the next CreateVolume: made-unclear|the watch|steps|everything|\d+ ms pass$)/,
    maxCommands: 24,
  },
} as const;

export type Focus = keyof typeof focuses;

/** A few commands, by their texts, each as likely as the others. */
export interface CommandChoice {
  /** What each sequence begins with. Default: nothing. */
  first?: readonly string[];
  texts: readonly string[];
  maxCommands: number;
}

/** Sequences of what can happen. */
export function commandSequences(focus: Focus | CommandChoice): fc.Arbitrary<Iterable<Command>> {
  const options = { size: 'max' } as const;
  if (typeof focus !== 'string') {
    const commands = focus.texts.map((text) => commandOf(text));
    return fc.commands([fc.constantFrom(...commands)], { ...options, maxCommands: focus.maxCommands });
  }
  const { only, maxCommands } = focuses[focus];
  return fc.commands([all.filter((it) => only.test(it.toString()))], { ...options, maxCommands });
}

/** What each sequence begins with. */
export function firstCommands(focus: Focus | CommandChoice): Command[] {
  return typeof focus === 'string' ? [] : (focus.first ?? []).map((text) => commandOf(text));
}

const byText = new Map<string, Command>();

/** @throws when there is no command of this text. */
function commandOf(text: string): Command {
  if (byText.size === 0)
    for (const each of fc.sample(all, { numRuns: 20_000, seed: 1 })) byText.set(each.toString(), each);
  const found = byText.get(text);
  if (found === undefined) throw new Error(`no command ${JSON.stringify(text)}`);
  return found;
}
