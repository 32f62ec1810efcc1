/** The driver creates no volumes of the requested size. */
import { defineCause } from './cause.ts';

export const unsupportedSize = defineCause({
  name: 'unsupported-size',
  failures: [
    {
      // CSI specification, CreateVolume errors, "Unsupported capacity_range"
      pattern: /code = OutOfRange /,
      cure: 'Recreate the claim with a size that the driver supports; its message usually names the limits',
    },
    {
      pattern: /created volume capacity \S+ less than requested capacity /,
      cure: 'The driver created a volume that is smaller than requested, which violates the CSI specification, so the provisioner refused it: recreate the claim with a size that the driver creates exactly, and report this to the maintainers of the driver',
    },
  ],
});
