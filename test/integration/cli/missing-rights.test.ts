/** The whole program without one of its rights: what log, readiness, metrics and events say, and that it recovers. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { FaultMatch, InjectedFault } from '../../../sandbox/api/faults.ts';
import { eventually } from '../../support/eventually.ts';
import { Scene } from '../csi/scene.ts';
import { freePort } from '../../support/free-ports.ts';

/** The scene without a right; `granted` gives it back. */
async function sceneWithout(match: FaultMatch, message: string, flags: readonly string[] = []) {
  const port = await freePort();
  let fault: InjectedFault | undefined;
  const scene = await Scene.start({
    flags: [`--http-endpoint=127.0.0.1:${port}`, ...flags],
    onServer: ({ faults }) => {
      fault = faults.add({ match, action: { type: 'status', code: 403, reason: 'Forbidden', message } });
    },
  });
  const read = async (path: string): Promise<{ status: number; text: string }> => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`);
    return { status: response.status, text: await response.text() };
  };
  const count = async (): Promise<string | undefined> => {
    const { text } = await read('/metrics');
    const line = `reflector_errors_total\\{resource="${match.resource}",reason="Forbidden"\\} (\\d+)`;
    return new RegExp(`^${line}$`, 'm').exec(text)?.[1];
  };
  return { scene, read, count, granted: () => fault?.remove() };
}

const rules = (scene: Scene): string[] => scene.program.lines.filter((line) => line.includes('Not permitted'));

describe('without the right to create volumes', () => {
  const message =
    'persistentvolumes is forbidden: User "u" cannot create resource "persistentvolumes" in API group "" at the cluster scope';

  test('the claim has an event, the log has the rule once and the process ends without waiting', async () => {
    const { scene, count } = await sceneWithout({ verb: 'create', resource: 'persistentvolumes' }, message);
    await using _scene = scene;
    for (const name of ['c1', 'c2', 'c3']) scene.addClaim(name);
    for (const name of ['c1', 'c2', 'c3']) {
      const failed = await scene.event('ProvisioningFailed', name);
      assert.equal(failed.type, 'Warning');
      assert.ok(failed.message.includes(message), failed.message);
    }
    assert.equal(await count(), '18', 'six tries of each, as a server that has just started may forbid everything');
    const [line, ...more] = rules(scene);
    assert.deepEqual(more, []);
    assert.ok(
      line?.endsWith(
        ' addRule=<\n' +
          '  - apiGroups: [""]\n' +
          '    resources: ["persistentvolumes"]\n' +
          '    verbs: ["get", "list", "watch", "create", "patch", "delete"]\n' +
          ' >\n',
      ),
      line,
    );
    scene.program.signal('SIGTERM');
    assert.deepEqual(await scene.program.ended, { code: 0 });
    assert.equal(scene.program.lines.filter((each) => each.includes('Ended before a volume could be saved')).length, 3);
  });
});

describe('without the right to the lease', () => {
  for (const verb of ['get', 'create', 'update']) {
    test(`to ${verb} it, an instance is not ready and says why, until the right is granted`, async () => {
      const message = `leases.coordination.k8s.io is forbidden: User "u" cannot ${verb} resource "leases"`;
      const { scene, read, count, granted } = await sceneWithout({ verb, resource: 'leases' }, message, [
        '--leader-election',
        '--leader-election-namespace=ns1',
        '--leader-election-lease-duration=30s',
        '--leader-election-renew-deadline=20s',
        '--leader-election-retry-period=500ms',
      ]);
      await using _scene = scene;
      if (verb === 'update') {
        const metadata = { name: 'd-example-com', namespace: 'ns1' };
        scene.api.create({ group: 'coordination.k8s.io', version: 'v1', plural: 'leases' }, { metadata, spec: {} });
      }
      const notReady = `internal server error: not permitted to hold the lease ns1/d-example-com: ${message}\n`;
      await eventually(async () => assert.deepEqual(await read('/readyz'), { status: 500, text: notReady }));
      await eventually(async () => assert.ok(Number(await count()) >= 2, 'it goes on trying'));
      assert.equal(rules(scene).length, 1);
      assert.match(rules(scene)[0] ?? '', /verbs: \["get", "list", "watch", "create", "update"\]/);
      assert.deepEqual(
        scene.program.lines.filter((line) => /^E.*leas/.test(line) && !line.includes('Not permitted')),
        [],
        'the rule alone is logged as an error',
      );
      granted();
      await eventually(async () => assert.equal((await read('/readyz')).text, 'ok'));
    });
  }
});

describe('without the right to record events', () => {
  test('the missing right is counted and reported once, and volumes are made', async () => {
    const { scene, count } = await sceneWithout({ verb: 'create', resource: 'events' }, 'events are not for you');
    await using _scene = scene;
    await eventually(async () => assert.equal(await count(), '0', 'the series is there from the start'));
    scene.addClaim();
    await scene.volume();
    await eventually(async () => assert.equal(await count(), '2'));
    assert.equal(rules(scene).length, 1);
    assert.match(rules(scene)[0] ?? '', /resources: \["events"\]\n {4}verbs: \["create", "patch"\]/);
  });
});
