import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NodeSegment } from '../../../src/capacity/node-segment.ts';

test('the segment of a node is announced when its labels change, and not when they only may have', async () => {
  let labels: Record<string, string> = { zone: 'z1' };
  let mayHaveChanged = (): void => undefined;
  const segments = new NodeSegment({
    labels: () => labels,
    onChange: (listener) => {
      mayHaveChanged = listener;
      return { [Symbol.dispose]: () => undefined };
    },
  });
  const changes: string[][] = [];
  segments.onChange(({ added, removed }) => changes.push([...added, ...removed].map(({ key }) => key)));
  const stop = new AbortController();
  const running = segments.run(stop.signal);
  const [first] = segments.list();
  mayHaveChanged();
  assert.deepEqual(changes, []);
  labels = { zone: 'z2' };
  mayHaveChanged();
  const [second] = segments.list();
  assert.deepEqual(changes, [[second?.key, first?.key]]);
  stop.abort();
  await running;
});
