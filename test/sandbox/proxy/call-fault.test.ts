import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseFault, parseFaults } from '../../../sandbox/proxy/call-fault.ts';

describe('a fault', () => {
  test('has a method, an action and a count, without which it spoils all calls, and kills at the first', () => {
    assert.deepEqual(parseFaults('# comment\n\nCreateVolume:drop:1\n  *:delay=1.5s\nProbe:late=20ms:3\n'), [
      { method: 'CreateVolume', action: { kind: 'drop' }, left: 1 },
      { method: '*', action: { kind: 'delay', ms: 1500 }, left: Infinity },
      { method: 'Probe', action: { kind: 'late', ms: 20 }, left: 3 },
    ]);
    assert.deepEqual(parseFault('DeleteVolume:code=UNAVAILABLE'), {
      method: 'DeleteVolume',
      action: { kind: 'code', code: 'UNAVAILABLE' },
      left: Infinity,
    });
    assert.equal(parseFault('CreateVolume:kill').left, 1);
    assert.equal(parseFault('CreateVolume:kill:4').left, 4);
  });

  for (const [text, message] of [
    ['CreateVolume', '"CreateVolume" is not METHOD:ACTION[:COUNT], such as CreateVolume:drop:1'],
    ['CreateVolume:drop:1:2', '"CreateVolume:drop:1:2" is not METHOD:ACTION[:COUNT], such as CreateVolume:drop:1'],
    ['createVolume:drop', /^"createVolume" is no call of CSI: it must be one of \*, .*CreateVolume/],
    ['CreateVolume:lose', /^"lose" is no action: it must be drop, delay=DURATION, /],
    ['CreateVolume:drop=1', /^"drop=1" is no action/],
    ['CreateVolume:delay', /^"delay" is no action/],
    ['CreateVolume:delay=5', '"5" is no duration such as 5s'],
    ['CreateVolume:late=-5s', '"-5s" is no duration such as 5s'],
    ['CreateVolume:code=OK', /^"code=OK" is no action/],
    ['CreateVolume:drop:0', '"0" is no count of calls, which is a whole number from 1'],
  ] as const) {
    test(`is refused: ${text}`, () => {
      assert.throws(() => parseFault(text), { name: 'CallFaultError', message });
    });
  }
});
