import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { VolumeLog } from '../../../../src/provision/cache/volume-log.ts';
import type { PersistentVolume } from '../../../../src/provision/objects.ts';

interface Sketch {
  version: number | string;
  uid?: string;
  handle?: string;
  policy?: 'Delete' | 'Retain';
  phase?: string;
}

function volume(name: string, { version, uid, handle = `h-${name}`, policy, phase }: Sketch): PersistentVolume {
  return {
    metadata: { name, resourceVersion: String(version) },
    spec: {
      csi: { driver: 'drv', volumeHandle: handle },
      ...(uid !== undefined && { claimRef: { uid } }),
      ...(policy && { persistentVolumeReclaimPolicy: policy }),
    },
    ...(phase !== undefined && { status: { phase } }),
  };
}

/** A log whose cache was listed at version 100, unless that is left to the test. */
function scene({ listedAt = '100' }: { listedAt?: string | undefined } = {}) {
  const seen = { holes: 0, rewound: 0 };
  const needed: { names: number | undefined; storage: number | undefined } = { names: undefined, storage: undefined };
  const log = new VolumeLog({
    storageKeys: ({ spec }) => {
      const { volumeHandle = '' } = spec.csi ?? {};
      if (volumeHandle === 'broken') throw new Error('no handle');
      return [volumeHandle];
    },
  });
  log.usedBy({
    neededVersions: () => (needed.names === undefined ? [] : [needed.names]),
    neededStorageVersions: () => (needed.storage === undefined ? [] : [needed.storage]),
    lostHistory: () => seen.rewound++,
  });
  log.readBy({ fill: () => seen.holes++ });
  if (listedAt !== '') log.listed(listedAt, { rewound: false });
  /** The cache has an event, and everything up to it. */
  const follow = (name: string, sketch: Sketch, type: 'ADDED' | 'MODIFIED' | 'DELETED' = 'MODIFIED'): void => {
    log.changed(type, volume(name, sketch));
    log.advanced(String(sketch.version));
  };
  /** So much happens to other volumes that the log drops what nobody needs. */
  const prune = (from: number, count = 1000): number => {
    for (let version = from; version < from + count; version++) {
      log.changed('ADDED', volume(`many-${version}`, { version }));
    }
    log.advanced(String(from + count));
    return from + count;
  };
  return { log, seen, needed, follow, prune };
}

const kinds = (log: VolumeLog, name: string, versions: number[]): string[] =>
  versions.map((since) => log.verdict(name, since).kind);

describe('a name', () => {
  test('of which no event came never had a volume, as far as the cache has read', () => {
    const { log, follow } = scene();
    follow('other', { version: 120 });
    assert.deepEqual(kinds(log, 'a', [100, 119, 120]), ['never', 'never', 'never']);
    assert.equal(log.reached, 120);
    assert.equal(log.verdict('a', 121).kind, 'pending', 'that is still to come');
  });

  test('of which an event came had one, for whoever asks from before', () => {
    const { log, follow } = scene();
    follow('a', { version: 110 }, 'ADDED');
    follow('b', { version: 130 }, 'ADDED');
    assert.deepEqual(kinds(log, 'a', [100, 109, 110, 130]), ['seen', 'seen', 'never', 'never']);
  });

  test('had one also when only its deletion was seen', () => {
    const { log, follow } = scene();
    follow('a', { version: 110, uid: 'u' }, 'DELETED');
    assert.equal(log.verdict('a', 105).kind, 'seen');
  });

  test('of an event that is noted before the cache says how far it is counts at once', () => {
    const { log } = scene();
    log.changed('ADDED', volume('a', { version: 110 }));
    assert.equal(log.verdict('a', 100).kind, 'seen');
    assert.equal(log.reached, 100);
  });

  test('is not proved to be free from a version that is none', () => {
    const { log, follow } = scene();
    assert.match(String((log.verdict('a', NaN) as { why?: string }).why), /not known since when/);
    follow('a', { version: 110 });
    assert.equal(log.verdict('a', NaN).kind, 'seen');
  });

  test('is not proved to be free while the server does not number its versions', () => {
    const { log } = scene({ listedAt: 'abc' });
    assert.equal(log.verdict('a', 100).kind, 'pending');
    log.changed('ADDED', volume('a', { version: 'xyz' }));
    assert.equal(log.verdict('a', 100).kind, 'seen');
  });

  test('is not proved to be free before anything was listed', () => {
    const { log } = scene({ listedAt: '' });
    assert.equal(log.verdict('a', 100).kind, 'pending');
    assert.deepEqual(log.pending, []);
  });
});

describe('what was seen of a name', () => {
  test('has all claims and all storage, and the state of the last event, in whatever order they are read', () => {
    const { log } = scene();
    log.note(volume('a', { version: 120, uid: 'u2', handle: 'h2', policy: 'Retain', phase: 'Released' }));
    log.note(volume('a', { version: 110, uid: 'u1', handle: 'h1', policy: 'Delete' }));
    const verdict = log.verdict('a', 100);
    assert.deepEqual(verdict.kind === 'seen' && { ...verdict.volume }, {
      version: 120,
      claimUids: new Set(['u2', 'u1']),
      storageKeys: new Set(['h2', 'h1']),
      policy: 'Retain',
      phase: 'Released',
    });
    log.note(volume('a', { version: 130 }));
    const last = log.verdict('a', 100);
    assert.partialDeepStrictEqual(last, { volume: { policy: '', phase: '' } });
  });

  test('has no storage where that cannot be told, which is no reason to miss the event', () => {
    const { log, follow } = scene();
    follow('a', { version: 110, handle: 'broken' });
    assert.partialDeepStrictEqual(log.verdict('a', 100), { kind: 'seen', volume: { storageKeys: new Set() } });
  });
});

describe('storage', () => {
  test('was seen up to its last event, whatever the name of the volume', () => {
    const { log, follow } = scene();
    follow('a', { version: 110, handle: 'h' });
    follow('b', { version: 120, handle: 'h' });
    log.note(volume('c', { version: 115, handle: 'h' }));
    assert.deepEqual(
      [100, 119, 120, NaN].map((since) => log.sawStorage('h', since)),
      [true, true, false, true],
    );
    assert.equal(log.sawStorage('other', 100), false);
  });

  test('was seen for all time by an event of which the version is no number', () => {
    const { log } = scene();
    log.note(volume('a', { version: 'xyz', handle: 'h' }));
    assert.equal(log.sawStorage('h', 1000), true);
  });
});

describe('a part of what happened', () => {
  test('from before the first list is read for whoever asks about it, and only that', () => {
    const { log, seen } = scene();
    log.extend(90);
    log.extend(95);
    assert.deepEqual(log.pending, [{ from: 90, until: 100, lost: undefined }]);
    assert.equal(seen.holes, 1);
    assert.deepEqual(kinds(log, 'a', [90, 99, 100]), ['pending', 'pending', 'never']);
    log.close(90, 100);
    assert.deepEqual(kinds(log, 'a', [80, 90]), ['pending', 'never']);
    log.extend(80);
    assert.deepEqual(
      log.pending.map(({ from, until }) => [from, until]),
      [[80, 90]],
    );
  });

  test('is known once it was read', () => {
    const { log } = scene();
    log.extend(90);
    log.note(volume('b', { version: 94 }));
    log.close(90, 100);
    assert.deepEqual(log.pending, []);
    assert.deepEqual(kinds(log, 'a', [90]), ['never']);
    assert.deepEqual(kinds(log, 'b', [90, 94]), ['seen', 'never']);
    assert.equal(log.reached, 100);
  });

  test('stays unknown where only some of it was read', () => {
    const { log } = scene();
    log.extend(80);
    log.close(85, 90);
    assert.deepEqual(
      log.pending.map(({ from, until }) => [from, until]),
      [
        [80, 85],
        [90, 100],
      ],
    );
    assert.deepEqual(kinds(log, 'a', [80, 95, 100]), ['pending', 'pending', 'never']);
    log.close(90, 100);
    assert.deepEqual(kinds(log, 'a', [80, 85, 95]), ['pending', 'never', 'never']);
  });

  test('that is lost proves nothing for names of before, but an event that was seen still counts', () => {
    const { log } = scene();
    log.extend(80);
    log.lose(80, 90, 'compacted');
    log.close(90, 100);
    assert.deepEqual(log.verdict('a', 80), { kind: 'unknown', why: 'compacted' });
    assert.equal(log.verdict('a', 89).kind, 'unknown');
    assert.equal(log.verdict('a', 90).kind, 'never');
    log.note(volume('a', { version: 95 }));
    assert.equal(log.verdict('a', 80).kind, 'seen');
  });

  test('that is lost decides before one that is still to be read', () => {
    const { log } = scene();
    log.extend(80);
    log.lose(80, 85, 'compacted');
    assert.equal(log.verdict('a', 80).kind, 'unknown');
    assert.equal(log.verdict('a', 85).kind, 'pending');
  });

  test('between two lists is to be read', () => {
    const { log, seen, follow } = scene();
    follow('b', { version: 110 });
    log.listed('150', { rewound: false });
    assert.deepEqual(log.pending, [{ from: 110, until: 150, lost: undefined }]);
    assert.equal(seen.holes, 1);
    assert.deepEqual(kinds(log, 'a', [100, 149, 150]), ['pending', 'pending', 'never']);
    log.close(110, 150);
    assert.equal(log.verdict('a', 100).kind, 'never');
  });

  test('is not missing after a list that is no younger than what is known', () => {
    const { log, seen, follow } = scene();
    follow('b', { version: 110 });
    log.listed('110', { rewound: false });
    log.listed('105', { rewound: false });
    assert.deepEqual(log.pending, []);
    assert.deepEqual([seen.holes, log.reached], [0, 110]);
  });

  test('is lost with an event that could not be read, until the cache has gone on', () => {
    const { log } = scene();
    log.missed();
    log.advanced('120');
    log.advanced('130');
    assert.match(String((log.verdict('a', 100) as { why?: string }).why), /could not be read/);
    assert.equal(log.verdict('a', 119).kind, 'unknown');
    assert.equal(log.verdict('a', 120).kind, 'never');
    assert.deepEqual(log.pending, [], 'a second reading would fail, too');
  });

  test('that is read ahead of the cache counts, and the cache does not go back behind it', () => {
    const { log } = scene();
    log.close(100, 140);
    assert.equal(log.reached, 140);
    log.advanced('120');
    assert.equal(log.reached, 140);
    assert.equal(log.verdict('a', 100).kind, 'never');
    log.close(150, 160);
    assert.equal(log.reached, 140, 'what is between is not known');
  });
});

test('a server that has gone back makes the log begin anew', () => {
  const { log, seen, follow } = scene();
  log.extend(90);
  follow('a', { version: 110, handle: 'h' });
  log.listed('50', { rewound: true });
  assert.deepEqual([seen.rewound, log.reached], [1, 50]);
  assert.deepEqual(log.pending, []);
  assert.equal(log.verdict('a', 50).kind, 'never');
  assert.equal(log.sawStorage('h', 50), false);
});

describe('what nobody asks about any more', () => {
  test('is dropped, once it is much', () => {
    const { log, needed, follow, prune } = scene();
    follow('a', { version: 110, handle: 'h' });
    assert.equal(log.sawStorage('h', 100), true);
    needed.names = 105;
    needed.storage = 105;
    prune(200);
    assert.equal(log.verdict('a', 105).kind, 'seen');
    needed.names = 110;
    needed.storage = 110;
    prune(2000, 10_000);
    assert.equal(log.verdict('a', 110).kind, 'never');
    assert.equal(log.sawStorage('h', 105), false);
  });

  test('is dropped by name though its storage is still asked about', () => {
    const { log, needed, follow, prune } = scene();
    follow('a', { version: 110, handle: 'h' });
    needed.names = 150;
    needed.storage = 105;
    prune(200);
    assert.equal(log.sawStorage('h', 105), true);
  });

  test('is dropped as a whole when no record is open', () => {
    const { log, follow, prune } = scene();
    log.extend(80);
    log.lose(80, 100, 'compacted');
    follow('a', { version: 110, handle: 'h' });
    const end = prune(200);
    assert.equal(log.sawStorage('h', 0), false);
    assert.deepEqual(kinds(log, 'a', [80, 105, end - 1, end]), ['pending', 'pending', 'pending', 'never']);
  });

  test('is read again for a record that is found later: it does not count as never seen', () => {
    const { log, seen, follow, prune } = scene();
    follow('a', { version: 110 });
    const end = prune(200);
    log.extend(105);
    assert.equal(seen.holes, 1);
    assert.deepEqual(log.pending, [{ from: 105, until: end, lost: undefined }]);
    assert.equal(log.verdict('a', 105).kind, 'pending');
    log.note(volume('a', { version: 110 }));
    log.close(105, end);
    assert.equal(log.verdict('a', 105).kind, 'seen');
  });
});
