/** What the sidecar keeps of VolumeAttachments: one for each volume that is in use. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { silentLogger } from '../../../src/base/logger.ts';
import { attachmentInformer, attachmentsByVolume, volumeAttachments } from '../../../src/csi/attachments.ts';
import { objectKey, resourcePath } from '../../../src/kube/kube-object.ts';
import { encodeList, encodeMessage } from '../../support/protobuf-encoding.ts';
import { noReflectorMetrics } from '../../support/no-metrics.ts';
import { Rig } from '../kube/rig.ts';

const metadata = {
  name: 'csi-1',
  uid: 'u',
  resourceVersion: '7',
  annotations: { 'csi.alpha.kubernetes.io/node-id': 'n' },
  finalizers: ['external-attacher/drv-example-com'],
};
const spec = { attacher: 'drv.example.com', nodeName: 'n1', source: { persistentVolumeName: 'pv-1' } };
const status = { attached: true, attachmentMetadata: { password: 'hush' } };
const answers = {
  JSON: {
    type: 'application/json',
    body: JSON.stringify({
      kind: 'VolumeAttachmentList',
      metadata: { resourceVersion: '9' },
      items: [{ metadata, spec, status }],
    }),
  },
  protobuf: {
    type: 'application/vnd.kubernetes.protobuf',
    body: encodeList('VolumeAttachmentList', { resourceVersion: '9' }, [
      encodeMessage('VolumeAttachment', { metadata, spec, status }),
    ]),
  },
};

describe('the cache of attachments', () => {
  for (const [coding, { type, body }] of Object.entries(answers)) {
    test(`keeps of one in ${coding} the node and the volume, and nothing that its attacher wrote`, async () => {
      await using rig = await Rig.start();
      rig.server.otherwise((reply, { path, query }) => {
        if (path !== resourcePath(volumeAttachments, {}) || query.get('sendInitialEvents') !== null) {
          reply.status(422, 'Invalid');
        } else if (query.get('watch') !== null) reply.open({ contentType: type });
        else reply.text(200, body, { headers: { 'content-type': type } });
      });
      const { transport, clock } = rig;
      const attachments = attachmentInformer({ transport, clock, logger: silentLogger, metrics: noReflectorMetrics });
      const stop = new AbortController();
      const run = attachments.run(stop.signal);
      await rig.clock.until(() => attachments.hasSynced);
      const [attachment] = attachments.byIndex(attachmentsByVolume, 'pv-1');
      assert.ok(attachment !== undefined);
      assert.equal(objectKey(attachment), 'csi-1');
      assert.deepEqual(JSON.parse(JSON.stringify(attachment)), {
        metadata: { name: 'csi-1', uid: 'u', resourceVersion: '7' },
        spec: { nodeName: 'n1', source: { persistentVolumeName: 'pv-1' } },
      });
      stop.abort(new Error('the test is over'));
      await run;
    });
  }
});
