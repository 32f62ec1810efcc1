import { classNames } from './register-driver.ts';
import type { LocalCluster } from './cluster.ts';

/** A claim to begin with, as kubectl takes it. */
export const exampleClaim = `apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: photos
spec:
  accessModes: [ReadWriteOnce]
  resources:
    requests:
      storage: 1Gi
`;

/** What somebody at a terminal needs to go on. */
export function banner(cluster: LocalCluster, { manifest, rbac }: { manifest: string; rbac: boolean }): string {
  const { driver, driverSocket, kubeconfig, logFiles, url, volumesFolder } = cluster;
  const segments = Object.entries(driver.node?.segments ?? {}).map(([key, value]) => `${key}=${value}`);
  const place =
    driver.node === undefined
      ? 'no node service: the nodes carry no topology of it'
      : `node id ${driver.node.id}, ${segments.length === 0 ? 'no topology' : segments.join(', ')}`;
  const access = rbac
    ? `authorization as a cluster's: this kubeconfig may do everything, the sidecar what deploy/base/rbac.yaml grants`
    : `everybody may do everything; --rbac for a cluster's authorization`;
  return `
A Kubernetes API with a CSI driver and the csi-provisioner sidecar is up at ${url}

  driver   ${driver.name} ${driver.version} at ${driverSocket}
           ${place}
  classes  ${classNames.immediate} (default), ${classNames.late} (waits for the first pod)
  access   ${access}
  logs     ${logFiles.join('\n           ')}

In another terminal:

  export KUBECONFIG=${kubeconfig}
  kubectl apply -f ${manifest}
  kubectl get pvc,pv
  kubectl describe pvc photos
${volumesFolder === undefined ? '' : `  ls ${volumesFolder}\n`}  kubectl delete pvc photos

Ctrl-C ends it and removes everything.
`;
}
