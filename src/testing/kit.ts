/**
 * `csi-provisioner/testing`: what the author of a provisioner tests it with. The sandbox in a process of its own, claims and volumes that
 * can be waited for, and a suite that kills the provisioner at each step of its work. `docs/testing.md` leads through it.
 */
export { startSandbox, type SandboxSettings, type TestSandbox } from './start-sandbox.ts';
export type { ClaimSketch, TestClaim } from './test-claim.ts';
export type { TestVolume } from './test-volume.ts';
export { testProvisioner } from './test-provisioner.ts';
export type {
  Bench,
  KillMoment,
  ProvisionerCommand,
  ProvisionerStart,
  TestProvisionerOptions,
  VolumeData,
} from './conformance-options.ts';
