/** The attempt fails in the driver or the provisioner. */
import { attempts, type FailedAttempt } from '../attempts.ts';
import type { ClaimFacts } from '../claim-facts-reader.ts';
import { defineCause } from './cause.ts';

export const driverError = defineCause({
  name: 'driver-error',
  failures: [
    {
      pattern: /code = Unavailable /,
      cure: "Check that the driver's container runs beside the sidecar, and see its log",
    },
    {
      pattern: /code = DeadlineExceeded /,
      cure: 'Usually nothing at first: the driver may still be creating the volume, and is called again. If it lasts, see the log of its controller, and whether the storage responds; raise --timeout of the provisioner if volumes take longer',
    },
    {
      pattern: /code = Aborted /,
      cure: 'Usually nothing at first: the driver is still at work on an earlier call, and is called again. If it lasts, see the log of its controller',
    },
    {
      pattern: /code = (Unauthenticated|PermissionDenied) /,
      cure: "Check the credentials and permissions with which the driver uses the storage: in the Secret that the class names, or in the driver's own configuration",
    },
    {
      pattern: /code = InvalidArgument .*(secret|credential)/is,
      cure: 'Compare the keys of the Secret that the class names with the documentation of the driver; csi-provisioner why, with the permission to get the Secret, lists those that it has',
    },
    {
      pattern: /code = AlreadyExists /,
      cure: 'The storage has another volume of this name: if nobody needs it, delete it there; or recreate the claim, so that its volume gets another name',
    },
    {
      pattern: /infeasible error|code = InvalidArgument /,
      cure: 'The driver cannot create such a volume: recreate the claim with other values. If the class is wrong, delete it and create it again before',
    },
    {
      pattern: /^An earlier attempt may have left a volume/,
      cure: 'See "A record that is stuck" in docs/troubleshooting.md',
    },
    {
      pattern: /(?:)/,
      cure: "See the log of the driver's controller, and search docs/troubleshooting.md for this text",
    },
  ],
});

export function checkFailed(facts: ClaimFacts): FailedAttempt | undefined {
  const { failed } = attempts(facts);
  return failed && { failed };
}
