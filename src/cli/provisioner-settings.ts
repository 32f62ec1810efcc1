import type { VolumeAttachment } from '../csi/attachments.ts';
import type { CsiProvisionerOptions } from '../csi/csi-provisioner-options.ts';
import { provisionerIdentity } from '../csi/identity.ts';
import { driverMigration } from '../csi/migration/driver-migration.ts';
import type { ReferenceGrant } from '../provision/reference-grant.ts';
import type { PlanWaits } from '../csi/plan-waits.ts';
import type { OpenSource } from '../csi/sources/open-source.ts';
import type { TopologyHook } from '../csi/topology/topology-hook.ts';
import type { Lister } from '../kube/cache/lister.ts';
import type { AttributesClassesFeature } from './features/attributes-classes-feature.ts';
import type { FeatureOptions } from './run-phase-options.ts';

/** The options of the CSI provisioner, from the configuration. */
export function provisionerSettings(
  { config, driver, client, informers, recorder, clock, logger }: FeatureOptions,
  parts: {
    attachments: Lister<VolumeAttachment>;
    grants: Lister<ReferenceGrant> | undefined;
    attributesClasses: AttributesClassesFeature;
    topology: TopologyHook | undefined;
    plannedSources: () => Iterable<OpenSource>;
    planWaits: PlanWaits;
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
    progress: driver.progress,
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
      volumeAttributesClass: featureGates.volumeAttributesClass,
    },
    attributesClasses: parts.attributesClasses.api,
    topology: parts.topology,
    plannedSources: parts.plannedSources,
    planWaits: parts.planWaits,
    migration: driverMigration(driver.name),
  };
}
