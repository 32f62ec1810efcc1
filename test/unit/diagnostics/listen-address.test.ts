import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseListenAddress } from '../../../src/diagnostics/listen-address.ts';

describe('parseListenAddress', () => {
  const accepted: [string, string, number][] = [
    [':8080', '', 8080],
    [':0', '', 0],
    [':', '', 0],
    ['localhost:80', 'localhost', 80],
    ['127.0.0.1:65535', '127.0.0.1', 65535],
    ['[::]:8080', '::', 8080],
    ['[fe80::1%eth0]:1', 'fe80::1%eth0', 1],
    [':http', '', 80],
    [':HTTPS', '', 443],
    [':+80', '', 80],
    ['[localhost]:1', 'localhost', 1],
  ];
  for (const [text, host, port] of accepted) {
    test(text, () => assert.deepEqual(parseListenAddress(text), { host, port }));
  }

  const rejected: [string, string][] = [
    ['foo', 'address foo: missing port in address'],
    ['[::1]', 'address [::1]: missing port in address'],
    ['[::1]80', 'address [::1]80: missing port in address'],
    ['::1:80', 'address ::1:80: too many colons in address'],
    ['[a]:1:2', 'address [a]:1:2: too many colons in address'],
    ['[::1:80', "address [::1:80: missing ']' in address"],
    ['a[b:80', "address a[b:80: unexpected '[' in address"],
    ['a]b:80', "address a]b:80: unexpected ']' in address"],
    ['[a[b]:80', "address [a[b]:80: unexpected '[' in address"],
    [':65536', 'address 65536: invalid port'],
    [':-1', 'address -1: invalid port'],
    [':nonsense', 'lookup tcp/nonsense: unknown port'],
    ['http://host:80', 'address http://host:80: too many colons in address'],
  ];
  for (const [text, message] of rejected) {
    test(text, () => {
      assert.throws(() => parseListenAddress(text), { name: 'ListenAddressError', message: `listen tcp: ${message}` });
    });
  }
});
