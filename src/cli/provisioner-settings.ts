import type { VolumeAttachment } from '../csi/attachments.ts';
import type { CsiProvisionerOptions } from '../csi/csi-provisioner-options.ts';
import { provisionerIdentity } from '../csi/identity.ts';
import { driverMigration } from '../csi/migration/driver-migration.ts';
import type { ReferenceGrant } from '../csi/sources/reference-grants.ts';
import type { TopologyHook } from '../csi/topology/topology-hook.ts';
import type { Lister } from '../kube/lister.ts';
import type { FeatureOptions } from './run-phase-options.ts';

/** The options of the CSI provisioner, from the configuration. */
export function provisionerSettings(
  { config, driver, client, informers, recorder, clock, logger }: FeatureOptions,
  parts: {
    attachments: Lister<VolumeAttachment>;
    grants: Lister<ReferenceGrant> | undefined;
    attributesClasses: () => boolean;
    topology: TopologyHook | undefined;
  },
): CsiProvisionerOptions {
  const { provisioning, featureGates } = config;
  return {
    driverName: driver.name,
    identity: provisionerIdentity({
      driverName: driver.name,
      wallMs: clock.wallMs(),
      random: Math.random(),
      nodeName: config.nodeDeployment?.nodeName,
    }),
    capabilities: () => driver.capabilities,
    controller: driver.calls,
    client,
    claims: informers.claims,
    classes: informers.classes,
    attachments: parts.attachments,
    referenceGrants: parts.grants,
    recorder,
    logger,
    clock,
    timeoutMs: config.csiTimeoutMs,
    volumeNamePrefix: provisioning.volumeNamePrefix,
    volumeNameUuidLength: provisioning.volumeNameUuidLength,
    defaultFsType: provisioning.defaultFsType,
    extraCreateMetadata: provisioning.extraCreateMetadata,
    controllerPublishReadOnly: provisioning.controllerPublishReadOnly,
    preventVolumeModeConversion: provisioning.preventVolumeModeConversion,
    gates: {
      crossNamespaceVolumeDataSource: featureGates.crossNamespaceVolumeDataSource,
      volumeAttributesClass: parts.attributesClasses,
    },
    topology: parts.topology,
    migration: driverMigration(driver.name),
  };
}
