import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { loadKubeConfig, type LoadedKubeConfig } from '../../../../src/kube/credentials/kube-config.ts';
import { KubeConfigError, listedFiles } from '../../../../src/kube/credentials/kubeconfig-files.ts';

interface Written {
  clusters?: Record<string, object>;
  users?: Record<string, object>;
  contexts?: Record<string, object>;
  current?: string;
}

describe('several kubeconfig files', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'kubeconfigs-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const named = (entries: Record<string, object> = {}, field: string): object[] =>
    Object.entries(entries).map(([name, value]) => ({ name, [field]: value }));

  /** Writes a file into a folder of its own. */
  function write(name: string, { clusters, users, contexts, current }: Written): string {
    const file = path.join(folder, name, 'config');
    mkdirSync(path.dirname(file));
    const lists = {
      ...(clusters && { clusters: named(clusters, 'cluster') }),
      ...(users && { users: named(users, 'user') }),
      ...(contexts && { contexts: named(contexts, 'context') }),
    };
    writeFileSync(file, JSON.stringify({ ...lists, ...(current !== undefined && { 'current-context': current }) }));
    return file;
  }

  const load = (kubeconfig: readonly string[], context?: string): LoadedKubeConfig =>
    loadKubeConfig({ kubeconfig, context, environment: {} });
  const serverOf = ({ cluster }: LoadedKubeConfig): string => cluster.server;

  test('are one configuration: context, cluster and user may each be in another', () => {
    const files = [
      write('contexts', { contexts: { x: { cluster: 'c', user: 'u' } }, current: 'x' }),
      write('clusters', { clusters: { c: { server: 'https://c.example', 'disable-compression': true } } }),
      write('users', { users: { u: { token: 't', 'as-uid': '7' } } }),
    ];
    const loaded = load(files);
    assert.equal(serverOf(loaded), 'https://c.example');
    assert.equal(loaded.user.token, 't');
    assert.equal(loaded.cluster['disable-compression'], true);
    assert.equal(loaded.user['as-uid'], '7');
  });

  test('of each name and of the current context the first file decides, whole', () => {
    const contexts = { x: { cluster: 'c', user: 'u' } };
    const first = write('first', {
      clusters: { c: { server: 'https://first.example' } },
      users: { u: { token: 'first' } },
    });
    const second = write('second', {
      clusters: {
        c: { server: 'https://second.example', 'disable-compression': true },
        d: { server: 'https://d.example' },
      },
      users: { u: { username: 'second', password: 'p' } },
      contexts: { ...contexts, y: { cluster: 'd', user: 'u' } },
      current: 'x',
    });
    const third = write('third', { contexts: { x: { cluster: 'd', user: 'u' } }, current: 'y' });
    const merged = load([first, second, third]);
    assert.equal(serverOf(merged), 'https://first.example');
    assert.equal(merged.user.token, 'first');
    assert.equal(merged.user.username, undefined);
    assert.equal(merged.cluster['disable-compression'], undefined);
    assert.equal(serverOf(load([third, second, first])), 'https://d.example');
    assert.equal(serverOf(load([first, second, third], 'y')), 'https://d.example', 'a context of any of them');
  });

  test('relative paths start at the folder of the file that they are in', () => {
    const files = [
      write('one', { contexts: { x: { cluster: 'c', user: 'u' } }, current: 'x' }),
      write('two', { clusters: { c: { server: 'https://c.example', 'certificate-authority': '../ca.crt' } } }),
      write('three', { users: { u: { tokenFile: 'token', 'client-key': 'u.key', exec: { command: './plugin' } } } }),
    ];
    const { cluster, user } = load(files);
    assert.equal(cluster['certificate-authority'], path.join(folder, 'ca.crt'));
    assert.equal(user.tokenFile, path.join(folder, 'three/token'));
    assert.equal(user['client-key'], path.join(folder, 'three/u.key'));
    const { command } = user.exec ?? {};
    assert.equal(command, path.join(folder, 'three/plugin'));
  });

  test('may be missing or empty, as long as one is there', () => {
    const whole = write('whole', {
      clusters: { c: { server: 'https://c.example' } },
      contexts: { x: { cluster: 'c', user: 'u' } },
      current: 'x',
    });
    const empty = path.join(folder, 'empty');
    writeFileSync(empty, '\n');
    assert.equal(serverOf(load([path.join(folder, 'gone'), empty, whole])), 'https://c.example');
    assert.throws(
      () => load([path.join(folder, 'gone'), path.join(folder, 'away')]),
      (error) => error instanceof KubeConfigError && /gone:.*away: no such file or directory/.test(error.message),
    );
  });

  test('one that cannot be read or parsed is an error that names it', () => {
    const whole = write('whole', { clusters: { c: { server: 'https://c.example' } } });
    const broken = path.join(folder, 'broken');
    writeFileSync(broken, '{');
    assert.throws(() => load([whole, broken]), /error loading config file ".*\/broken"/);
    assert.throws(() => load([whole, folder]), /stat .*: EISDIR/);
  });

  test('what none of them has is said of all', () => {
    const files = [write('a', { current: 'x' }), write('b', {})];
    assert.throws(
      () => load(files),
      (error) => {
        assert.ok(error instanceof KubeConfigError);
        assert.ok(error.message.includes(`${files.join(':')} names no current context with a cluster`), error.message);
        assert.equal(error.cure, 'Choose one: kubectl config use-context NAME');
        return true;
      },
    );
    assert.throws(() => load(files, 'z'), /a\/config:.*b\/config has no context "z"/);
    const odd = write("c; d's", {});
    assert.throws(
      () => load([odd]),
      (error) =>
        error instanceof KubeConfigError && error.cure.endsWith(` --kubeconfig '${odd.replace("'", "'\\''")}'`),
    );
  });
});

test('a variable lists each file once, without empty parts', () => {
  assert.deepEqual(listedFiles('/a::b/c:/a:'), ['/a', 'b/c']);
  assert.deepEqual([listedFiles(undefined), listedFiles(''), listedFiles(':')], [[], [], []]);
});

describe('the YAML of a kubeconfig file', () => {
  const load = (text: string): LoadedKubeConfig => {
    const folder = mkdtempSync(path.join(tmpdir(), 'kubeconfig-'));
    try {
      writeFileSync(path.join(folder, 'config'), text);
      return loadKubeConfig({ kubeconfig: path.join(folder, 'config'), environment: {} });
    } finally {
      rmSync(folder, { recursive: true });
    }
  };
  const rest = 'contexts: [{ name: x, context: { cluster: c, user: u } }]\ncurrent-context: x\n';

  test('may merge a map into another', () => {
    const { cluster } = load(`${rest}
clusters:
  - name: first
    cluster: &first { server: https://c.example, disable-compression: true, tls-server-name: other }
  - name: c
    cluster: { <<: *first, tls-server-name: own }
users: [{ name: u, user: { token: t } }]
`);
    assert.deepEqual([cluster.server, cluster['tls-server-name']], ['https://c.example', 'own']);
    assert.equal(cluster['disable-compression'], true);
  });

  test('may have a key twice, of which the last counts, and yes for true, as for Go programs', () => {
    const { cluster, user } = load(`current-context: other
${rest}
clusters: [{ name: c, cluster: { server: https://c.example, insecure-skip-tls-verify: yes } }]
users: [{ name: u, user: { token: first, token: last } }]
`);
    assert.equal(cluster['insecure-skip-tls-verify'], true);
    assert.equal(user.token, 'last');
  });
});
