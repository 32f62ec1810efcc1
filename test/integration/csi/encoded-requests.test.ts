/** The very bytes that a driver gets from the whole program. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createdVolume, startAnswers } from './encoded-answers.ts';
import { answerWith, RawGrpcServer } from './raw-grpc-server.ts';
import { Scene } from './scene.ts';

const hex = (text: string): string => Buffer.from(text).toString('hex');
const length = (text: string): string => text.length.toString(16).padStart(2, '0');

describe('a request to the driver', () => {
  for (const { mode, accessType } of [
    { mode: 'Filesystem', accessType: '1200' }, // an empty `mount`
    { mode: 'Block', accessType: '0a00' }, // an empty `block`
  ]) {
    test(`for a ${mode} volume of nothing but a size has no empty field`, async () => {
      await using raw = await RawGrpcServer.start((call) =>
        answerWith(
          call,
          call.method === 'CreateVolume' ? createdVolume('vol-1') : (startAnswers[call.method] ?? Buffer.alloc(0)),
        ),
      );
      await using scene = await Scene.start({ socketPath: raw.socketPath });
      scene.addClaim('c1', { volumeMode: mode });
      const volume = await scene.volume();
      const { name } = volume.metadata;
      assert.equal(
        raw.callsOf('CreateVolume')[0]?.request.toString('hex'),
        `0a${length(name)}${hex(name)}` + // name
          '1206' +
          '088080808004' + // capacity_range: required_bytes of 1Gi
          `1a06${accessType}` +
          '1a020801', // volume_capabilities: access_type, SINGLE_NODE_WRITER
      );
      scene.release(volume);
      await scene.volumeDeleted();
      assert.equal(raw.callsOf('DeleteVolume')[0]?.request.toString('hex'), `0a05${hex('vol-1')}`);
    });
  }
});
