import assert from 'node:assert/strict';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, test } from 'node:test';
import { CertificateAuthority } from '../../../../sandbox/api/certificates.ts';
import { UnauthorizedError } from '../../../../src/kube/client/api-error.ts';
import { Credentials } from '../../../../src/kube/credentials/credentials.ts';
import { KubeClient } from '../../../../src/kube/client/kube-client.ts';
import { loadKubeConfig } from '../../../../src/kube/credentials/kube-config.ts';
import { Transport } from '../../../../src/kube/client/transport.ts';
import { startConnectProxy } from '../../../support/connect-proxy.ts';
import { startSocksProxy } from '../../../support/socks-proxy.ts';
import { ManualClock } from '../../../support/fakes/manual-clock.ts';
import { type LogLine, recordedLogger } from '../../../support/fakes/recorded-logger.ts';
import {
  type ScriptedReply,
  ScriptedServer,
  type ScriptedServerOptions,
} from '../../../support/fakes/scripted-server.ts';
import { configMap, configMaps } from '../rig.ts';

const name = { namespace: 'ns', name: 'a' };

/** A folder with a kubeconfig, a client that uses it, and the server it points at. */
class Desk implements AsyncDisposable {
  readonly clock = new ManualClock();
  readonly log: LogLine[] = [];
  /** Variables that the client sees beside its own. */
  readonly environment: Record<string, string> = {};
  readonly server: ScriptedServer;
  readonly folder: string;
  #transport: Transport | undefined;

  private constructor(server: ScriptedServer, folder: string) {
    this.server = server;
    this.folder = folder;
    server.otherwise((reply) => reply.json(200, configMap('a', 7)));
  }

  static async open(options: ScriptedServerOptions = {}): Promise<Desk> {
    return new Desk(await ScriptedServer.start(options), await mkdtemp(path.join(tmpdir(), 'credentials-')));
  }

  /** Writes a certificate and its key, for the user `name`. */
  async pair(ca: CertificateAuthority, user: string): Promise<void> {
    const { cert, key } = ca.client(user);
    await this.file('c.crt', cert);
    await this.file('c.key', key);
  }

  async file(file: string, text: string): Promise<string> {
    await writeFile(path.join(this.folder, file), text);
    return path.join(this.folder, file);
  }

  /** A program that appends a line to `runs` and prints what `answer` holds. */
  async plugin(): Promise<void> {
    const script = `#!/bin/sh\necho "$KUBERNETES_EXEC_INFO|$FROM_PARENT|$OWN|$*" >> '${this.folder}/runs'\ncat '${this.folder}/answer'\n`;
    await chmod(await this.file('plugin', script), 0o755);
  }

  async runs(): Promise<string[]> {
    const text = await readFile(path.join(this.folder, 'runs'), 'utf8').catch(() => '');
    return text.split('\n').filter((line) => line !== '');
  }

  async credentials(user: object | null, cluster: object = {}): Promise<Credentials> {
    const config = {
      clusters: [{ name: 'c', cluster: { server: this.server.url, ...cluster } }],
      users: [{ name: 'u', ...(user && { user }) }],
      contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
      'current-context': 'x',
    };
    const kubeconfig = await this.file('config', JSON.stringify(config));
    const environment = { PATH: process.env['PATH'], FROM_PARENT: 'yes', ...this.environment };
    const logger = recordedLogger(this.log);
    return new Credentials({ load: () => loadKubeConfig({ kubeconfig, environment }), clock: this.clock, logger });
  }

  async transport(user: object | null, cluster: object = {}): Promise<Transport> {
    const credentials = await this.credentials(user, cluster);
    const logger = recordedLogger(this.log);
    this.#transport = new Transport({ credentials, userAgent: 'test', clock: this.clock, logger });
    return this.#transport;
  }

  async client(user: object | null, cluster: object = {}): Promise<KubeClient> {
    return new KubeClient({ transport: await this.transport(user, cluster), fieldManager: 'test' });
  }

  get authorizations(): (string | undefined)[] {
    return this.server.requests.map(({ headers }) => headers.authorization);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#transport?.[Symbol.asyncDispose]();
    await this.server[Symbol.asyncDispose]();
    await rm(this.folder, { recursive: true, force: true });
  }
}

function newAuthority(): CertificateAuthority {
  return new CertificateAuthority({ nowMs: Date.now() });
}

function unauthorized(reply: ScriptedReply): void {
  reply.status(401, 'Unauthorized');
}

describe('who we are', () => {
  const users: { title: string; user: object | null; want: string | undefined }[] = [
    { title: 'nobody', user: null, want: undefined },
    { title: 'nobody with a place', user: {}, want: undefined },
    { title: 'a token', user: { token: 'abc' }, want: 'Bearer abc' },
    { title: 'a name and a password', user: { username: 'jo', password: 'p:é' }, want: 'Basic am86cDrDqQ==' },
  ];
  for (const { title, user, want } of users) {
    test(`the identity goes with each request: ${title}`, async () => {
      await using desk = await Desk.open();
      const client = await desk.client(user);
      await client.get(configMaps, name);
      await client.get(configMaps, name);
      assert.deepEqual(desk.authorizations, [want, want]);
    });
  }

  test('whom to act for goes along', async () => {
    await using desk = await Desk.open();
    const client = await desk.client({
      token: 'abc',
      as: 'jo',
      'as-groups': ['dev', 'ops'],
      'as-uid': '42',
      'as-user-extra': { 'example.com/Team': ['a', 'b'] },
    });
    await client.get(configMaps, name);
    const headers = desk.server.requests[0]?.headers ?? {};
    assert.equal(headers['impersonate-user'], 'jo');
    assert.equal(headers['impersonate-group'], 'dev, ops', 'two headers, which node shows as one');
    assert.equal(headers['impersonate-uid'], '42');
    assert.equal(headers['impersonate-extra-example.com%2fteam'], 'a, b');
  });

  test('over plain http no credentials are sent to another machine', async () => {
    await using desk = await Desk.open();
    const credentials = await desk.credentials({ token: 'abc' }, { server: 'http://k8s.example' });
    assert.deepEqual(await credentials.headers(), {});
  });
});

describe('a token file', () => {
  test('is read again after 50 s, before a request', async () => {
    await using desk = await Desk.open();
    await desk.file('token', 'one\n');
    const client = await desk.client({ tokenFile: 'token' });
    await client.get(configMaps, name);
    await desk.file('token', 'two');
    await desk.clock.advance(49_000);
    await client.get(configMaps, name);
    await desk.clock.advance(1000);
    await client.get(configMaps, name);
    assert.deepEqual(desk.authorizations, ['Bearer one', 'Bearer one', 'Bearer two']);
  });

  test('is read again at once after a 401, whose request is sent once more', async () => {
    await using desk = await Desk.open();
    await desk.file('token', 'one');
    const client = await desk.client({ tokenFile: 'token' });
    await client.get(configMaps, name);
    await desk.file('token', 'two');
    desk.server.next({}, unauthorized);
    await client.update(configMaps, configMap('a', 1));
    assert.deepEqual(desk.authorizations, ['Bearer one', 'Bearer one', 'Bearer two']);
  });

  test('several failures of the same credentials renew them once', async () => {
    await using desk = await Desk.open();
    await desk.file('token', 'one');
    const credentials = await desk.credentials({ tokenFile: 'token' });
    await credentials.headers();
    await desk.file('token', 'two');
    const { generation } = credentials;
    credentials.renew(generation);
    credentials.renew(generation);
    assert.equal(credentials.generation, generation + 1);
    assert.deepEqual(await credentials.headers(), { authorization: 'Bearer two' });
  });

  for (const { title, spoil } of [
    { title: 'is empty', spoil: (desk: Desk) => desk.file('token', '\n') },
    { title: 'is gone', spoil: (desk: Desk) => rm(path.join(desk.folder, 'token')) },
  ]) {
    test(`that ${title} leaves the previous token in use, with a line in the log`, async () => {
      await using desk = await Desk.open();
      await desk.file('token', 'one');
      const client = await desk.client({ tokenFile: 'token' });
      await client.get(configMaps, name);
      await spoil(desk);
      await desk.clock.advance(60_000);
      await client.get(configMaps, name);
      assert.deepEqual(desk.authorizations, ['Bearer one', 'Bearer one']);
      assert.equal(desk.log.filter(({ level }) => level === 'error').length, 1);
    });
  }

  test('that stays empty is logged once, not at each 401', async () => {
    await using desk = await Desk.open();
    await desk.file('token', 'one');
    const client = await desk.client({ tokenFile: 'token' });
    await client.get(configMaps, name);
    await desk.file('token', '');
    desk.server.otherwise(unauthorized);
    for (let tries = 0; tries < 3; tries++) await assert.rejects(client.get(configMaps, name), UnauthorizedError);
    assert.equal(desk.log.filter(({ level }) => level === 'error').length, 1);
    await desk.file('token', 'two');
    await assert.rejects(client.get(configMaps, name), UnauthorizedError);
    assert.equal(desk.authorizations.at(-1), 'Bearer two');
  });

  test('that was never there is an error of the request', async () => {
    await using desk = await Desk.open();
    const client = await desk.client({ tokenFile: 'token' });
    await assert.rejects(client.get(configMaps, name), /ENOENT/);
    assert.equal(desk.server.requests.length, 0);
  });

  test('wins over a token that stands beside it', async () => {
    await using desk = await Desk.open();
    await desk.file('token', 'from file');
    const client = await desk.client({ tokenFile: 'token', token: 'inline' });
    await client.get(configMaps, name);
    assert.deepEqual(desk.authorizations, ['Bearer from file']);
  });
});

describe('a credential plugin', () => {
  const version = 'client.authentication.k8s.io/v1';
  const exec = { apiVersion: version, command: './plugin' };
  const answer = (status: object, apiVersion = version): string =>
    JSON.stringify({ kind: 'ExecCredential', apiVersion, status });

  test('runs once, beside the kubeconfig, with its arguments and environment', async () => {
    await using desk = await Desk.open();
    await desk.plugin();
    await desk.file('answer', answer({ token: 'abc' }));
    const env = [{ name: 'OWN', value: 'mine' }];
    const client = await desk.client({ exec: { ...exec, args: ['get', 'token'], env, interactiveMode: 'Never' } });
    await Promise.all([client.get(configMaps, name), client.get(configMaps, name)]);
    await desk.clock.advance(3_600_000);
    await client.get(configMaps, name);
    assert.deepEqual(new Set(desk.authorizations), new Set(['Bearer abc']));
    const runs = await desk.runs();
    assert.equal(runs.length, 1);
    const [info = '', ...rest] = (runs[0] ?? '').split('|');
    assert.deepEqual(JSON.parse(info), { kind: 'ExecCredential', apiVersion: version, spec: { interactive: false } });
    assert.deepEqual(rest, ['yes', 'mine', 'get token']);
  });

  test('gets the cluster where it asks for it', async () => {
    await using desk = await Desk.open();
    await desk.plugin();
    await desk.file('answer', answer({ token: 'abc' }));
    const ca = Buffer.from('a CA').toString('base64');
    const client = await desk.client(
      { exec: { ...exec, provideClusterInfo: true } },
      { 'certificate-authority-data': ca, 'tls-server-name': 'k8s.example' },
    );
    await client.get(configMaps, name);
    const [info = ''] = ((await desk.runs())[0] ?? '').split('|');
    assert.deepEqual((JSON.parse(info) as { spec: { cluster: object } }).spec.cluster, {
      server: desk.server.url,
      'tls-server-name': 'k8s.example',
      'certificate-authority-data': ca,
    });
  });

  test('runs again once its token has expired', async () => {
    await using desk = await Desk.open();
    await desk.plugin();
    const expirationTimestamp = new Date(desk.clock.wallMs() + 300_000).toISOString();
    await desk.file('answer', answer({ token: 'one', expirationTimestamp }));
    const client = await desk.client({ exec });
    await client.get(configMaps, name);
    await desk.file('answer', answer({ token: 'two' }));
    await desk.clock.advance(299_000);
    await client.get(configMaps, name);
    await desk.clock.advance(11_000);
    await client.get(configMaps, name);
    assert.deepEqual(desk.authorizations, ['Bearer one', 'Bearer one', 'Bearer two']);
    assert.equal((await desk.runs()).length, 2);
  });

  test('runs again after a 401, once', async () => {
    await using desk = await Desk.open();
    await desk.plugin();
    await desk.file('answer', answer({ token: 'one' }));
    const client = await desk.client({ exec });
    await client.get(configMaps, name);
    await desk.file('answer', answer({ token: 'two' }));
    desk.server.next({}, unauthorized);
    await client.get(configMaps, name);
    assert.deepEqual(desk.authorizations, ['Bearer one', 'Bearer one', 'Bearer two']);
    desk.server.otherwise(unauthorized);
    await assert.rejects(client.get(configMaps, name), UnauthorizedError);
    assert.equal((await desk.runs()).length, 3);
  });

  test('a certificate of it makes new connections, and outlives the look at the files', async () => {
    await using desk = await Desk.open();
    await desk.plugin();
    const { cert, key } = newAuthority().client('jo');
    await desk.file('answer', answer({ clientCertificateData: cert, clientKeyData: key }));
    const credentials = await desk.credentials({ exec });
    const before = credentials.tls();
    assert.deepEqual(await credentials.headers(), {});
    const withPair = credentials.tls();
    assert.notEqual(withPair, before);
    assert.deepEqual([withPair.cert, withPair.key], [cert, key]);
    await desk.clock.advance(301_000);
    assert.equal(credentials.tls(), withPair);
    assert.deepEqual(
      desk.log.filter(({ level }) => level === 'error'),
      [],
    );
  });

  const wrong: { title: string; output: string; message: RegExp }[] = [
    { title: 'that prints no JSON', output: 'token: secret-value', message: /is not JSON/ },
    {
      title: 'of another version',
      output: answer({ token: 'a' }, 'client.authentication.k8s.io/v1beta1'),
      message: /not an ExecCredential of/,
    },
    { title: 'that gives nothing', output: answer({}), message: /neither a token nor a certificate/ },
    { title: 'that gives half a pair', output: answer({ clientKeyData: 'k' }), message: /without a key|key alone/ },
    {
      title: 'whose expiry is no time',
      output: answer({ token: 'a', expirationTimestamp: 'soon' }),
      message: /is not a time/,
    },
  ];
  for (const { title, output, message } of wrong) {
    test(`one ${title} fails the request`, async () => {
      await using desk = await Desk.open();
      await desk.plugin();
      await desk.file('answer', output);
      const client = await desk.client({ exec });
      await assert.rejects(client.get(configMaps, name), (error: Error) => {
        assert.match(error.message, message);
        assert.doesNotMatch(error.message, /secret-value/);
        return true;
      });
      assert.equal(desk.server.requests.length, 0);
    });
  }

  test('one that is missing says how to get it; one that fails says why', async () => {
    await using desk = await Desk.open();
    const missing = await desk.client({ exec: { ...exec, installHint: 'Get it from example.com' } });
    await assert.rejects(missing.get(configMaps, name), /was not found\. Get it from example\.com/);
    await chmod(await desk.file('plugin', '#!/bin/sh\necho "login first" >&2\nexit 3\n'), 0o755);
    await assert.rejects(missing.get(configMaps, name), /login first/);
  });

  for (const { title, config, message } of [
    { title: 'of an unknown version', config: { ...exec, apiVersion: 'v9' }, message: /invalid apiVersion "v9"/ },
    { title: 'without a command', config: { apiVersion: version }, message: /no command/ },
    { title: 'that wants a terminal', config: { ...exec, interactiveMode: 'Always' }, message: /terminal/ },
  ]) {
    test(`one ${title} is refused at the start`, async () => {
      await using desk = await Desk.open();
      await assert.rejects(desk.credentials({ exec: config }), message);
    });
  }
});

describe('compression', () => {
  for (const { title, cluster, want } of [
    { title: 'is asked for', cluster: {}, want: 'gzip' },
    {
      title: 'is not asked for where the kubeconfig disables it',
      cluster: { 'disable-compression': true },
      want: undefined,
    },
  ]) {
    test(title, async () => {
      await using desk = await Desk.open();
      const client = await desk.client({}, cluster);
      await client.get(configMaps, name);
      assert.equal(desk.server.requests[0]?.headers['accept-encoding'], want);
    });
  }
});

describe('certificates', () => {
  test('a client certificate says who we are; other files count five minutes later, for watches too', async () => {
    const ca = newAuthority();
    await using desk = await Desk.open({ tls: { ...ca.server(), ca: ca.cert, requestCert: true } });
    await desk.file('ca.crt', ca.cert);
    await desk.pair(ca, 'ann');
    const transport = await desk.transport(
      { 'client-certificate': 'c.crt', 'client-key': 'c.key' },
      { 'certificate-authority': 'ca.crt' },
    );
    const client = new KubeClient({ transport, fieldManager: 'test' });
    const info = { verb: 'watch', resource: configMaps };
    desk.server.next({ query: { watch: 'true' } }, (reply) => reply.open());
    const query = { watch: true };
    const watch = await transport.stream({ method: 'GET', path: '/api/v1/configmaps', query, info, watch: true });
    const reading = assert.rejects(async () => {
      for await (const _chunk of watch.body) assert.fail('nothing was sent');
    });
    await client.get(configMaps, name);
    await desk.pair(ca, 'bob');
    await desk.clock.advance(299_000);
    await client.get(configMaps, name);
    await desk.clock.advance(1000);
    await client.get(configMaps, name);
    assert.deepEqual(
      desk.server.requests.map(({ certificateName }) => certificateName),
      ['ann', 'ann', 'ann', 'bob'],
    );
    await reading;
  });

  test('files that did not change, or are half written, leave the connections alone', async () => {
    await using desk = await Desk.open();
    const ca = newAuthority();
    await desk.pair(ca, 'ann');
    const credentials = await desk.credentials({ 'client-certificate': 'c.crt', 'client-key': 'c.key' });
    const first = credentials.tls();
    await desk.clock.advance(300_000);
    assert.equal(credentials.tls(), first);
    await desk.file('c.crt', ca.client('bob').cert); // its key is still to come
    await desk.clock.advance(300_000);
    assert.equal(credentials.tls(), first);
    assert.equal(desk.log.filter(({ level }) => level === 'error').length, 1);
    await desk.pair(ca, 'bob');
    await desk.clock.advance(300_000);
    assert.notEqual(credentials.tls(), first);
  });

  test('a server whose CA no kubeconfig names is trusted if the store of the system does', async () => {
    const ca = newAuthority();
    await using desk = await Desk.open({ tls: ca.server() });
    const stranger = await desk.client({});
    await assert.rejects(stranger.get(configMaps, name), { name: 'TransportError', sent: false });
    desk.environment['SSL_CERT_FILE'] = await desk.file('roots.pem', ca.cert);
    const client = await desk.client({});
    await client.get(configMaps, name);
    const another = await desk.client({}, { 'certificate-authority-data': btoa(newAuthority().cert) });
    await assert.rejects(
      another.get(configMaps, name),
      { name: 'TransportError' },
      'the CA of a kubeconfig goes first',
    );
    assert.equal(desk.server.requests.length, 1);
  });

  test('a server that shows a certificate of a new CA is trusted once the CA file says so', async () => {
    const [old, fresh] = [newAuthority(), newAuthority()];
    await using desk = await Desk.open({ tls: old.server() });
    await desk.file('ca.crt', old.cert);
    const client = await desk.client({}, { 'certificate-authority': 'ca.crt' });
    await client.get(configMaps, name);
    await desk.server.down();
    await desk.server.up({ tls: fresh.server() });
    await assert.rejects(client.update(configMaps, configMap('a', 1)), { name: 'TransportError' });
    await assert.rejects(client.get(configMaps, name), { name: 'TransportError' }, 'at once: a retry changes nothing');
    assert.equal(desk.server.requests.length, 1);
    await desk.file('ca.crt', fresh.cert);
    await desk.clock.advance(1000); // the files are compared once in a second while connections fail
    await client.update(configMaps, configMap('a', 1));
    assert.equal(desk.server.requests.length, 2);
  });

  test('a server that rejects the old client certificate gets the new one as soon as it is there', async () => {
    const [old, fresh] = [newAuthority(), newAuthority()];
    const tls = { ...old.server(), requestCert: true, rejectUnauthorized: true };
    await using desk = await Desk.open({ tls: { ...tls, ca: old.cert } });
    await desk.file('ca.crt', old.cert);
    await desk.pair(old, 'ann');
    const client = await desk.client(
      { 'client-certificate': 'c.crt', 'client-key': 'c.key' },
      { 'certificate-authority': 'ca.crt' },
    );
    await client.get(configMaps, name);
    await desk.server.down();
    await desk.server.up({ tls: { ...tls, ca: fresh.cert } });
    await assert.rejects(client.update(configMaps, configMap('a', 1)), { name: 'TransportError' });
    await desk.pair(fresh, 'bob');
    await desk.clock.advance(1000);
    await client.update(configMaps, configMap('a', 1));
    assert.equal(desk.server.requests.at(-1)?.certificateName, 'bob');
  });

  test('files that cannot be used are logged once, not with each connection that fails', async () => {
    const [old, fresh] = [newAuthority(), newAuthority()];
    await using desk = await Desk.open({ tls: fresh.server() });
    await desk.file('ca.crt', old.cert);
    const client = await desk.client({}, { 'certificate-authority': 'ca.crt' });
    await desk.file('ca.crt', '');
    for (let tries = 0; tries < 5; tries++) {
      await assert.rejects(client.get(configMaps, name), { name: 'TransportError' });
      await desk.clock.advance(1000);
    }
    assert.equal(desk.log.filter(({ level }) => level === 'error').length, 1);
    await desk.file('ca.crt', fresh.cert);
    await client.get(configMaps, name);
  });

  for (const { title, text } of [
    { title: 'is empty', text: '' },
    { title: 'is no certificate', text: 'garbage' },
    { title: 'is gone', text: undefined },
  ]) {
    test(`a CA file that ${title} leaves the old one in use, with a line in the log`, async () => {
      await using desk = await Desk.open();
      const file = await desk.file('ca.crt', newAuthority().cert);
      const credentials = await desk.credentials({}, { 'certificate-authority': 'ca.crt' });
      const first = credentials.tls();
      await (text === undefined ? rm(file) : desk.file('ca.crt', text));
      await desk.clock.advance(300_000);
      assert.equal(credentials.tls(), first);
      assert.equal(desk.log.filter(({ level }) => level === 'error').length, 1);
    });
  }

  test('inline data wins over a file; the server name and skipped verification are kept', async () => {
    await using desk = await Desk.open();
    const data = Buffer.from('inline').toString('base64');
    const credentials = await desk.credentials(
      {},
      {
        'certificate-authority': 'missing.crt',
        'certificate-authority-data': data,
        'tls-server-name': 'k8s.example',
        'insecure-skip-tls-verify': true,
      },
    );
    const { ca, servername, rejectUnauthorized } = credentials.tls();
    assert.deepEqual([String(ca), servername, rejectUnauthorized], ['inline', 'k8s.example', false]);
  });

  test('the default trust of the process is needed for an identity provider and for a proxy over TLS', async () => {
    await using desk = await Desk.open();
    const needed = async (user: object, cluster: object = {}): Promise<boolean> =>
      (await desk.credentials(user, cluster)).needsDefaultTrust;
    assert.equal(await needed({ token: 'abc' }), false);
    assert.equal(await needed({}, { 'proxy-url': 'http://127.0.0.1:1' }), false);
    assert.equal(await needed({}, { 'proxy-url': 'https://127.0.0.1:1' }), true);
    assert.equal(await needed({ 'auth-provider': { name: 'oidc', config: {} } }), true);
  });
});

describe('a proxy', () => {
  test('of the kubeconfig stands between, and an open watch holds up no write', async () => {
    await using desk = await Desk.open();
    await using proxy = await startConnectProxy();
    const transport = await desk.transport({ token: 'abc' }, { 'proxy-url': proxy.url });
    const client = new KubeClient({ transport, fieldManager: 'test' });
    const info = { verb: 'watch', resource: configMaps };
    desk.server.next({}, (reply) => reply.open().write('{}\n'));
    const watch = await transport.stream({ method: 'GET', path: '/api/v1/configmaps', info, watch: true });
    await client.update(configMaps, configMap('a', 1));
    let read = '';
    for await (const chunk of watch.body) {
      read += String(Buffer.from(chunk));
      break;
    }
    assert.equal(read, '{}\n');
    assert.deepEqual(proxy.tunnels, [new URL(desk.server.url).host, new URL(desk.server.url).host]);
    assert.deepEqual(desk.authorizations, ['Bearer abc', 'Bearer abc']);
    await transport[Symbol.asyncDispose]();
  });

  test('that refuses a tunnel fails the request like a server that is away: it was not sent', async () => {
    await using desk = await Desk.open();
    await using proxy = await startConnectProxy();
    const transport = await desk.transport({}, { 'proxy-url': proxy.url });
    const client = new KubeClient({ transport, fieldManager: 'test' });
    const info = { verb: 'watch', resource: configMaps };
    const request = { method: 'GET', path: '/api/v1/configmaps', info, watch: true } as const;
    for (const code of [502, 407]) {
      proxy.refuse(code);
      const message = new RegExp(`^PUT .*Proxy response \\(${code}\\)`);
      const update = client.update(configMaps, configMap('a', 1));
      await assert.rejects(update, { name: 'TransportError', sent: false, message });
      await assert.rejects(transport.stream(request), { name: 'TransportError' });
    }
    proxy.refuse();
    await client.update(configMaps, configMap('a', 1));
    await transport[Symbol.asyncDispose]();
  });

  test('over TLS may show a certificate of the authority of the API server', async () => {
    const ca = newAuthority();
    await using desk = await Desk.open({ tls: ca.server() });
    await using proxy = await startConnectProxy(ca.server());
    await using stranger = await startConnectProxy(newAuthority().server());
    await desk.file('ca.crt', ca.cert);
    const cluster = { 'certificate-authority': 'ca.crt' };
    const refused = await desk.client({}, { ...cluster, 'proxy-url': stranger.url });
    await assert.rejects(refused.get(configMaps, name), { name: 'TransportError', sent: false });
    const client = await desk.client({}, { ...cluster, 'proxy-url': proxy.url });
    await client.get(configMaps, name);
    assert.equal(proxy.tunnels.length, 1);
  });

  test('over SOCKS gets name and password as they are, not as the URL encodes them', async () => {
    await using desk = await Desk.open();
    await using proxy = await startSocksProxy('jo:p@ss:w/rd');
    const client = await desk.client({ token: 'abc' }, { 'proxy-url': `socks5://jo:p%40ss%3Aw%2Frd@${proxy.host}` });
    await client.get(configMaps, name);
    assert.deepEqual(proxy.tunnels, [Number(new URL(desk.server.url).port)]);
    assert.deepEqual(desk.authorizations, ['Bearer abc']);
  });

  test('over SOCKS that refuses them is what failed, not the API server', async () => {
    await using desk = await Desk.open();
    await using proxy = await startSocksProxy('jo:right');
    const client = await desk.client({ token: 'abc' }, { 'proxy-url': `socks5://jo:wrong@${proxy.host}` });
    const message = /^PUT .*: SOCKS proxy: Authentication failed$/;
    await assert.rejects(client.update(configMaps, configMap('a', 1)), {
      name: 'TransportError',
      sent: false,
      message,
    });
  });
});
