import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { KubeConfigError } from '../../../../src/kube/credentials/kubeconfig-files.ts';
import { proxyFor } from '../../../../src/kube/credentials/proxy.ts';

const proxy = 'http://proxy.example:3128';

function chosen(server: string, environment: Record<string, string>, proxyUrl?: string): string | undefined {
  return proxyFor(new URL(server), { environment, proxyUrl });
}

describe('proxyFor', () => {
  test('takes the variable of the server’s scheme, upper case first', () => {
    const environment = { HTTPS_PROXY: 'http://a', https_proxy: 'http://b', http_proxy: 'http://c' };
    assert.equal(chosen('https://k8s.example', environment), 'http://a');
    assert.equal(chosen('http://k8s.example', environment), 'http://c');
    assert.equal(chosen('https://k8s.example', { HTTPS_PROXY: '', https_proxy: 'http://b' }), 'http://b');
    assert.equal(chosen('https://k8s.example', { HTTP_PROXY: 'http://c' }), undefined);
  });

  test('a proxy without a scheme is one of http', () => {
    assert.equal(chosen('https://k8s.example', { HTTPS_PROXY: 'proxy.example:3128' }), proxy);
  });

  test('a URL that cannot be used is named without its password', () => {
    const notDecodable = ['http://user:se%cret@proxy:3128', 'socks5://user:se%ffcret@proxy:1080'];
    const notUsable = ['http://user:se/cret@proxy:3128', 'ftp://user:se@cret@proxy', 'user:se#cret@proxy:3128'];
    for (const url of [...notUsable, ...notDecodable]) {
      const isBare = ({ message }: Error): boolean => message.includes('@proxy') && !/se.{0,3}cret/.test(message);
      assert.throws(() => chosen('https://k8s.example', { HTTPS_PROXY: url }), isBare);
    }
  });

  test('its scheme may be in upper case', () => {
    assert.equal(chosen('https://k8s.example', {}, 'HTTPS://proxy:3128'), 'https://proxy:3128');
  });

  test('a SOCKS proxy may be named as in Go, too', () => {
    assert.equal(chosen('https://k8s.example', { HTTPS_PROXY: 'socks5h://proxy:1080' }), 'socks5://proxy:1080');
  });

  test('this machine is never behind a proxy from the environment', () => {
    for (const server of ['https://localhost:6443', 'https://127.0.0.1', 'https://127.8.9.10', 'https://[::1]:6443'])
      assert.equal(chosen(server, { HTTPS_PROXY: proxy }), undefined, server);
  });

  test('proxy-url of the kubeconfig overrides the environment, for this machine too', () => {
    const environment = { HTTPS_PROXY: 'http://other', NO_PROXY: '*' };
    assert.equal(chosen('https://k8s.example', environment, 'socks5://proxy:1080'), 'socks5://proxy:1080');
    assert.equal(chosen('https://127.0.0.1:6443', environment, proxy), proxy);
    assert.equal(chosen('https://k8s.example', { HTTPS_PROXY: proxy }, ''), proxy);
  });

  test('what is no proxy is refused by the name of its source', () => {
    assert.throws(
      () => chosen('https://k8s.example', {}, 'ftp://proxy'),
      /^KubeConfigError: proxy-url: "ftp:\/\/proxy"/,
    );
    assert.throws(() => chosen('https://k8s.example', { HTTPS_PROXY: 'http://[' }), KubeConfigError);
  });

  const server = 'https://api.k8s.example:6443';
  const address = 'https://10.96.0.1';
  const address6 = 'https://[fd00::1]';
  const cases = [
    { noProxy: '*', server, direct: true },
    { noProxy: 'api.k8s.example', server, direct: true },
    { noProxy: 'K8S.Example', server, direct: true },
    { noProxy: '.k8s.example', server, direct: true },
    { noProxy: '*.k8s.example', server, direct: true },
    { noProxy: 'other, k8s.example ,more', server, direct: true },
    { noProxy: 's.example', server, direct: false },
    { noProxy: '.api.k8s.example', server, direct: false },
    { noProxy: '*.api.k8s.example', server, direct: false },
    { noProxy: 'api.k8s.example:6443', server, direct: true },
    { noProxy: 'api.k8s.example:443', server, direct: false },
    { noProxy: ' , ,', server, direct: false },
    { noProxy: '10.96.0.1', server: address, direct: true },
    { noProxy: '10.96.0.1:443', server: address, direct: true },
    { noProxy: '10.96.0.1:6443', server: address, direct: false },
    { noProxy: '10.96.0.2', server: address, direct: false },
    { noProxy: '10.96.0.0/12', server: address, direct: true },
    { noProxy: '10.0.0.0/16', server: address, direct: false },
    { noProxy: '10.0.0.0/99', server: address, direct: false },
    { noProxy: '10.0.0.0/', server: address, direct: false },
    { noProxy: '10.96.0.0/12', server, direct: false },
    { noProxy: 'fd00::1', server: address6, direct: true },
    { noProxy: '[fd00::1]', server: address6, direct: true },
    { noProxy: '[fd00::1]:443', server: address6, direct: true },
    { noProxy: '[fd00::1]:6443', server: address6, direct: false },
    { noProxy: 'fd00:0::/64', server: address6, direct: true },
    { noProxy: 'fd01::/64', server: address6, direct: false },
  ];
  for (const { noProxy, server: target, direct } of cases) {
    test(`NO_PROXY=${noProxy} ${direct ? 'lets' : 'does not let'} ${target} be reached straight`, () => {
      for (const name of ['NO_PROXY', 'no_proxy'])
        assert.equal(chosen(target, { HTTPS_PROXY: proxy, [name]: noProxy }), direct ? undefined : proxy);
    });
  }
});
