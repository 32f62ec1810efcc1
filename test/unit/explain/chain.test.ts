import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { followed } from '../../../src/explain/chain.ts';
import type { Explanation, Walked } from '../../../src/explain/explanation.ts';

const own: Explanation = {
  object: 'ns/c',
  verdict: 'waiting',
  cause: 'source-not-ready',
  message: 'Its source is not bound.',
  cure: 'Wait',
  steps: [{ step: 'source', state: 'waiting', detail: 'not bound' }],
};
const way = 'It waits for its source';
const link = (name: string) => ({ namespace: 'ns', name, way: `${way} ${name}` });

/** Explanations of claims by name; nobody may ask for another. */
function explaining(ends: Record<string, Partial<Walked>>) {
  const asked: string[] = [];
  const explain = async ({ name }: { name: string }, seen: ReadonlySet<string>): Promise<Explanation> => {
    asked.push(name);
    const walked: Walked = { ...own, object: `ns/${name}`, steps: [], ...ends[name] };
    assert.ok(name in ends, name);
    return await followed(walked, explain, seen);
  };
  return { asked, explain };
}

describe('an explanation that leads on to another claim', () => {
  test('takes verdict, cause and cure from the end, and names the way', async () => {
    const end = { verdict: 'stuck', cause: 'driver-error', message: 'The claim fails.', cure: 'Fix it' } as const;
    const { explain } = explaining({ a: end });
    assert.deepEqual(await followed({ ...own, next: [link('a')] }, explain, new Set(['ns/c'])), {
      object: 'ns/c',
      verdict: 'stuck',
      cause: 'driver-error',
      message: `${way} a: this claim fails.`,
      cure: 'Fix it',
      steps: [...own.steps, { step: 'claim ns/a', state: 'stuck', detail: 'The claim fails.' }],
    });
  });

  test('names each claim on a longer way', async () => {
    const { explain } = explaining({ a: { next: [link('b')] }, b: { message: 'B burns.' } });
    const { message } = await followed({ ...own, next: [link('a')] }, explain, new Set(['ns/c']));
    assert.equal(message, `${way} a, which waits for its source b: B burns.`);
  });

  test('passes by a claim that is bound and holds nobody', async () => {
    const { explain } = explaining({ a: { verdict: 'bound', cause: 'bound', cure: '' }, b: { message: 'B burns.' } });
    const { message } = await followed({ ...own, next: [link('a'), link('b')] }, explain, new Set(['ns/c']));
    assert.equal(message, `${way} b: B burns.`);
  });

  test('is stuck at a bound claim whose Pod does not start, and at one that does not exist', async () => {
    const bound = { verdict: 'bound', cause: 'bound', message: 'Bound, but Pod p hangs.', cure: 'Free it' } as const;
    const missing = { verdict: 'unknown', cause: 'not-found', message: 'There is no claim ns/a.' } as const;
    for (const [end, cause] of [
      [bound, own.cause],
      [missing, 'not-found'],
    ] as const) {
      const explanation = await followed({ ...own, next: [link('a')] }, explaining({ a: end }).explain, new Set());
      assert.deepEqual([explanation.verdict, explanation.cause], ['stuck', cause]);
    }
  });

  test('goes round in no circle, and through four claims at most', async () => {
    const circle = explaining({ a: { next: [link('c'), link('a')], message: 'A waits.' } });
    const { message } = await followed({ ...own, next: [link('a')] }, circle.explain, new Set(['ns/c']));
    assert.equal(message, `${way} a: A waits.`);
    const names = ['p', 'q', 'r', 's', 't'];
    const ends = names.map((name, index) => [name, { next: [link(names[index + 1] ?? 'p')] }] as const);
    const { asked, explain } = explaining(Object.fromEntries(ends));
    await followed({ ...own, next: [link('p')] }, explain, new Set(['ns/c']));
    assert.deepEqual(asked, ['p', 'q', 'r']);
  });
});
