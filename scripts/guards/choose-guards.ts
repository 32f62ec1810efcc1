import path from 'node:path';
import type { Random } from '../chaos/random.ts';
import type { Guard } from './find-guards.ts';

/**
 * One guard of each folder after the other, in an order that the seed decides, until there are enough.
 *
 * @param isAccepted - called for as few guards as possible.
 */
export function chooseGuards(
  guards: readonly Guard[],
  { count, random, isAccepted }: { count: number; random: Random; isAccepted: (guard: Guard) => boolean },
): Guard[] {
  const folders = Map.groupBy(guards, ({ file }) => path.dirname(file));
  let queues = shuffle([...folders.keys()].toSorted(), random).map((folder) =>
    shuffle(folders.get(folder) ?? [], random.stream(folder)),
  );
  const chosen: Guard[] = [];
  while (queues.length > 0) {
    for (const queue of queues) {
      if (chosen.length >= count) return chosen;
      const guard = takeFirst(queue, isAccepted);
      if (guard !== undefined) chosen.push(guard);
    }
    queues = queues.filter((queue) => queue.length > 0);
  }
  return chosen;
}

function takeFirst(queue: Guard[], isAccepted: (guard: Guard) => boolean): Guard | undefined {
  for (let guard = queue.shift(); guard !== undefined; guard = queue.shift()) if (isAccepted(guard)) return guard;
  return undefined;
}

function shuffle<T>(list: readonly T[], random: Random): T[] {
  const left = [...list];
  return Array.from(list, () => left.splice(Math.floor(random.next() * left.length), 1)).flat();
}
