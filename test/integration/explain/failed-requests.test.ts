/**
 * The whole program whose requests to the API server fail: page, event, log, metrics and `why` name the same cause and cure, by what the
 * response was and not by its words.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { FaultAction, FaultMatch, InjectedFault } from '../../../sandbox/api/faults.ts';
import { explainWhy } from '../../../src/cli/why.ts';
import type { Explanation } from '../../../src/explain/explanation.ts';
import { eventually } from '../../support/eventually.ts';
import { resource } from '../../support/api-scene.ts';
import { Scene } from '../csi/scene.ts';
import { freePort } from '../../support/free-ports.ts';

const secret = {
  'csi.storage.k8s.io/provisioner-secret-name': 'key',
  'csi.storage.k8s.io/provisioner-secret-namespace': 'ns1',
};
const saving = { verb: 'create', resource: 'persistentvolumes' };
const reading = { verb: 'get', resource: 'secrets' };

interface Row {
  title: string;
  match: FaultMatch;
  action: FaultAction;
  cause: 'api-server' | 'rejected';
  cure: RegExp;
}

const rows: readonly Row[] = [
  {
    title: 'a volume that etcd does not store',
    match: saving,
    action: { type: 'status', code: 500, reason: 'InternalError', message: 'etcdserver: leader changed' },
    cause: 'api-server',
    cure: /^Usually nothing: .* is sent again/,
  },
  {
    title: 'a volume whose server speaks of a policy while it fails',
    match: saving,
    action: {
      type: 'status',
      code: 500,
      reason: 'InternalError',
      message: 'policy cache is forbidden: not ready',
    },
    cause: 'api-server',
    cure: /^Usually nothing: .* is sent again/,
  },
  {
    title: 'a volume whose webhook does not respond',
    match: saving,
    action: {
      type: 'status',
      code: 500,
      reason: 'InternalError',
      message: 'Internal error occurred: failed calling webhook "w.example.com": no endpoints available',
    },
    cause: 'api-server',
    cure: /^See whether the webhook .* runs/,
  },
  {
    title: 'a volume that a webhook denies, with the code of a broken server',
    match: saving,
    action: {
      type: 'status',
      code: 500,
      reason: 'InternalError',
      message: 'admission webhook "w.example.com" denied the request: etcdserver: leader changed',
    },
    cause: 'rejected',
    cure: /such as a policy or a webhook$/,
  },
  {
    title: 'a volume that a policy forbids',
    match: saving,
    action: {
      type: 'status',
      code: 422,
      reason: 'Invalid',
      message: 'ValidatingAdmissionPolicy "p" denied request: by house rules',
    },
    cause: 'rejected',
    cure: /such as a policy or a webhook$/,
  },
  {
    title: 'a volume that is rejected in words that nobody knows',
    match: saving,
    action: { type: 'status', code: 400, reason: 'BadRequest', message: 'the request is of an unknown form' },
    cause: 'rejected',
    cure: /such as a policy or a webhook$/,
  },
  {
    title: 'a volume that exceeds a quota',
    match: saving,
    action: {
      type: 'status',
      code: 403,
      reason: 'Forbidden',
      message: 'persistentvolumes "v" is forbidden: exceeded quota: q, requested: count/persistentvolumes=1',
    },
    cause: 'rejected',
    cure: /^Raise the quota/,
  },
  {
    title: 'a volume that the account may not create',
    match: saving,
    action: {
      type: 'status',
      code: 403,
      reason: 'Forbidden',
      message: 'persistentvolumes is forbidden: User "u" cannot create resource "persistentvolumes"',
    },
    cause: 'rejected',
    cure: /^Permit the provisioner .* its log has the rule/,
  },
  {
    title: 'a Secret that etcd does not return',
    match: reading,
    action: { type: 'status', code: 500, reason: 'InternalError', message: 'etcdserver: secrets "key" not found yet' },
    cause: 'api-server',
    cure: /^Usually nothing: .* is sent again/,
  },
  {
    title: 'a Secret that a proxy does not return',
    match: reading,
    action: { type: 'htmlBody', code: 502 },
    cause: 'api-server',
    cure: /^Usually nothing: .* what is between it and the provisioner$/,
  },
];

async function opened({ match, action }: Row) {
  const port = await freePort();
  let fault: InjectedFault | undefined;
  const scene = await Scene.start({
    flags: [`--http-endpoint=127.0.0.1:${port}`, '--status-page', '--retry-interval-max=1s', '--logging-format=json'],
    parameters: match === reading ? secret : {},
    objects: [
      { apiVersion: 'v1', kind: 'Secret', metadata: { namespace: 'ns1', name: 'key' }, data: { user: 'YQ==' } },
    ],
    onServer: ({ faults }) => {
      fault = faults.add({ match, action });
    },
  });
  const read = async (path: string): Promise<string> => await (await fetch(`http://127.0.0.1:${port}${path}`)).text();
  return { scene, read, repaired: () => fault?.remove() };
}

async function why({ url }: Scene, object: string): Promise<Explanation> {
  const written: string[] = [];
  await explainWhy({
    program: 'csi-provisioner why',
    args: [object, '-o', 'json', `--master=${url}`],
    environment: {},
    stdin: process.stdin,
    stdout: { write: (text) => written.push(text) },
    stderr: { write: () => undefined },
    signal: AbortSignal.timeout(60_000),
  });
  return JSON.parse(written.join('')) as Explanation;
}

describe('a failed request', () => {
  for (const row of rows) {
    test(`about ${row.title} is ${row.cause} in all places, and forgotten once it succeeds`, async () => {
      const { scene, read, repaired } = await opened(row);
      await using _scene = scene;
      scene.addClaim();
      await scene.event('ProvisioningFailed');
      const annotations = scene.api
        .list(resource.events)
        .filter(({ reason }) => reason === 'ProvisioningFailed')
        .map(({ metadata }) => metadata.annotations);
      for (const each of annotations) assert.deepEqual(each, { 'csi-provisioner/cause': row.cause });
      const line = scene.program.lines.findLast((each) => each.includes('"cure":')) ?? '';
      const logged = JSON.parse(line) as { cause: string; cure: string };
      assert.equal(logged.cause, row.cause);
      assert.match(logged.cure, row.cure);
      await eventually(async () => {
        const page = await read('/status?claim=ns1/c1');
        assert.match(page, new RegExp(`<dt>Cause<dd><b>(waiting|stuck): ${row.cause}</b>`));
        assert.ok(page.includes(logged.cure.replaceAll("'", '&#39;')), page);
      });
      const { verdict, cause, cure } = await why(scene, 'ns1/c1');
      assert.deepEqual(
        { verdict, cause, cure },
        { verdict: row.cause === 'rejected' ? 'stuck' : 'waiting', cause: logged.cause, cure: logged.cure },
      );
      await eventually(async () =>
        assert.match(await read('/metrics'), new RegExp(`^failing_claims\\{cause="${row.cause}"\\} 1$`, 'm')),
      );
      repaired();
      await scene.volume();
    });
  }
});
