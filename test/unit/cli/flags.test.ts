import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { findFlag, flagList, isBoolean, placeholderOf } from '../../../src/cli/flags.ts';

/** The flags of the Go sidecar v6.4: name, kind, default, class of error texts (G: terse). Deployments depend on each of them. */
const contract = `
automaxprocs unused-bool - P
capacity-for-immediate-binding bool false P
capacity-ownerref-level int 1 P
capacity-poll-interval duration 1m P
capacity-threads uint 1 P
cloning-protection-threads uint 1 P
controller-publish-readonly bool false P
csi-address string /run/csi/socket G
default-fstype string - P
enable-capacity bool false P
enable-pprof bool false P
extra-create-metadata bool false P
feature-gates gates - P
http-endpoint string - G
immediate-topology bool true P
kube-api-burst int 10 G
kube-api-capacity-burst int 5 P
kube-api-capacity-qps float32 1 P
kube-api-qps float 5 G
kubeconfig string - G
leader-election bool false G
leader-election-labels labels - G
leader-election-lease-duration duration 15s G
leader-election-namespace string - G
leader-election-renew-deadline duration 10s G
leader-election-retry-period duration 5s G
log-flush-frequency duration 5s P
log-json-info-buffer-size quantity 0 P
log-json-split-stream bool false P
log-text-info-buffer-size quantity 0 P
log-text-split-stream bool false P
logging-format string text P
master string - P
metrics-address string - G
metrics-path string /metrics G
node-deployment bool false P
node-deployment-base-delay duration 20s P
node-deployment-immediate-binding bool true P
node-deployment-max-delay duration 60s P
prevent-volume-mode-conversion bool true P
retry-interval-max duration 5m P
retry-interval-start duration 1s P
snapshot-orphan-sweep-interval duration 5m P
strict-topology bool false P
timeout duration 10s P
v verbosity 0 P
version bool false G
vmodule vmodule - P
volume-name-prefix string pvc P
volume-name-uuid-length int -1 P
worker-threads uint 100 P
`;

describe('the table of flags', () => {
  test('has every flag of the Go sidecar with its kind, default and class', () => {
    const ours = flagList
      .filter(([, spec]) => spec.since === undefined)
      .map(([name, spec]) => `${name} ${spec.kind} ${spec.default || '-'} ${spec.isTerse === true ? 'G' : 'P'}`);
    assert.deepEqual(ours.toSorted(), contract.trim().split('\n'));
  });

  for (const [name, spec] of flagList) {
    test(`--${name} names its value unless it is a boolean`, () => {
      assert.equal(placeholderOf(spec) === undefined, isBoolean(spec));
    });
  }

  test('v is the only flag of one letter', () => {
    assert.deepEqual(flagList.filter(([name, spec]) => name.length === 1 || spec.shorthand !== undefined).length, 1);
    assert.equal(findFlag('v')?.shorthand, 'v');
  });

  test('names of JavaScript objects are no flags', () => {
    for (const name of ['constructor', '__proto__', 'toString', '']) assert.equal(findFlag(name), undefined);
  });
});
