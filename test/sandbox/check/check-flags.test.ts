import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { catalogue, chosen } from '../../../sandbox/check/catalogue.ts';
import { CheckFlagError, checkUsage, parseCheckFlags } from '../../../sandbox/check/check-flags.ts';

const address = '--csi-address=/tmp/csi.sock';

describe('the flags of csi-sandbox check', () => {
  const wrong: { flags: string[]; says: RegExp }[] = [
    { flags: [], says: /--csi-address is missing; give the path/ },
    { flags: ['--csi-address=tcp://host:1'], says: /--csi-address: tcp:\/\/host:1 is no unix socket/ },
    { flags: [address, '--class-parameter=kind'], says: /--class-parameter: "kind" is not KEY=VALUE/ },
    { flags: [address, '--secret=hunter2'], says: /--secret: its value is not KEY=VALUE/ },
    { flags: [address, '--node=far=zone'], says: /--node: "far=zone" is not NAME=KEY=VALUE/ },
    { flags: [address, '--node=far=zone=b', '--node=far=zone=c'], says: /--node: far is given twice/ },
    { flags: [address, '--size=big'], says: /--size: "big" is no size/ },
    { flags: [address, '--timeout=0s'], says: /--timeout: "0s" is no duration/ },
    { flags: [address, '--wait=soon'], says: /--wait: "soon" is no duration/ },
    { flags: [address, '--only=nothing'], says: /--only: there is no check "nothing"; --list/ },
    {
      flags: [address, '--junit=/no/such/folder/x.xml'],
      says: /--junit: there is no folder \/no\/such\/folder; make it/,
    },
    { flags: [address, '--driver-command= '], says: /--driver-command is empty/ },
    { flags: [address, '--node-driver-command=./driver'], says: /--node-driver-command must use \$CSI_ADDRESS/ },
    { flags: [address, '--strong'], says: /Unknown option '--strong'.*; see csi-sandbox check --help/ },
  ];
  for (const { flags, says } of wrong) {
    test(`${flags.slice(-1).join('') || 'no flag'} is refused with what is wrong and what to do`, () => {
      assert.throws(
        () => parseCheckFlags(flags),
        (error: Error) => error instanceof CheckFlagError && says.test(error.message),
      );
    });
  }

  test('--sanity stands alone, or with a program', () => {
    const sanity = (...flags: string[]): unknown => {
      const asked = parseCheckFlags([address, ...flags]);
      return asked.kind === 'run' && asked.settings.sanity;
    };
    assert.equal(sanity(), undefined);
    assert.equal(sanity('--sanity'), '');
    assert.equal(sanity('--sanity', '--strict'), '');
    assert.equal(sanity('--sanity', '/bin/csi-sanity'), '/bin/csi-sanity');
    assert.equal(sanity('--sanity=/bin/csi-sanity'), '/bin/csi-sanity');
  });
});

describe('the list of checks', () => {
  test('has each id once, and before each check what it needs', () => {
    const ids = catalogue.map(({ id }) => id);
    assert.deepEqual(ids, [...new Set(ids)]);
    for (const { id, needs = [] } of catalogue) {
      for (const needed of needs)
        assert.ok(ids.includes(needed) && ids.indexOf(needed) < ids.indexOf(id), `${id} needs ${needed}`);
    }
  });

  test('brings with a chosen check those that it needs', () => {
    assert.deepEqual(
      chosen(['create-repeat']).map(({ id }) => id),
      ['controller-capabilities', 'create', 'create-repeat'],
    );
  });

  test('has the checks that docs/check-a-driver.md names, and so have the flags', () => {
    const page = readFileSync(path.join(import.meta.dirname, '../../../docs/check-a-driver.md'), 'utf8');
    const ids = new Set(catalogue.map(({ id }) => id));
    const named = [...page.matchAll(/`([a-z]+(?:-[a-z]+)+)`/g)].map(([, id = '']) => id);
    assert.ok(named.length > 15, String(named.length));
    assert.deepEqual(
      named.filter((id) => !ids.has(id)),
      [],
    );
    const flags = new Set([...checkUsage.matchAll(/^ {2}(--[a-z-]+)/gm)].map(([, flag]) => flag));
    const flagsNamed = [...page.matchAll(/`(--[a-z-]+)`/g)].map(([, flag]) => flag);
    assert.ok(flagsNamed.length > 10, String(flagsNamed.length));
    assert.deepEqual(
      flagsNamed.filter((flag) => !flags.has(flag) && flag !== '--node-deployment'),
      [],
    );
  });
});
