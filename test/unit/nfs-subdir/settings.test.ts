import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { logLevel, UsageError } from '../../../provisioners/nfs-subdir/logging-flags.ts';
import { readLeaderElection, readSettings, SettingsError } from '../../../provisioners/nfs-subdir/settings.ts';

const complete = { NFS_SERVER: 'srv', NFS_PATH: '/exp', PROVISIONER_NAME: 'example.com/nfs' };
const refused = (message: string | RegExp) => ({ name: SettingsError.name, message });

describe('the environment of nfs-subdir', () => {
  const missing: [string, string][] = [
    ['NFS_SERVER', 'NFS_SERVER not set'],
    ['NFS_PATH', 'NFS_PATH not set'],
    ['PROVISIONER_NAME', 'environment variable PROVISIONER_NAME is not set! Please set it.'],
  ];
  for (const [name, message] of missing) {
    test(`needs ${name}, which may not be empty`, () => {
      assert.throws(() => readSettings({ ...complete, [name]: undefined }), refused(message));
      assert.throws(() => readSettings({ ...complete, [name]: '' }), refused(message));
    });
  }

  test('names what is missing in the order of the original', () => {
    assert.throws(() => readSettings({}), refused('NFS_SERVER not set'));
    assert.throws(() => readSettings({ NFS_SERVER: 's' }), refused('NFS_PATH not set'));
  });

  const paths: [string, string][] = [
    ['/exp/', '/exp'],
    ['/', '/'],
    ['//exp/./a/../b//', '/exp/b'],
  ];
  for (const [given, want] of paths) {
    test(`the export ${given} is ${want}`, () => {
      assert.equal(readSettings({ ...complete, NFS_PATH: given }).sharePath, want);
    });
  }

  test('refuses an export that is not absolute', () => {
    assert.throws(
      () => readSettings({ ...complete, NFS_PATH: 'exp' }),
      refused('NFS_PATH must be an absolute path, not "exp"'),
    );
  });

  test('mounts at /persistentvolumes and elects a leader, unless it says otherwise', () => {
    assert.equal(readSettings(complete).mountPoint, '/persistentvolumes');
    assert.equal(readSettings({ ...complete, MOUNT_POINT: '/mnt' }).mountPoint, '/mnt');
    for (const value of [undefined, '', 'true', 'T']) {
      assert.equal(readLeaderElection({ ENABLE_LEADER_ELECTION: value }), true, value);
    }
    assert.equal(readLeaderElection({ ENABLE_LEADER_ELECTION: 'false' }), false);
    const why = 'Unable to parse ENABLE_LEADER_ELECTION env var: strconv.ParseBool: parsing "maybe": invalid syntax';
    assert.throws(() => readLeaderElection({ ENABLE_LEADER_ELECTION: 'maybe' }), refused(why));
  });
});

describe('the command line of nfs-subdir', () => {
  test('takes the verbosity, with one dash or two', () => {
    assert.equal(logLevel([]), 'info');
    assert.equal(logLevel(['-v=4']), 'debug');
    assert.equal(logLevel(['--v', '9']), 'trace');
    assert.equal(logLevel(['-logtostderr', '-stderrthreshold', 'INFO', '--vmodule=a=1', '-v=0']), 'info');
  });

  for (const args of [['-v=x'], ['-v'], ['--port=1'], ['run'], ['-']]) {
    test(`refuses ${args.join(' ')}`, () => assert.throws(() => logLevel(args), { name: UsageError.name }));
  }
});
