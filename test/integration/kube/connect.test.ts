import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import { connect, type ConnectOptions, KubeClient, KubeConfigError } from '../../../src/index.ts';
import { kubeconfigText } from '../../../sandbox/kubeconfig.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';

describe('connect', () => {
  let server: Server;
  let url: string;
  let folder: string;
  let seen: IncomingHttpHeaders[] = [];
  const environment = { ...process.env };

  const file = async (name: string, token: string, server = url): Promise<string> => {
    const kubeconfig = path.join(folder, name);
    await writeFile(kubeconfig, kubeconfigText({ url: server, token }));
    return kubeconfig;
  };
  /** The headers of a request made over a connection with these options. */
  const headers = async (options: ConnectOptions): Promise<IncomingHttpHeaders> => {
    await using transport = connect(options);
    await new KubeClient({ transport }).raw('/version');
    assert.equal(seen.length, 1);
    return seen[0]!;
  };

  before(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'connect-'));
    server = createServer((request, response) => {
      seen.push(request.headers);
      response.setHeader('content-type', 'application/json').end('{}');
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterEach(() => {
    seen = [];
    process.env = environment;
  });
  after(async () => {
    server.close();
    await rm(folder, { recursive: true, force: true });
  });

  test('takes the kubeconfig that is named', async () => {
    const KUBECONFIG = await file('other', 'wrong');
    const { authorization } = await headers({ kubeconfig: await file('named', 'right'), environment: { KUBECONFIG } });
    assert.equal(authorization, 'Bearer right');
  });

  test('takes the one of KUBECONFIG where none is named', async () => {
    const { authorization } = await headers({ environment: { KUBECONFIG: await file('from-environment', 'secret') } });
    assert.equal(authorization, 'Bearer secret');
  });

  test('looks at the environment of the process where none is given', async () => {
    process.env = { ...environment, KUBECONFIG: await file('from-process', 'own') };
    assert.equal((await headers({})).authorization, 'Bearer own');
    assert.throws(() => connect({ environment: {} }), KubeConfigError);
  });

  test('replaces the server of a kubeconfig, and keeps its credentials', async () => {
    const kubeconfig = await file('elsewhere', 'secret', 'http://127.0.0.1:1');
    assert.equal((await headers({ kubeconfig, master: url, environment: {} })).authorization, 'Bearer secret');
  });

  test('goes to a bare server without credentials', async () => {
    assert.equal((await headers({ master: url, environment: {} })).authorization, undefined);
  });

  test('says who it is', async () => {
    assert.match((await headers({ master: url, environment: {} }))['user-agent'] ?? '', /^csi-provisioner-library \(/);
    seen = [];
    assert.equal((await headers({ master: url, environment: {}, userAgent: 'mine/1' }))['user-agent'], 'mine/1');
  });

  test('keeps to a rate', async () => {
    const clock = new ManualClock();
    const rateLimit = { perSecond: 1, burst: 2 };
    await using transport = connect({ master: url, environment: {}, rateLimit, clock });
    const client = new KubeClient({ transport });
    await client.raw('/version');
    await client.raw('/version');
    const third = client.raw('/version');
    await clock.advance(999);
    assert.equal(seen.length, 2);
    await clock.advance(1);
    await third;
    assert.equal(seen.length, 3);
  });

  test('without anything to go by, says what is missing', () => {
    assert.throws(() => connect({ environment: {} }), {
      name: 'KubeConfigError',
      message: /KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined/,
    });
  });
});
