import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import {
  connect,
  type ConnectOptions,
  KubeClient,
  KubeConfigError,
  type RequestObservation,
} from '../../../../src/index.ts';
import { leases } from '../../../../src/kube/election/lease-record.ts';
import { kubeconfigText } from '../../../../sandbox/kubeconfig.ts';
import { ManualClock } from '../../../support/fakes/manual-clock.ts';

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
  const headers = async (...options: [ConnectOptions?]): Promise<IncomingHttpHeaders> => {
    await using transport = connect(...options);
    await new KubeClient({ transport, fieldManager: 'test' }).raw('/version');
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
    seen = [];
    assert.equal((await headers()).authorization, 'Bearer own');
    assert.throws(() => connect({ environment: {} }), KubeConfigError);
  });

  test('merges the files that KUBECONFIG lists, and skips one that is missing', async () => {
    const KUBECONFIG = [path.join(folder, 'gone'), await file('first', 'one'), await file('second', 'two')].join(':');
    assert.equal((await headers({ environment: { KUBECONFIG } })).authorization, 'Bearer one');
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

  test('reports each request, with the time of the server', async () => {
    const observed: RequestObservation[] = [];
    await headers({ kubeconfig: await file('observed', 't'), onRequest: (observation) => observed.push(observation) });
    assert.equal(observed.length, 1);
    assert.equal(observed[0]?.code, '200');
    assert.ok(Math.abs(Date.parse(observed[0].date ?? '') - Date.now()) < 60_000, observed[0].date);
  });

  test('asks for the metadata of an object alone', async () => {
    await using transport = connect({ kubeconfig: await file('metadata', 't') });
    const client = new KubeClient({ transport, fieldManager: 'test' });
    await client.get(leases, { namespace: 'ns', name: 'l' }, { metadataOnly: true });
    assert.match(seen[0]?.accept ?? '', /^application\/json;as=PartialObjectMetadata;g=meta\.k8s\.io;v=v1,/);
  });

  test('keeps to a rate', async () => {
    const clock = new ManualClock();
    const rateLimit = { perSecond: 1, burst: 2 };
    await using transport = connect({ master: url, environment: {}, rateLimit, clock });
    const client = new KubeClient({ transport, fieldManager: 'test' });
    await client.raw('/version');
    await client.raw('/version');
    const third = client.raw('/version');
    await clock.advance(999);
    assert.equal(seen.length, 2);
    await clock.advance(1);
    await third;
    assert.equal(seen.length, 3);
  });

  const user = { name: 'u', user: {} };
  const broken = (fields: object): string =>
    JSON.stringify({
      clusters: [{ name: 'c', cluster: { server: 'https://192.0.2.1:6443' } }],
      users: [user],
      contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
      'current-context': 'x',
      ...fields,
    });
  const withUser = (fields: object): string => broken({ users: [{ ...user, user: fields }] });
  const withCluster = (fields: object): string => broken({ clusters: [{ name: 'c', cluster: fields }] });
  for (const { title, text, options = {}, problem, cure } of [
    {
      title: 'nothing to go by',
      problem: /KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined/,
      cure: /name a kubeconfig file/,
    },
    {
      title: 'a missing file',
      options: { kubeconfig: '/nowhere/config' },
      problem: /^stat \/nowhere\/config: no such file or directory/,
      cure: /Correct the path of the kubeconfig file/,
    },
    {
      title: 'a pod without a token',
      options: { environment: { KUBERNETES_SERVICE_HOST: '192.0.2.1', KUBERNETES_SERVICE_PORT: '443' } },
      problem: /^open .*token/,
      cure: /automountServiceAccountToken/,
    },
    {
      title: 'a server that is none',
      options: { master: 'http://[' },
      problem: /is neither a URL nor host:port/,
      cure: /https:\/\//,
    },
    { title: 'a file that is no YAML', text: '{', problem: /error loading config file/, cure: /kubectl config view/ },
    { title: 'no context', text: '{}', problem: /names no current context/, cure: /kubectl config use-context/ },
    {
      title: 'a cluster whose server is no URL',
      text: withCluster({ server: 'https://[' }),
      problem: /is not the URL of a server/,
      cure: /field server/,
    },
    {
      title: 'a proxy that is no URL',
      text: withCluster({ server: 'https://192.0.2.1', 'proxy-url': 'ftp://x' }),
      problem: /proxy-url/,
      cure: /Correct or remove proxy-url/,
    },
    {
      title: 'a missing certificate',
      text: withUser({ 'client-certificate': 'gone.crt', 'client-key': 'gone.key' }),
      problem: /unable to read client-certificate .*gone\.crt: ENOENT/,
      cure: /client-certificate-data/,
    },
    {
      title: 'a token beside a user name',
      text: withUser({ token: 't', username: 'n' }),
      problem: /both a token and a user name/,
      cure: /Remove one/,
    },
    {
      title: 'a plugin of another time',
      text: withUser({ exec: { apiVersion: 'client.authentication.k8s.io/v1alpha1', command: 'x' } }),
      problem: /invalid apiVersion/,
      cure: /exec\.apiVersion .*client\.authentication\.k8s\.io\/v1/,
    },
    {
      title: 'a plugin without a command',
      text: withUser({ exec: { apiVersion: 'client.authentication.k8s.io/v1' } }),
      problem: /no command/,
      cure: /exec\.command/,
    },
    {
      title: 'a plugin that wants a terminal',
      text: withUser({
        exec: { apiVersion: 'client.authentication.k8s.io/v1', command: 'x', interactiveMode: 'Always' },
      }),
      problem: /requires a terminal/,
      cure: /interactiveMode/,
    },
  ] satisfies { title: string; text?: string; options?: ConnectOptions; problem: RegExp; cure: RegExp }[]) {
    test(`says of ${title} what is wrong and what to do`, async () => {
      const kubeconfig = path.join(folder, 'broken');
      if (text !== undefined) await writeFile(kubeconfig, text);
      assert.throws(
        () => connect({ environment: {}, ...(text !== undefined && { kubeconfig }), ...options }),
        (error) => {
          assert.ok(error instanceof KubeConfigError);
          assert.match(error.message, problem);
          assert.match(error.cure, cure);
          assert.ok(error.message.endsWith(`. ${error.cure}`), error.message);
          return true;
        },
      );
    });
  }
});
