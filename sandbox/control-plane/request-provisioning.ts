import { annotation } from './annotations.ts';
import type { BinderContext } from './binder-context.ts';
import { claimClass } from './claim-class.ts';
import { migratedPlugins } from './migrated-plugins.ts';
import { getObject, setAnnotation, updateObject } from './object-access.ts';
import { resources, type Claim } from './objects.ts';

/**
 * Asks the class's provisioner, or the driver that replaced it, for a volume: both annotations on the claim, then the
 * event. A repeat writes the event only. The phase is not touched.
 *
 * @returns the claim as stored.
 * @throws {StatusError} if the claim cannot be written.
 */
export function requestProvisioning(context: BinderContext, claim: Claim): Claim {
  const { client, events } = context;
  const className = claimClass(claim);
  const storageClass = getObject(client, resources.classes, { name: className });
  if (storageClass === undefined) {
    events.warning(claim, 'ProvisioningFailed', `storageclass.storage.k8s.io "${className}" not found`);
    return claim;
  }
  const provisioner = migratedPlugins.get(storageClass.provisioner) ?? storageClass.provisioner;
  if (provisioner.startsWith('kubernetes.io/')) {
    events.warning(claim, 'ProvisioningFailed', `no volume plugin matched name: ${provisioner}`);
    return claim;
  }
  const annotated = annotate(context, claim, provisioner);
  events.normal(
    annotated,
    'ExternalProvisioning',
    `Waiting for a volume to be created either by the external provisioner '${provisioner}' or manually by the system administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered.`,
  );
  return annotated;
}

function annotate({ client }: BinderContext, claim: Claim, provisioner: string): Claim {
  if (claim.metadata.annotations?.[annotation.storageProvisioner] === provisioner) return claim;
  return updateObject(client, resources.claims, claim, (copy) => {
    setAnnotation(copy, annotation.betaStorageProvisioner, provisioner);
    setAnnotation(copy, annotation.storageProvisioner, provisioner);
  });
}
