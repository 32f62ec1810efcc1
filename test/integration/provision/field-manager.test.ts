import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Rig } from './rig.ts';

describe('the field manager of writes', () => {
  for (const { title, controller, want } of [
    { title: 'is the provisioner by default', controller: {}, want: 'drv' },
    { title: 'is the one that the program names', controller: { fieldManager: 'nfs-server' }, want: 'nfs-server' },
  ]) {
    test(title, async () => {
      await using rig = await Rig.prepare({ controller });
      rig.addClass();
      const { uid } = rig.addClaim().metadata;
      await rig.start();
      await rig.synced(uid);
      await rig.stop(); // then events are sent, too
      const writes = rig.wire.requests.filter(({ method }) => method === 'POST').map(({ path }) => path);
      assert.ok(
        writes.some((path) => path.includes('/persistentvolumes?')) && writes.some((path) => path.includes('/events?')),
      );
      for (const path of writes) assert.ok(path.endsWith(`?fieldManager=${want}`), path);
    });
  }
});
