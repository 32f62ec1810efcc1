import { status } from '@grpc/grpc-js';
import { csiServices } from '../csi-services.ts';
import type { CodeName } from '../hostpath/call-error.ts';
import type { ObservedCall } from '../proxy/call-proxy.ts';
import type { CreateVolumeRequest, Responses } from './csi-messages.ts';
import type { Ledger } from './ledger.ts';

/** What a sidecar had a driver do. */
export interface SidecarCalls {
  /** By the name of CreateVolume, the id. */
  readonly made: ReadonlyMap<string, string>;
  /** Ids. */
  readonly deleted: ReadonlySet<string>;
  readonly observe: (call: ObservedCall) => void;
}

/** Keeps what a sidecar has a driver do, also in the ledger, as volumes of a claim that is given up must go. */
export function sidecarCalls(ledger: Ledger): SidecarCalls {
  const { CreateVolume, DeleteVolume } = csiServices()['csi.v1.Controller'] ?? {};
  const made = new Map<string, string>();
  const deleted = new Set<string>();
  const observe = ({ path, request, response, code }: ObservedCall): void => {
    if (request === undefined) return;
    if (path === CreateVolume?.path) {
      const asked = CreateVolume.requestDeserialize(request) as CreateVolumeRequest;
      if (code !== 0 || response === undefined) {
        ledger.failed(asked, code === 0 ? 'UNKNOWN' : (status[code] as CodeName)); // nobody has seen the response
        return;
      }
      const { volume = {} } = CreateVolume.responseDeserialize(response) as Responses['CreateVolume'];
      made.set(asked.name, volume.volume_id ?? '');
      ledger.exists(asked.name, volume);
    } else if (path === DeleteVolume?.path && code === 0) {
      const { volume_id: id = '' } = DeleteVolume.requestDeserialize(request) as { volume_id?: string };
      deleted.add(id);
      ledger.volumes.delete(id);
    }
  };
  return { made, deleted, observe };
}
