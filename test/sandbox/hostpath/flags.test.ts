import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { FlagError, parseFlags, usage } from '../../../sandbox/hostpath/flags.ts';

const needed = ['--csi-address', 'unix:///run/csi.sock', '--state-dir', '/var/state'];

describe('parseFlags', () => {
  test('gives defaults for all but the address and the state directory', () => {
    const { capabilities, ...options } = parse([]);
    assert.deepEqual(options, {
      socketPath: '/run/csi.sock',
      stateDir: '/var/state',
      driverName: 'hostpath.csi.k8s.io',
      nodeIds: ['localhost'],
      capacityBytes: 2n ** 50n,
      topology: new Map(),
      mutableParameters: ['iops', 'throughput', 'tier'],
      namedIds: false,
      maxConnectionAgeMs: undefined,
      callLog: false,
    });
    assert.equal(capabilities.controller.has('PUBLISH_UNPUBLISH_VOLUME'), false);
  });

  test('collects repeated topology by key, in order', () => {
    const { topology } = parse(['--topology', 'zone=a', '--topology', 'disk=ssd', '--topology', 'zone=b']);
    assert.deepEqual(
      [...topology],
      [
        ['zone', ['a', 'b']],
        ['disk', ['ssd']],
      ],
    );
  });

  test('reads the rest', () => {
    const options = parse([
      '--attach',
      '--call-log',
      '--capacity=5Gi',
      '--node-id=a',
      '--node-id=b',
      '--driver-name=x.y',
    ]);
    assert.equal(options.capabilities.controller.has('PUBLISH_UNPUBLISH_VOLUME'), true);
    assert.deepEqual([options.callLog, options.driverName, options.capacityBytes], [true, 'x.y', 5n << 30n]);
    assert.deepEqual(options.nodeIds, ['a', 'b']);
  });

  for (const address of ['/run/csi.sock', 'unix:/run/csi.sock', 'unix:///run/csi.sock']) {
    test(`${address} is an address`, () => {
      const options = parseFlags(['--csi-address', address, '--state-dir', '/s']);
      assert.ok(options !== 'help');
      assert.equal(options.socketPath, '/run/csi.sock');
    });
  }

  const refused: { argv: string[]; message: RegExp }[] = [
    { argv: [], message: /^--csi-address is required$/ },
    { argv: ['--csi-address', '/a'], message: /^--state-dir is required$/ },
    { argv: ['--csi-address', 'csi.sock', '--state-dir', '/s'], message: /neither unix/ },
    { argv: ['--csi-address', `/${'x'.repeat(107)}`, '--state-dir', '/s'], message: /at most 107 bytes/ },
    { argv: [...needed, '--driver-name', '-x'], message: /^Option '--driver-name' argument is ambiguous$/ },
    { argv: [...needed, '--driver-name', 'a_b/c'], message: /not a CSI driver name/ },
    { argv: [...needed, '--capacity', '5Gigs'], message: /^--capacity: 5Gigs is not a size$/ },
    { argv: [...needed, '--topology', 'zone'], message: /^--topology: zone is not KEY=VALUE$/ },
    { argv: [...needed, '--topology', '=a'], message: /not KEY=VALUE/ },
    { argv: [...needed, '--capabilities-off', 'X'], message: /^--capabilities-off: unknown capability X$/ },
    { argv: [...needed, '--max-connection-age', '2'], message: /^--max-connection-age: 2 is not a duration$/ },
    { argv: [...needed, '--max-connection-age=-2s'], message: /^--max-connection-age: -2s is not a duration$/ },
    { argv: [...needed, '--node-id', ''], message: /^--node-id must not be empty$/ },
    { argv: [...needed, '--bogus'], message: /^Unknown option '--bogus'$/ },
    { argv: [...needed, 'extra'], message: /extra/ },
  ];
  for (const { argv, message } of refused) {
    test(`refuses ${argv.join(' ').slice(0, 80)}`, () => {
      assert.throws(
        () => parseFlags(argv),
        (error) => error instanceof FlagError && message.test(error.message) && !error.message.includes('\n'),
      );
    });
  }

  test('explains every flag', () => {
    assert.equal(parseFlags(['--help']), 'help');
    const flags = ['csi-address', 'state-dir', 'driver-name', 'node-id', 'capacity', 'topology', 'mutable-parameters'];
    for (const flag of [...flags, 'capabilities-off', 'attach', 'call-log'])
      assert.match(usage, new RegExp(`--${flag} `));
  });
});

function parse(argv: string[]) {
  const options = parseFlags([...needed, ...argv]);
  assert.ok(options !== 'help');
  return options;
}
