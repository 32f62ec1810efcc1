import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { RecentlySaved } from '../../../../src/provision/volume/save-volume.ts';
import { ManualClock } from '../../../support/fakes/manual-clock.ts';

describe('RecentlySaved', () => {
  test('a saved volume is known until the cache shows it', () => {
    const saved = new RecentlySaved({ clock: new ManualClock({ turns: 1 }) });
    assert.equal(saved.has('v'), false);
    saved.add('v');
    assert.equal(saved.has('v'), true);
    assert.equal(saved.has('w'), false);
    saved.delete('v');
    assert.equal(saved.has('v'), false);
  });

  test('a volume that the cache never shows is forgotten after a minute', async () => {
    const clock = new ManualClock({ turns: 1 });
    const saved = new RecentlySaved({ clock });
    saved.add('v');
    await clock.advance(59_999);
    assert.equal(saved.has('v'), true);
    await clock.advance(1);
    assert.equal(saved.has('v'), false);
  });

  test('saving it again begins another minute', async () => {
    const clock = new ManualClock({ turns: 1 });
    const saved = new RecentlySaved({ clock });
    saved.add('v');
    saved.add('w');
    await clock.advance(30_000);
    saved.add('v');
    await clock.advance(30_000);
    saved.add('x'); // forgets what is too old, and only that
    assert.equal(saved.has('v'), true);
    assert.equal(saved.has('w'), false);
  });
});
