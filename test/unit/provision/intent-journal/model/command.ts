/** A command of the model check: the world outside is the model and the real system in one. */
import fc from 'fast-check';
import type { World } from './world.ts';

export type Command = fc.AsyncCommand<{ world: World }, World>;

/** A command that happens where it can. */
export function command(
  text: string,
  can: (world: World) => boolean,
  run: (world: World) => Promise<void> | void,
): Command {
  return {
    check: ({ world }) => can(world),
    run: async (_, world) => {
      world.note(text);
      await run(world);
      await world.settle();
      world.check();
    },
    toString: () => text,
  };
}

/** One of what there is, by number. */
export const picks = fc.nat({ max: 7 });
