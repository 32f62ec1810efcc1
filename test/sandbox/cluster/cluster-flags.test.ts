import assert from 'node:assert/strict';
import path from 'node:path';
import { describe, test } from 'node:test';
import { parseClusterFlags } from '../../../sandbox/cluster/cluster-flags.ts';

describe('the flags of csi-sandbox', () => {
  test('by default a sample driver, any port, a temporary kubeconfig, and everybody may do everything', () => {
    assert.deepEqual(parseClusterFlags([]), {
      kind: 'run',
      command: [],
      rbac: false,
      options: {
        sidecarFlags: [],
        faults: [],
        faultFile: undefined,
        sandbox: { api: { port: 0, faults: false }, rbac: false },
      },
    });
  });

  test('reads each of them, and a command after --', () => {
    const flags = ['--csi-address=unix:///run/my.sock', '--port=8001', '--kubeconfig', '/tmp/k', '--log=/tmp/no/logs'];
    const more = ['--nodes=3', '--rbac', '--sidecar-flag=--v=5', '--sidecar-flag=--strict-topology', '--faults'];
    assert.deepEqual(
      parseClusterFlags([
        ...flags,
        ...more,
        '--data=/tmp/d',
        '--fault=CreateVolume:drop:1',
        '--fault-file=/tmp/f',
        '--',
        'npm',
        'test',
        '--',
        '--help',
      ]),
      {
        kind: 'run',
        command: ['npm', 'test', '--', '--help'],
        rbac: true,
        options: {
          driverSocket: '/run/my.sock',
          logFolder: '/tmp/no/logs',
          sidecarFlags: ['--v=5', '--strict-topology'],
          faults: [{ method: 'CreateVolume', action: { kind: 'drop' }, left: 1 }],
          faultFile: '/tmp/f',
          sandbox: {
            api: { port: 8001, faults: true, persistence: { path: '/tmp/d' } },
            rbac: true,
            nodes: 3,
            kubeconfigPath: '/tmp/k',
          },
        },
      },
    );
    assert.deepEqual(parseClusterFlags(['--port=1', '-h']), { kind: 'help' });
  });

  test('reads nodes with their topology, sockets of node plugins, parameters of the classes and a limit', () => {
    const asked = parseClusterFlags([
      ...['--node=a=example.com/zone=north,example.com/rack=7', '--node', 'b', '--wait=1m30s'],
      ...['--node-csi-address=a=/run/a.sock', '--node-csi-address=unix:///run/all.sock'],
      ...['--class-parameter=type=fast', '--class-parameter=note=a=b'],
    ]);
    assert.ok(asked.kind === 'run');
    const { nodes, nodeSockets, classParameters, waitMs } = asked.options;
    assert.deepEqual(nodes, [
      { name: 'a', segments: { 'example.com/zone': 'north', 'example.com/rack': '7' } },
      { name: 'b', segments: {} },
    ]);
    assert.deepEqual(nodeSockets, [
      { node: 'a', socketPath: '/run/a.sock' },
      { node: undefined, socketPath: '/run/all.sock' },
    ]);
    assert.deepEqual(classParameters, { type: 'fast', note: 'a=b' });
    assert.equal(waitMs, 90_000);
  });

  for (const [address, want] of [
    ['/run/csi.sock', '/run/csi.sock'],
    ['unix:/run/csi.sock', '/run/csi.sock'],
    ['unix:///run/csi.sock', '/run/csi.sock'],
    ['csi.sock', path.resolve('csi.sock')],
  ] as const) {
    test(`takes ${address} for the socket ${want === address ? 'itself' : want}`, () => {
      const asked = parseClusterFlags(['--csi-address', address]);
      assert.equal(asked.kind === 'run' && asked.options.driverSocket, want);
    });
  }

  for (const { args, want } of [
    { args: ['--csi-address='], want: /^--csi-address is empty/ },
    { args: ['--csi-address=tcp://host:1'], want: /^--csi-address: tcp:\/\/host:1 is no unix socket/ },
    { args: [`--csi-address=/${'x'.repeat(107)}`], want: /^--csi-address: .* is longer than the 107 bytes/ },
    { args: ['--port=http'], want: /^--port: "http" is no whole number from 0 to 65535$/ },
    { args: ['--nodes=1001'], want: /^--nodes: "1001" is no whole number from 0 to 1000$/ },
    { args: ['--fault=CreateVolume:lose'], want: /^--fault: "lose" is no action: it must be / },
    { args: ['--kubeconfig='], want: /^--kubeconfig is empty; give a path$/ },
    { args: [`--log=${import.meta.filename}`], want: /^--log: .* is a file; give a folder$/ },
    { args: ['--socket=/run/csi.sock'], want: /^Unknown option '--socket'.*; see --help$/ },
    { args: ['/run/csi.sock'], want: /^Unexpected argument '\/run\/csi.sock'.*; see --help$/ },
    { args: ['--node='], want: /^--node: "" has no name; give NAME=KEY=VALUE,...$/ },
    { args: ['--node=a=zone'], want: /^--node: "zone" is not KEY=VALUE$/ },
    { args: ['--node=a', '--node=a=k=v'], want: /^--node: a is given twice$/ },
    { args: ['--nodes=2', '--node=a'], want: /^give --nodes or --node, not both$/ },
    { args: ['--node-csi-address=a='], want: /^--node-csi-address has no path; give \[NAME=\]PATH$/ },
    { args: ['--node-csi-address=tcp://a:1'], want: /^--node-csi-address: tcp:\/\/a:1 is no unix socket/ },
    { args: ['--class-parameter=fast'], want: /^--class-parameter: "fast" is not KEY=VALUE$/ },
    { args: ['--wait=60'], want: /^--wait: "60" is no duration such as 60s$/ },
    { args: ['--'], want: /^there is no command after --$/ },
  ]) {
    test(`refuses ${args[0]?.slice(0, 40) ?? ''} in one line`, () => {
      assert.throws(
        () => parseClusterFlags(args),
        ({ name, message }: Error) => name === 'ClusterFlagError' && want.test(message) && !message.includes('\n'),
      );
    });
  }
});
