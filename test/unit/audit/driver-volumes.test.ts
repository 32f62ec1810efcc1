import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listDriverVolumes } from '../../../src/audit/driver-volumes.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';

test('a list whose every page comes late, with something new, is given up after two hours', async () => {
  const clock = new ManualClock({ turns: 1 });
  let pages = 0;
  const listing = listDriverVolumes({
    calls: {
      listVolumes: async () => {
        await clock.sleep(9000);
        const volume_id = `vol-${++pages}`;
        return { entries: [{ volume: { volume_id } }], next_token: volume_id };
      },
    },
    onStart: () => undefined,
    onVolume: () => true,
    clock,
    signal: new AbortController().signal,
  });
  const refused = assert.rejects(listing, /takes too long: after 2 hours it had 801 entries, and goes on/);
  for (let minute = 0; minute < 150; minute++) await clock.advance(60_000);
  await refused;
});
