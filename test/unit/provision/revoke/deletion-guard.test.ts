import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { VolumeLog } from '../../../../src/provision/cache/volume-log.ts';
import { callsFound } from '../../../../src/provision/intents/earlier-requests.ts';
import { anythingSent, creating, type IntentState } from '../../../../src/provision/intents/intent-state.ts';
import { type Intent, newIntent } from '../../../../src/provision/intents/intent.ts';
import type { PersistentVolume } from '../../../../src/provision/objects.ts';
import {
  DeletionGuard,
  type DeletionGuardOptions,
  DeletionRefusedError,
  type Refusal,
} from '../../../../src/provision/revoke/deletion-guard.ts';
import { recordOf } from '../../../integration/provision/intent-journal/rig.ts';

/** Being created, without a request that is unclear. */
function stateWith({ isSent = false, isAlone = true }: { isSent?: boolean; isAlone?: boolean }): IntentState {
  const begun = anythingSent(callsFound(-Infinity, { nowMs: 0, maxCallMs: 0 }), { isAlone });
  return creating({ ...begun, saves: { ...begun.saves, isSent } });
}

/** An attempt of this process, begun at version 100 under a durable record, and a log that was listed there. */
function scene(changes: Partial<Intent> = {}, { cacheVersion = '100' } = {}) {
  const log = new VolumeLog({ storageKeys: ({ spec }) => [spec.csi?.volumeHandle ?? ''] });
  log.usedBy({ neededVersions: () => [100], neededStorageVersions: () => [100], lostHistory: () => undefined });
  log.listed('100', { rewound: false });
  const intent = {
    ...newIntent(recordOf(1, { handle: 'h' })),
    state: stateWith({}),
    since: 100,
    firstSince: 100,
    ...changes,
  };
  // `check` sends nothing: it needs the log, the version of the cache and the keys of handles
  const parts = {
    log,
    volumes: { version: cacheVersion },
    provisioner: { handleKey: (handle: string) => handle },
  };
  const guard = new DeletionGuard(parts as unknown as DeletionGuardOptions);
  return { log, intent, check: () => guard.check(intent, 'h') };
}

function volume(name: string, version: number, volumeHandle: string): PersistentVolume {
  return {
    metadata: { name, resourceVersion: String(version) },
    spec: { csi: { driver: 'drv', volumeHandle } },
  };
}

function refusedAs(kind: Refusal['kind']): (error: Error) => boolean {
  return (error) => error instanceof DeletionRefusedError && error.refusal.kind === kind;
}

describe('an attempt of this process whose PersistentVolume was never sent', () => {
  test('is proved though the history is lost, but not while it is still to be read', () => {
    const { log, check } = scene();
    log.listed('200', { rewound: false }); // the watch was interrupted
    assert.throws(check, refusedAs('pending'));
    log.lose(100, 200, 'the API server has forgotten it');
    check();
  });

  test('is not proved once a PersistentVolume of its name was seen all the same', () => {
    const { log, intent, check } = scene();
    log.changed('ADDED', volume(intent.record.volume.name, 110, 'h'));
    assert.throws(check, refusedAs('seen'));
  });

  test('is not proved once another PersistentVolume was seen with its storage', () => {
    const { log, check } = scene();
    log.changed('ADDED', volume('imported', 110, 'h'));
    assert.throws(check, refusedAs('unproved'));
  });
});

for (const [what, changes] of [
  ['whose PersistentVolume was sent', { state: stateWith({ isSent: true }) }],
  ['whose record others may have taken over, or could not be written first', { state: stateWith({ isAlone: false }) }],
  ['of which it is not known since when it could have had one', { since: NaN }],
] as const) {
  test(`an attempt ${what} needs the history`, () => {
    const { log, check } = scene(changes);
    log.listed('200', { rewound: false });
    assert.throws(check, refusedAs('since' in changes ? 'unproved' : 'pending'));
    log.lose(100, 200, 'the API server has forgotten it');
    assert.throws(check, refusedAs('unproved'));
  });
}

test('an attempt whose history was read is proved, whoever has begun it', () => {
  const { log, check } = scene({ state: stateWith({ isSent: true, isAlone: false }) });
  log.listed('200', { rewound: false });
  log.close(100, 200);
  check();
});

test('an attempt is not proved by a cache that lacks what was seen of its storage before the attempt began', () => {
  const { log, check } = scene({}, { cacheVersion: '50' });
  log.note(volume('imported', 80, 'h')); // the live look in the cache does not find it
  assert.throws(check, refusedAs('unproved'));
});
