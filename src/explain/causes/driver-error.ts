/** It fails in the driver or the provisioner. */
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
      pattern: /infeasible error|code = InvalidArgument /,
      cure: 'The driver cannot create such a volume: correct the class or the claim, and recreate it, as it cannot be edited',
    },
    {
      pattern: /^An earlier attempt may have left a volume/,
      cure: 'See "A record that is stuck" in docs/troubleshooting.md',
    },
    { pattern: /(?:)/, cure: "See the log of the driver's controller, and docs/troubleshooting.md for this text" },
  ],
});

export function checkFailed(facts: ClaimFacts): FailedAttempt | undefined {
  const { failed } = attempts(facts);
  return failed && { failed };
}
