import type { RequestInfo } from '../../../src/kube/client/api-error.ts';

export const resource = {
  group: 'storage.k8s.io',
  version: 'v1',
  plural: 'storageclasses',
  kind: 'StorageClass',
  namespaced: false,
};
export const update: RequestInfo = { verb: 'update', resource, name: 'fast' };
export const create: RequestInfo = { verb: 'create', resource, name: 'fast' };
