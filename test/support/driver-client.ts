import { credentials, makeClientConstructor, type ServiceError } from '@grpc/grpc-js';
import { loadCsi } from '../../src/csi/csi-proto.ts';
import type { ControllerClient } from '../../src/csi/generated/csi/v1/Controller.ts';
import type { CreateSnapshotResponse__Output } from '../../src/csi/generated/csi/v1/CreateSnapshotResponse.ts';
import type { CreateVolumeResponse__Output } from '../../src/csi/generated/csi/v1/CreateVolumeResponse.ts';
import { grpcService } from './grpc-service.ts';

/** Calls that a test makes to the driver, past the sidecar: what a snapshotter or an administrator would do. */
export interface DriverClient extends Disposable {
  /** Makes a snapshot and gives its id. */
  createSnapshot(name: string, volumeId: string): Promise<string>;
  /** Makes a filesystem volume of 1 GiB and gives its id. */
  createVolume(name: string, parameters?: Record<string, string>): Promise<string>;
  deleteVolume(volumeId: string): Promise<void>;
}

/** Connects to the driver at `unix:///...`. */
export function connectDriver(address: string): DriverClient {
  const Controller = makeClientConstructor(grpcService(loadCsi().v1.Controller), 'Controller');
  const controller = new Controller(address, credentials.createInsecure()) as unknown as ControllerClient;
  return {
    async createSnapshot(name, volumeId) {
      const { promise, answer } = unary<CreateSnapshotResponse__Output>();
      controller.CreateSnapshot({ name, source_volume_id: volumeId }, answer);
      return (await promise).snapshot?.snapshot_id ?? '';
    },
    async createVolume(name, parameters = {}) {
      const { promise, answer } = unary<CreateVolumeResponse__Output>();
      const capability = { mount: {}, access_mode: { mode: 'SINGLE_NODE_WRITER' } } as const;
      controller.CreateVolume(
        { name, capacity_range: { required_bytes: String(2 ** 30) }, volume_capabilities: [capability], parameters },
        answer,
      );
      return (await promise).volume?.volume_id ?? '';
    },
    async deleteVolume(volumeId) {
      const { promise, answer } = unary();
      controller.DeleteVolume({ volume_id: volumeId }, answer);
      await promise;
    },
    [Symbol.dispose]: () => controller.close(),
  };
}

function unary<T>() {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const answer = (error: ServiceError | null, value?: T): void => {
    if (error === null && value !== undefined) resolve(value);
    else reject(error ?? new Error('an answer without content'));
  };
  return { promise, answer };
}
