/** Encoded answers of an ordinary driver, for servers without a gRPC library. */
import { loadCsi } from '../../../src/csi/csi-proto.ts';
import { driverName } from '../../support/api-scene.ts';

type Methods = Record<string, { response: { encode: (message: object) => Buffer } }>;

const { Identity, Controller } = loadCsi().v1;
const methods = { ...Identity, ...Controller } as unknown as Methods;

/** One message as the driver would send it. */
export function encoded(method: string, message: object): Buffer {
  const found = methods[method];
  if (found === undefined) throw new Error(`there is no call ${method}`);
  return found.response.encode(message);
}

/** What an ordinary driver says while a program starts. */
export const startAnswers: Record<string, Buffer> = {
  Probe: encoded('Probe', { ready: { value: true } }),
  GetPluginInfo: encoded('GetPluginInfo', { name: driverName, vendor_version: '1' }),
  GetPluginCapabilities: encoded('GetPluginCapabilities', {
    capabilities: [{ service: { type: 'CONTROLLER_SERVICE' } }],
  }),
  ControllerGetCapabilities: encoded('ControllerGetCapabilities', {
    capabilities: [{ rpc: { type: 'CREATE_DELETE_VOLUME' } }],
  }),
};

/** The answer to CreateVolume: 1Gi under this id. */
export const createdVolume = (id: string): Buffer =>
  encoded('CreateVolume', { volume: { volume_id: id, capacity_bytes: '1073741824' } });
