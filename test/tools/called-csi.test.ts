import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import protobuf from 'protobufjs';
import { calledCsiDescriptor } from '../../scripts/called-csi.ts';
import { csiDescriptor } from '../../src/csi/csi-proto-source.ts';

const whole = protobuf.Root.fromJSON(csiDescriptor()).resolveAll();
const called = protobuf.Root.fromJSON(calledCsiDescriptor()).resolveAll();

describe('the part of CSI in the bundle', () => {
  const calls = {
    Identity: ['GetPluginInfo', 'GetPluginCapabilities', 'Probe'],
    Controller: [
      'CreateVolume',
      'DeleteVolume',
      'ListVolumes',
      'GetCapacity',
      'ControllerGetCapabilities',
      'ControllerGetVolume',
    ],
    Node: ['NodeGetInfo'],
  };
  for (const [service, methods] of Object.entries(calls)) {
    test(`has the calls of ${service} that a provisioner makes, and no others`, () => {
      const found = called.lookupService(`csi.v1.${service}`).methodsArray.map(({ name }) => name);
      assert.deepEqual(found.toSorted(), methods.toSorted());
    });
  }

  test('has these calls and their messages as CSI defines them, secrets marked', () => {
    for (const service of Object.keys(calls)) {
      for (const method of called.lookupService(`csi.v1.${service}`).methodsArray) {
        const original = whole.lookup(method.fullName) as protobuf.Method;
        assert.deepEqual(method.toJSON(), original.toJSON());
      }
    }
    const messages = typesIn(called);
    assert.ok(messages.some(({ name }) => name === 'CreateVolumeRequest'));
    for (const message of messages) {
      assert.deepEqual(message.toJSON(), whole.lookupType(message.fullName).toJSON(), message.fullName);
    }
    const { secrets } = called.lookupType('csi.v1.CreateVolumeRequest').fields;
    assert.equal(secrets?.options?.['(csi_secret)'], true);
  });

  test('has nothing of nodes, snapshots and volume groups', () => {
    for (const name of ['NodeStageVolumeRequest', 'CreateSnapshotRequest', 'GroupController', 'SnapshotMetadata']) {
      assert.ok(whole.lookup(`csi.v1.${name}`), name);
      assert.equal(called.lookup(`csi.v1.${name}`), null, name);
    }
  });
});

/** All messages, nested ones too. */
function typesIn(namespace: protobuf.NamespaceBase): protobuf.Type[] {
  return namespace.nestedArray.flatMap((nested) => [
    ...(nested instanceof protobuf.Type ? [nested] : []),
    ...(nested instanceof protobuf.Namespace ? typesIn(nested) : []),
  ]);
}
