import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { applyFeatureGates } from '../../../src/cli/feature-gates.ts';

function apply(asked: Record<string, boolean>): ReturnType<typeof applyFeatureGates> {
  return applyFeatureGates(new Map(Object.entries(asked)));
}

describe('applyFeatureGates', () => {
  test('defaults, with the lease released on exit', () => {
    assert.deepEqual(apply({}), {
      gates: {
        topology: true,
        volumeAttributesClass: true,
        crossNamespaceVolumeDataSource: false,
        releaseLeaderElectionOnExit: true,
        volumeAttributesClassNamed: false,
      },
      notices: [],
    });
  });

  test('AllAlpha sets the alpha gates that are not set themselves', () => {
    const { gates } = apply({ AllAlpha: true });
    assert.equal(gates.crossNamespaceVolumeDataSource, true);
    assert.equal(
      apply({ AllAlpha: true, CrossNamespaceVolumeDataSource: false }).gates.crossNamespaceVolumeDataSource,
      false,
    );
    assert.equal(apply({ AllAlpha: false }).gates.releaseLeaderElectionOnExit, false);
    assert.equal(apply({ AllAlpha: false, ReleaseLeaderElectionOnExit: true }).gates.releaseLeaderElectionOnExit, true);
  });

  test('AllBeta changes none of ours', () => {
    assert.deepEqual(apply({ AllBeta: true }).gates, apply({}).gates);
    assert.deepEqual(apply({ AllBeta: false }).gates, apply({}).gates);
  });

  test('either value of VolumeAttributesClass counts as a decision', () => {
    assert.equal(apply({ VolumeAttributesClass: true }).gates.volumeAttributesClassNamed, true);
    const off = apply({ VolumeAttributesClass: false }).gates;
    assert.equal(off.volumeAttributesClassNamed, true);
    assert.equal(off.volumeAttributesClass, false);
  });

  test('setting a GA gate is a warning', () => {
    assert.deepEqual(apply({ Topology: false }).notices, [
      {
        level: 'info',
        fields: { featureGate: 'Topology', value: false },
        message: 'Warning: setting GA feature gate. It will be removed in a future release.',
      },
    ]);
  });

  test('setting a deprecated gate is a warning', () => {
    assert.match(apply({ SeparateCacheWatchRPC: false }).notices[0]?.message ?? '', /setting deprecated feature gate/);
  });

  test('gates of the Go libraries are accepted without effect', () => {
    for (const name of ['WatchList', 'ComponentStatusz', 'CoordinatedLeaderElection']) {
      assert.deepEqual(apply({ [name]: true }), apply({}));
    }
  });

  const fatal: [Record<string, boolean>, string][] = [
    [{ Foo: true }, 'unrecognized feature gate: Foo'],
    [{ topology: true }, 'unrecognized feature gate: topology'],
    [{ LoggingAlphaOptions: true }, 'unrecognized feature gate: LoggingAlphaOptions'],
    [{ ContextualLogging: true }, 'unrecognized feature gate: ContextualLogging'],
    [{ APIServerTracing: false }, 'cannot set feature gate APIServerTracing to false, feature is locked to true'],
    [
      { SeparateCacheWatchRPC: true },
      'cannot set feature gate SeparateCacheWatchRPC to true, feature is locked to false',
    ],
  ];
  for (const [asked, line] of fatal) {
    test(line, () => assert.throws(() => apply(asked), { name: 'ExitError', code: 255, severity: 'fatal', line }));
  }
});
