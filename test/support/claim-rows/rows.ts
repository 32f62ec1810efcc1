/** All rows. Each subject has its file. */
import { binding } from './binding.ts';
import { drivers } from './drivers.ts';
import { healthy } from './healthy.ts';
import { healthyOwners, neverMade } from './never-made.ts';
import { pods } from './pods.ts';
import type { Row } from './row.ts';
import { snapshots } from './snapshots.ts';
import { sources } from './sources.ts';

export const rows: readonly Row[] = [
  ...pods,
  ...binding,
  ...neverMade,
  ...sources,
  ...snapshots,
  ...drivers,
  ...healthy,
  ...healthyOwners,
];
