import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { leadingFlags, parseFlags, UsageError, usageText } from '../../../provisioners/nfs-server/flags.ts';
import { readSettings, type Settings } from '../../../provisioners/nfs-server/settings.ts';

const settingsOf = (...args: string[]): Settings => readSettings(parseFlags(args)!, {});

describe('the command line of nfs-provisioner', () => {
  test('has the defaults of the original', () => {
    const settings = settingsOf();
    assert.partialDeepStrictEqual(settings, {
      provisionerName: 'example.com/nfs',
      mode: 'own-ganesha',
      gracePeriodS: 90,
      xfsQuota: false,
      exportSubnet: '*',
      maxExports: undefined,
      deviceBasedFsids: true,
      leaderElect: false,
      paths: {
        exportDirectory: '/export',
        config: '/export/vfs.conf',
        log: '/export/ganesha.log',
        pid: '/var/run/ganesha.pid',
        identity: '/export/nfs-provisioner.identity',
        projects: '/export/projects',
      },
    });
  });

  for (const args of [
    ['-provisioner=example.com/x', '-max-exports', '3', '-leader-elect'],
    ['--provisioner', 'example.com/x', '--max-exports=3', '--leader-elect=t'],
  ]) {
    test(`reads ${args.join(' ')}`, () => {
      const { provisionerName, maxExports, leaderElect } = settingsOf(...args);
      assert.deepEqual([provisionerName, maxExports, leaderElect], ['example.com/x', 3, true]);
    });
  }

  test('takes a value of a boolean only after an equals sign', () => {
    assert.throws(() => settingsOf('-leader-elect', 'false'), /unexpected argument "false"/);
  });

  test("accepts the flags of the original's logging library", () => {
    assert.equal(settingsOf('-v=4', '-logtostderr', '-stderrthreshold=INFO').verbosity, 4);
  });

  test('gives its help for -h', () => {
    assert.equal(parseFlags(['-h']), undefined);
    assert.match(usageText(), /-grace-period\n\s+grace period .* \(default 90\)/);
  });

  for (const { args, message } of [
    { args: ['-failed-retry-threshold=3'], message: /flag provided but not defined: -failed-retry-threshold/ },
    { args: ['-run-server=yes'], message: /invalid boolean value "yes" for -run-server/ },
    { args: ['-max-exports=many'], message: /invalid value "many" for flag -max-exports/ },
    { args: ['-provisioner'], message: /flag needs an argument: -provisioner/ },
    { args: ['-use-ganesha=false'], message: /-run-server=true needs -use-ganesha=true/ },
    { args: ['-grace-period=181'], message: /-grace-period 181 is not between 0 and 180/ },
    { args: ['-grace-period=10', '-run-server=false'], message: /-grace-period 10 needs -run-server=true/ },
    { args: ['-server-hostname=nas'], message: /-server-hostname is for a provisioner outside of the cluster/ },
    { args: ['-provisioner='], message: /-provisioner "" is not a qualified name/ },
    { args: ['-provisioner=a b'], message: /-provisioner "a b" is not a qualified name/ },
    { args: ['-provisioner=a/b/c'], message: /not a qualified name/ },
    { args: ['-export-dir=exports'], message: /-export-dir "exports" is not usable/ },
    { args: ['-export-dir=/a b'], message: /-export-dir "\/a b" is not usable/ },
    { args: ['-probe-interval=30'], message: /-probe-interval 30 and -probe-timeout 30 do not fit/ },
    { args: ['-probe-interval=-1'], message: /give an interval of 0 for no probes/ },
    { args: ['-intent-journal=on'], message: /-intent-journal "on" is neither/ },
    {
      args: ['-intent-journal=configmap'],
      message: /-intent-journal "configmap" is not possible: .*use lease, or off/,
    },
  ]) {
    test(`refuses ${args.join(' ')}`, () => {
      assert.throws(
        () => settingsOf(...args),
        (error) => error instanceof UsageError && message.test(error.message),
      );
    });
  }

  test('takes a provisioner name in upper case, which the API server may have', () => {
    assert.equal(settingsOf('-provisioner=Example.com/NFS').provisionerName, 'Example.com/NFS');
  });

  test('probes every ten seconds, and not where the interval is 0', () => {
    assert.deepEqual(settingsOf().probe, { intervalMs: 10_000, silentMs: 30_000 });
    assert.equal(settingsOf('-probe-interval=0').probe, undefined);
  });

  test('drives the server of the kernel where nothing is to be started', () => {
    assert.equal(settingsOf('-run-server=false', '-use-ganesha=false').mode, 'kernel');
    assert.equal(settingsOf('-run-server=false').mode, 'foreign-ganesha');
  });

  test('ends for a subcommand at the first argument that is no value of a flag', () => {
    const { flags, rest } = leadingFlags(['-provisioner', 'audit', '-leader-elect', 'audit', '--yes'])!;
    assert.deepEqual([flags.provisioner, flags['leader-elect'], rest], ['audit', true, ['audit', '--yes']]);
    assert.throws(() => parseFlags(['audit']), /unexpected argument "audit": flags begin with a dash/);
  });
});
