/** `npm run sandbox`: the demo's cluster, left standing until Ctrl-C. */
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { driverName, startLocalCluster } from './local-cluster.ts';

/** A class and a claim to begin with, as kubectl takes them. */
const example = `apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: fast
provisioner: ${driverName}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: photos
spec:
  storageClassName: fast
  accessModes: [ReadWriteOnce]
  resources:
    requests:
      storage: 5Gi
`;

await using cluster = await startLocalCluster({ onStarted: (what, pid) => console.log(`${what}: process ${pid}`) });
const manifest = path.join(cluster.folder, 'example.yaml');
await writeFile(manifest, example);
console.log(`
A Kubernetes API with a CSI driver and the sidecar is up. In another terminal:

  export KUBECONFIG=${cluster.kubeconfig}
  kubectl apply -f ${manifest}
  kubectl get pvc,pv
  kubectl describe pvc photos
  ls ${cluster.volumesFolder}
  kubectl delete pvc photos

Ctrl-C ends it and removes everything.`);
await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
