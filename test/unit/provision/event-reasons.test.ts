import assert from 'node:assert/strict';
import { test } from 'node:test';
import { textMeaning } from '../../../src/explain/causes/causes.ts';
import type { Recorder, RecordOptions } from '../../../src/kube/events/event-recorder.ts';
import { causeKey, failedReason, withCures } from '../../../src/provision/event-reasons.ts';

/** The options of what is recorded. */
function collected(): { recorder: Recorder; options: (RecordOptions | undefined)[] } {
  const options: (RecordOptions | undefined)[] = [];
  const recorder: Recorder = { event: (_about, _type, _reason, _message, each) => void options.push(each) };
  return { recorder: withCures(recorder, textMeaning), options };
}

test('each failure names its cause: an aggregate would keep that of the failure before', () => {
  const { recorder, options } = collected();
  const text = 'Error creating provisioned PV object for claim ns/c: PersistentVolume "a" exists already and is for it';
  recorder.event({}, 'Warning', failedReason, text, { once: true });
  assert.deepEqual(options, [{ once: true, annotations: { [causeKey]: 'name-taken' } }]);
});

test('the cause that a caller names stays, and an event about no failure names none', () => {
  const { recorder, options } = collected();
  const annotations = { [causeKey]: 'api-server' };
  recorder.event({}, 'Warning', failedReason, 'no response', { annotations });
  recorder.event({}, 'Normal', 'Provisioning', 'External provisioner is provisioning volume');
  assert.deepEqual(options, [{ annotations }, undefined]);
});
