/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
/** An admission webhook of a real API server that does to the sidecar's requests whatever a test wants. */
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { AdmissionregistrationV1Api } from '@kubernetes/client-node';
import { CertificateAuthority } from '../../sandbox/api/certificates.ts';
import { loadKubeconfig } from './admin.ts';
import type { Cluster } from './cluster.ts';

/** What a request asks for, as the API server tells a webhook (Kubernetes, "Dynamic Admission Control"). */
export interface AdmissionRequest {
  operation: 'CREATE' | 'UPDATE' | 'DELETE';
  resource: { resource: string };
  name?: string;
  object?: { metadata: { name: string; annotations?: Record<string, string>; finalizers?: string[] } };
}

export interface AdmissionDecision {
  /** Refuses the request with this Status. */
  deny?: { code?: number; reason?: string; message?: string };
  /** A JSON patch of the object. */
  patch?: { op: 'add' | 'remove' | 'replace'; path: string; value?: unknown }[];
  /** Milliseconds until the answer. */
  delayMs?: number;
}

/** Undefined: the request passes as it is. */
export type AdmissionRule = (request: AdmissionRequest) => AdmissionDecision | undefined;

export interface AdmissionWebhook extends AsyncDisposable {
  /** Replaces what it does; at first every request passes. */
  decide(rule: AdmissionRule): void;
}

const sidecarUser = 'system:serviceaccount:default:csi-provisioner';

/** Registers a webhook for all that the sidecar writes, and waits until the API server asks it. */
export async function startAdmissionWebhook(cluster: Cluster, name: string): Promise<AdmissionWebhook> {
  const authority = new CertificateAuthority({ nowMs: Date.now() });
  let decide: AdmissionRule = () => undefined;
  const server = createServer(authority.server(), (request, response) => {
    void answer(request, response, (asked) => decide(asked));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const api = loadKubeconfig(cluster.adminKubeconfig).makeApiClient(AdmissionregistrationV1Api);
  await api.createMutatingWebhookConfiguration({
    body: {
      metadata: { name },
      webhooks: [
        {
          name: `${name}.example.com`,
          admissionReviewVersions: ['v1'],
          sideEffects: 'None',
          timeoutSeconds: 30,
          failurePolicy: 'Fail',
          clientConfig: {
            url: `https://127.0.0.1:${port}/`,
            caBundle: Buffer.from(authority.cert).toString('base64'),
          },
          matchConditions: [{ name: 'sidecar', expression: `request.userInfo.username == "${sidecarUser}"` }],
          rules: [
            {
              apiGroups: ['', 'coordination.k8s.io'],
              apiVersions: ['*'],
              operations: ['CREATE', 'UPDATE', 'DELETE'],
              resources: ['persistentvolumes', 'persistentvolumeclaims', 'events', 'leases'],
            },
          ],
        },
      ],
    },
  });
  return {
    decide(rule) {
      decide = rule;
    },
    async [Symbol.asyncDispose]() {
      await api.deleteMutatingWebhookConfiguration({ name });
      server.closeAllConnections();
      server.close();
    },
  };
}

async function answer(request: IncomingMessage, response: ServerResponse, decide: AdmissionRule): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const review = JSON.parse(Buffer.concat(chunks).toString()) as { request: AdmissionRequest & { uid: string } };
  const { deny, patch, delayMs = 0 } = decide(review.request) ?? {};
  if (delayMs > 0) await delay(delayMs);
  const decision = {
    uid: review.request.uid,
    allowed: deny === undefined,
    ...(deny !== undefined && { status: deny }),
    ...(patch !== undefined && {
      patchType: 'JSONPatch',
      patch: Buffer.from(JSON.stringify(patch)).toString('base64'),
    }),
  };
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response: decision }));
}
