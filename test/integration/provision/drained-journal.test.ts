import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { recoveryScene } from './recovery-scene.ts';

describe('while an operator drains the journal', () => {
  test('a new claim waits, says so once, and is served when that ends', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { journal, backend, name, uid, clock } = scene;
    journal.isDraining = true;
    await rig.start();
    const isTold = ({ message }: { message: string }): boolean =>
      message.startsWith(
        'Waiting for the end of a drain: the intent journal is being drained, and no new volume is begun',
      );
    await rig.until('an event', () => rig.events.some(isTold));
    assert.deepEqual(backend.fulfils, []);
    assert.equal(journal.records.size, 0, 'nothing is recorded');
    journal.isDraining = false;
    journal.listener.onDrainEnded();
    await clock.advance(1000);
    await rig.until('the volume', () => rig.volume(name));
    assert.equal(rig.events.filter(isTold).length, 1);
    assert.equal(rig.volume(name)?.spec.claimRef?.uid, uid);
  });

  test('a claim whose mark is noticed only with the write of its record has its record removed', async () => {
    const scene = await recoveryScene();
    await using rig = scene.rig;
    const { journal, backend } = scene;
    journal.onPut = () => {
      journal.isDraining = true;
      return Promise.resolve();
    };
    await rig.start();
    await rig.until('the record to be removed', () => journal.writes.includes('remove'));
    assert.deepEqual(journal.writes, ['put create', 'remove']);
    assert.deepEqual(backend.fulfils, []);
  });
});
