/** Annotations that remember, on the volume, which secret its deletion needs. */
export const deletionSecretName = 'volume.kubernetes.io/provisioner-deletion-secret-name';
export const deletionSecretNamespace = 'volume.kubernetes.io/provisioner-deletion-secret-namespace';

/** Annotations that name the secret for ControllerModifyVolume, read by other sidecars. */
export const modifySecretName = 'volume.kubernetes.io/controller-modify-secret-name';
export const modifySecretNamespace = 'volume.kubernetes.io/controller-modify-secret-namespace';
