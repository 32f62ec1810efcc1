import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { KubeConfigError } from '../../../../src/kube/credentials/kubeconfig-files.ts';
import {
  contextNamespace,
  type KubeConfigSource,
  loadKubeConfig,
  type LoadedKubeConfig,
} from '../../../../src/kube/credentials/kube-config.ts';

let folder = '';
before(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'kube-config-'));
});
after(() => rmSync(folder, { recursive: true, force: true }));

function write(name: string, text: string): string {
  const file = path.join(folder, name);
  writeFileSync(file, text);
  return file;
}

/** A kubeconfig with one cluster and one user. */
function kubeconfig(user: object | null, cluster: object = {}): string {
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server: 'https://k8s.example:6443', ...cluster } }],
    users: [{ name: 'u', ...(user && { user }) }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  };
  return write('config', JSON.stringify(config));
}

function load(source: Partial<KubeConfigSource>): LoadedKubeConfig {
  return loadKubeConfig({ environment: {}, ...source });
}

function serverOf(loaded: LoadedKubeConfig): string {
  return loaded.cluster.server;
}

describe('loadKubeConfig', () => {
  test('a kubeconfig comes before a bare server, that before the pod', () => {
    const environment = { KUBERNETES_SERVICE_HOST: '10.0.0.1', KUBERNETES_SERVICE_PORT: '443' };
    const file = kubeconfig({});
    assert.equal(serverOf(load({ kubeconfig: file, environment })), 'https://k8s.example:6443');
    assert.equal(serverOf(load({ master: 'https://other:1', environment })), 'https://other:1');
    assert.equal(serverOf(load({ kubeconfig: file, master: 'https://other:1' })), 'https://other:1');
    assert.equal(serverOf(load({ kubeconfig: '', master: 'https://other:1' })), 'https://other:1');
  });

  test('a server replaced by --master keeps the user', () => {
    const loaded = load({ kubeconfig: kubeconfig({ token: 't' }), master: 'https://other:1' });
    assert.equal(loaded.user.token, 't');
  });

  test('a server without a scheme is one of http', () => {
    assert.equal(serverOf(load({ master: 'localhost:8080' })), 'http://localhost:8080');
    assert.equal(serverOf(load({ master: '[::1]:80' })), 'http://[::1]:80');
  });

  const noServers = [
    'http://[',
    '/a',
    '//a:1',
    '/',
    'a/b',
    'a:80/b',
    'http:/a',
    'http:///a',
    'http://',
    'https:a',
    '\\a',
  ];
  for (const master of [...noServers, 'http://\\a', 'a b', 'a\n', ':']) {
    test(`--master=${JSON.stringify(master)} is refused, with a kubeconfig or without`, () => {
      const refused = { message: `--master: ${JSON.stringify(master)} is neither a URL nor host:port` };
      assert.throws(() => load({ master }), refused);
      assert.throws(() => load({ master, kubeconfig: kubeconfig({}) }), KubeConfigError);
    });
  }

  test('the URL of a server may have a path', () => {
    assert.equal(serverOf(load({ master: 'https://proxy.example/k8s' })), 'https://proxy.example/k8s');
  });

  test('relative files are looked up beside the kubeconfig', () => {
    const { cluster, user } = load({
      kubeconfig: kubeconfig(
        { tokenFile: 'token', 'client-certificate': 'c.crt', exec: { command: './bin/plugin' } },
        { 'certificate-authority': '../ca.crt' },
      ),
    });
    assert.equal(user.tokenFile, path.join(folder, 'token'));
    assert.equal(user['client-certificate'], path.join(folder, 'c.crt'));
    assert.equal(cluster['certificate-authority'], path.join(folder, '../ca.crt'));
    assert.equal(user.exec?.command, path.join(folder, 'bin/plugin'));
  });

  test('a plugin named without a folder is looked up on the PATH', () => {
    const { user } = load({ kubeconfig: kubeconfig({ exec: { command: 'aws' } }) });
    assert.equal(user.exec?.command, 'aws');
  });

  test('a user without any field is nobody', () => {
    const { user } = load({ kubeconfig: kubeconfig(null) });
    assert.deepEqual(user, {});
  });

  test('a token and a user name together are refused', () => {
    const file = kubeconfig({ token: 't', username: 'n', password: 'p' });
    assert.throws(() => load({ kubeconfig: file }), /both a token and a user name/);
  });

  test('an authentication provider that Kubernetes has removed is refused, as by Go programs', () => {
    const user = (name: string): string => kubeconfig({ 'auth-provider': { name, config: { 'access-token': 'a' } } });
    for (const name of ['gcp', 'azure'])
      assert.throws(() => load({ kubeconfig: user(name) }), new RegExp(`no Auth Provider found for name "${name}"`));
    load({ kubeconfig: user('oidc') });
  });

  test('the proxy comes from the kubeconfig, else from the environment', () => {
    const environment = { HTTPS_PROXY: 'http://env:1' };
    assert.equal(load({ kubeconfig: kubeconfig({}), environment }).proxyUrl, 'http://env:1');
    const file = kubeconfig({}, { 'proxy-url': 'http://file:2' });
    assert.equal(load({ kubeconfig: file, environment }).proxyUrl, 'http://file:2');
  });

  const unusable = [
    { name: 'a missing file', text: undefined, message: /no such file or directory/ },
    { name: 'an empty file', text: '', message: /no configuration has been provided/ },
    { name: 'a file that is no YAML', text: '{', message: /error loading config file/ },
    { name: 'no current context', text: '{"kind":"Config","apiVersion":"v1"}', message: /no configuration/ },
    {
      name: 'a server that is no URL',
      text: JSON.stringify({
        clusters: [{ name: 'c', cluster: { server: 'https://[' } }],
        users: [],
        contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
        'current-context': 'x',
      }),
      message: /not the URL of a server/,
    },
  ];
  for (const { name, text, message } of unusable) {
    test(`says what is wrong with ${name}`, () => {
      const file = text === undefined ? path.join(folder, 'missing') : write('unusable', text);
      assert.throws(
        () => load({ kubeconfig: file }),
        (error) => error instanceof KubeConfigError && message.test(error.message),
      );
    });
  }
});

describe('in a pod', () => {
  const environment = { KUBERNETES_SERVICE_HOST: '10.96.0.1', KUBERNETES_SERVICE_PORT: '443' };

  test('both variables must be there, and the error names them', () => {
    for (const missing of ['KUBERNETES_SERVICE_HOST', 'KUBERNETES_SERVICE_PORT']) {
      assert.throws(
        () => load({ environment: { ...environment, [missing]: undefined } }),
        (error) =>
          error instanceof KubeConfigError &&
          error.message.includes('KUBERNETES_SERVICE_HOST') &&
          error.message.includes('KUBERNETES_SERVICE_PORT'),
      );
    }
  });

  test('a token that cannot be read is an error', () => {
    const serviceAccountFolder = path.join(folder, 'nowhere');
    assert.throws(() => load({ environment, serviceAccountFolder }), /open .*nowhere\/token/);
  });

  test('always https; an IPv6 address is bracketed; a missing CA is a warning', () => {
    write('token', 'secret\n');
    const loaded = load({ environment, serviceAccountFolder: folder });
    assert.equal(serverOf(loaded), 'https://10.96.0.1:443');
    assert.equal(loaded.user.tokenFile, path.join(folder, 'token'));
    assert.match(loaded.problem ?? '', /ca\.crt is missing/);
    write('ca.crt', 'CA');
    const six = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '6443' };
    const again = load({ environment: six, serviceAccountFolder: folder });
    assert.equal(serverOf(again), 'https://[fd00::1]:6443');
    assert.equal(again.cluster['certificate-authority'], path.join(folder, 'ca.crt'));
    assert.equal(again.problem, undefined);
  });
});

describe('a context', () => {
  const twoContexts = (): string =>
    write(
      'contexts',
      JSON.stringify({
        clusters: ['one', 'two'].map((name) => ({ name, cluster: { server: `https://${name}.example` } })),
        users: [{ name: 'u', user: {} }],
        contexts: ['one', 'two'].map((name) => ({
          name,
          context: { cluster: name, user: 'u', ...(name === 'two' && { namespace: 'shop' }) },
        })),
        'current-context': 'one',
      }),
    );

  test('is the current one, unless another is chosen', () => {
    assert.equal(serverOf(load({ kubeconfig: twoContexts() })), 'https://one.example');
    assert.equal(serverOf(load({ kubeconfig: twoContexts(), context: 'two' })), 'https://two.example');
  });

  test('that the file does not have is refused with those that it has', () => {
    assert.throws(
      () => load({ kubeconfig: twoContexts(), context: 'three' }),
      (error) => error instanceof KubeConfigError && error.cure === 'These are there: one, two',
    );
  });

  test('is refused where the file has none', () => {
    const kubeconfig = write('empty', JSON.stringify({ apiVersion: 'v1', kind: 'Config' }));
    assert.throws(
      () => load({ kubeconfig, context: 'one' }),
      (error) => error instanceof KubeConfigError && error.cure === 'These are there: none',
    );
  });

  test('cannot be chosen without a file', () => {
    assert.throws(() => load({ context: 'one' }), /"one" cannot be chosen without a kubeconfig file/);
  });

  test('names a namespace, or none', () => {
    const kubeconfig = twoContexts();
    assert.equal(contextNamespace({ kubeconfig, environment: {} }), undefined);
    assert.equal(contextNamespace({ kubeconfig, context: 'two', environment: {} }), 'shop');
  });

  test('of a pod is the namespace of its service account', () => {
    write('token', 'a token');
    write('namespace', 'driver\n');
    const environment = { KUBERNETES_SERVICE_HOST: '192.0.2.1', KUBERNETES_SERVICE_PORT: '443' };
    assert.equal(contextNamespace({ environment, serviceAccountFolder: folder }), 'driver');
  });
});
