import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { driverCapabilities } from '../../../../src/csi/driver-info.ts';
import { type ClaimRules, PopulatorError, validateClaim } from '../../../../src/csi/create/validate-claim.ts';
import { makeClaim, makeClass } from '../../../support/csi-rig.ts';

const rules: ClaimRules = {
  capabilities: () => driverCapabilities(['CONTROLLER_SERVICE'], ['CREATE_DELETE_VOLUME', 'CLONE_VOLUME']),
  defaultFsType: 'ext4',
  gates: { crossNamespaceVolumeDataSource: false, volumeAttributesClass: true },
  volumeNamePrefix: 'pvc',
  volumeNameUuidLength: -1,
};

/** The text of the failure. */
function refusal(changed: Partial<ClaimRules>, ...[claim, storageClass = makeClass()]: Parameters<typeof check>) {
  try {
    check(claim, storageClass, changed);
    return 'valid';
  } catch (error) {
    return (error as Error).message;
  }
}

function check(claim = makeClaim(), storageClass = makeClass(), changed: Partial<ClaimRules> = {}) {
  return validateClaim({ ...rules, ...changed }, { claim, storageClass });
}

describe('validateClaim', () => {
  test('says what a valid claim asks for', () => {
    const storageClass = makeClass({ type: 'ssd' }, { mountOptions: ['noatime'] });
    assert.deepEqual(check(makeClaim({ dataSource: { kind: 'PersistentVolumeClaim', name: 'src' } }), storageClass), {
      requestedBytes: 5_368_709_120n,
      capabilities: [
        { access_mode: { mode: 'SINGLE_NODE_WRITER' }, mount: { fs_type: 'ext4', mount_flags: ['noatime'] } },
      ],
      storageClass,
      migrated: false,
      fsType: 'ext4',
      source: { kind: 'PersistentVolumeClaim', name: 'src', apiGroup: '', namespace: 'ns1', handling: 'clone' },
    });
  });

  test('a class that was translated says so', () => {
    const translated = makeClass({ type: 'translated' });
    const migration = {
      translateClass: () => translated,
      toInTree: <T>(volume: T) => volume,
      toCsi: <T>(volume: T) => volume,
      holds: () => false,
      hasSource: () => false,
      storageKeys: () => [],
      handleKey: (handle: string) => handle,
    };
    const { migrated, storageClass } = check(makeClaim(), makeClass(), { migration });
    assert.deepEqual([migrated, storageClass], [true, translated]);
  });

  test('the first of many failures wins, in the order of the original', () => {
    const selector = {};
    const elsewhere = { kind: 'PersistentVolumeClaim', name: 'src', namespace: 'other' };
    const noName = { kind: 'PersistentVolumeClaim', name: '' };
    const accessModes = ['Unheard'] as never[];
    const size = { resources: { requests: { storage: 'much' } } };
    const twice = makeClass({ fstype: 'a', fsType: 'b' });
    const incapable = { capabilities: () => driverCapabilities([], []) };
    const broken = {
      migration: {
        translateClass: () => {
          throw new Error('cannot');
        },
        toInTree: <T>(volume: T) => volume,
        toCsi: <T>(volume: T) => volume,
        holds: () => false,
        hasSource: () => false,
        storageKeys: () => [],
        handleKey: (handle: string) => handle,
      },
    };
    const nameless = { volumeNamePrefix: '' };
    const all = { selector, accessModes, ...size };
    const seen = [
      refusal({ ...broken, ...incapable, ...nameless }, makeClaim({ ...all, dataSourceRef: elsewhere }), twice),
      refusal({ ...broken, ...incapable, ...nameless }, makeClaim({ ...all, dataSource: noName }), twice),
      refusal({ ...incapable, ...nameless }, makeClaim({ ...all, dataSource: noName }), twice),
      refusal({ ...incapable, ...nameless }, makeClaim(all), twice),
      refusal(nameless, makeClaim(all), twice),
      refusal(nameless, makeClaim({ accessModes, ...size }), twice),
      refusal({}, makeClaim({ accessModes, ...size }), twice),
      refusal({}, makeClaim({ accessModes, ...size })),
      refusal({}, makeClaim({ accessModes })),
      refusal({}, makeClaim()),
    ];
    const wanted = [
      /^dataSourceRef namespace specified but /,
      /^failed to translate storage class: cannot$/,
      /^the PVC source not found for PVC c1$/,
      /plugin CONTROLLER_SERVICE capability is not reported$/,
      /^claim Selector is not supported$/,
      /^volume name prefix cannot be of length 0$/,
      /^fstype specified in parameters with both /,
      /much/,
      /^unsupported AccessMode combination: \[Unheard\]$/,
      /^valid$/,
    ];
    for (const [index, want] of wanted.entries()) assert.match(seen[index] ?? '', want);
  });

  test('a claim that a populator fills is left to it, whatever the driver lacks', () => {
    const dataSourceRef = { apiGroup: 'example.com', kind: 'Filler', name: 'f' };
    assert.throws(
      () => check(makeClaim({ dataSourceRef }), makeClass(), { capabilities: () => driverCapabilities([], []) }),
      PopulatorError,
    );
  });
});
