import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { csi } from '../../support/csi-rig.ts';

const { encode, decode } = csi.v1.Controller.CreateVolume.response;

const volume = (id: string, context: Record<string, string> = {}): Buffer =>
  encode({ volume: { volume_id: id, volume_context: context, capacity_bytes: '300' } });

/** The message with one byte of a text changed to one that no UTF-8 text has. */
function spoiled(message: Buffer, text: string): Buffer {
  const at = message.indexOf(text);
  assert.ok(at > 0);
  const copy = Buffer.from(message);
  copy.writeUInt8(0xff, at);
  return copy;
}

describe('decoding a message', () => {
  const kept = ['vol-1', 'größe/ü', '\uFFFD', 'a\uFFFDb\uFFFD', '日本'];
  for (const id of kept) {
    test(`leaves ${JSON.stringify(id)} as it is`, () => {
      const answer = decode(volume(id, { [id]: id }));
      assert.equal(answer.volume?.volume_id, id);
      assert.deepEqual(answer.volume.volume_context, { [id]: id });
    });
  }

  const refused = [
    { where: 'an id', message: spoiled(volume('vol-1'), 'vol-1') },
    { where: 'a key of a map', message: spoiled(volume('v', { pool: 'a' }), 'pool') },
    { where: 'a value of a map', message: spoiled(volume('v', { pool: 'gold' }), 'gold') },
    { where: 'an id, beside a replacement character that was sent', message: spoiled(volume('vol-\uFFFD'), 'vol') },
  ];
  for (const { where, message } of refused) {
    test(`refuses bytes that are not UTF-8 in ${where}`, () => {
      assert.throws(() => decode(message), {
        message: 'string field contains invalid UTF-8',
      });
    });
  }
});
