/** Test files that do not share a process with others, by what they do to it, or need of it. */
export const ownProcess: Readonly<Record<string, string>> = {
  // what the whole process has
  'test/integration/cli/leader-election.test.ts': 'sets an environment variable',
  'test/integration/kube/client/connect.test.ts': 'replaces the environment',
  'test/integration/nfs-server/directory-lock.test.ts': 'sets PATH',
  'test/integration/nfs-server/kernel-exports.test.ts': 'sets PATH',
  'test/integration/nfs-server/project-quota.test.ts': 'sets PATH',
  'test/integration/nfs-server/lost-quotas.test.ts': 'sets PATH',
  'test/integration/nfs-subdir/provision.test.ts': 'sets the umask',
  'test/integration/nfs-subdir/share-identity.test.ts': 'sets the umask',
  'test/unit/base/opened-directory.test.ts': 'sets the umask',
  'test/integration/alerts.test.ts': 'awaits at its top level',
  'test/integration/charts/charts.test.ts': 'awaits at its top level',
  'test/integration/charts/nfs-server-chart.test.ts': 'awaits at its top level',
  'test/integration/charts/nfs-subdir-chart.test.ts': 'awaits at its top level',
  'test/integration/charts/original-charts.test.ts': 'awaits at its top level',
  'test/sandbox/api/validation.test.ts': 'awaits at its top level',
  'test/sandbox/page.test.ts': 'awaits at its top level',
  // what others would disturb
  'test/integration/cli/status-page-load.test.ts': 'measures the event loop',
  'test/integration/diagnostics/profiles.test.ts': 'profiles its process',
  'test/unit/base/collect-garbage.test.ts': 'measures the heap',
  'test/unit/base/short-value.test.ts': 'measures the heap',
  'test/unit/provision/cache/claim-budget.test.ts': 'collects garbage, which takes long in a large heap',
};

/** Test files that take more than some 15 s, longest first; they have processes of their own. */
export const takeLong: readonly string[] = [
  'test/package/package.test.ts',
  'test/integration/provision/soak.test.ts',
  'test/integration/csi/hostile-driver.test.ts',
  'test/sandbox/check/broken-drivers.test.ts',
  'test/sandbox/check/check-program.test.ts',
  'test/sandbox/cluster/csi-sandbox.test.ts',
  'test/integration/secrets-never-leak.test.ts',
  'test/integration/nfs-server/audit.test.ts',
  'test/unit/provision/intent-journal/model.test.ts',
  'test/e2e/audit.test.ts',
  'test/integration/provision/intent-journal/record-age.test.ts',
  'test/e2e/nfs-server-scale.test.ts',
  'test/integration/nfs-subdir/hang.test.ts',
  'test/e2e/why.test.ts',
  'test/sandbox/hostpath/hostpath-driver.test.ts',
  'test/package/examples.test.ts',
  'test/integration/diagnostics/status-page-browser.test.ts',
  'test/sandbox/chaos.test.ts',
  'test/unit/provision/intent-journal/model-guards.test.ts',
];
