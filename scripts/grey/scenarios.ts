import { deadBackend, deadBackendOfLeader, standingServer } from './standing-server.ts';
import { flood, hangingCalls, slowFailures, strangers, throttled } from './floods.ts';
import { all, atMost, type Goal, type Measured, noMoreThanPeer, yes } from './goals.ts';
import { hangingRequests, kindNames } from './hanging-request.ts';
import type { Run } from './stage.ts';

/** One line of the table. */
export interface Line {
  what: string;
  goal: Goal;
  /** The goal of the short form, which is also to be reached on slow machines. Default: the same. */
  shortGoal?: Goal;
}

/** A result for each line, undefined for one that the short form leaves out. */
export type Results = readonly (Measured | undefined)[];

/** What happens to a sidecar, and what is measured of it. */
export interface Scenario {
  name: string;
  /** For `--help`. */
  about: string;
  lines: readonly Line[];
  /** It takes time but little CPU: in the short form all of these run at the same time. */
  waits?: true;
  measure: (run: Run) => Promise<Results>;
}

/** In the order of the table. */
export const scenarios: readonly Scenario[] = [
  {
    name: 'standing-server',
    about: 'the API server is paused for 3, 6 and 9 s, with leaders in seven phases of their renewals',
    lines: [{ what: 'API server is paused: leaders that keep leading', goal: all }],
    waits: true,
    measure: standingServer,
  },
  {
    name: 'dead-backend-leader',
    about: 'the server behind a load balancer dies silently, with leader election',
    lines: [{ what: 'server behind a load balancer dies silently: the leader keeps leading', goal: yes }],
    waits: true,
    measure: deadBackendOfLeader,
  },
  {
    name: 'dead-backend',
    about: 'the same without leader election, with watches 10 s old and 90 s old',
    lines: [
      { what: 'the same without leader election: wait of a claim, young watches', goal: atMost(40, 's') },
      { what: 'the same without leader election: wait of a claim, older watches', goal: atMost(40, 's') },
    ],
    waits: true,
    measure: deadBackend,
  },
  {
    name: 'hanging-request',
    about: 'SIGTERM while a request of one kind gets no response, for each kind',
    lines: kindNames.map((kind) => ({
      what: `SIGTERM while a request hangs, ${kind}: time to end`,
      goal: atMost(25, 's'),
    })),
    waits: true,
    measure: hangingRequests,
  },
  {
    name: 'flood',
    about: '4,000 claims of one tenant fail immediately; the claim of another tenant, CPU and events of the first 60 s',
    lines: [
      {
        what: "a tenant's claims fail immediately: wait of another's claim",
        goal: atMost(1, 's'),
        shortGoal: atMost(5, 's'),
      },
      { what: "a tenant's claims fail immediately: CPU", goal: noMoreThanPeer },
      { what: "a tenant's claims fail immediately: events written", goal: noMoreThanPeer },
    ],
    measure: flood,
  },
  {
    name: 'slow-failures',
    about: '5,000 claims of one tenant fail after a second each; the claim of another tenant',
    lines: [
      {
        what: "a tenant's claims fail slowly: wait of another's claim",
        goal: atMost(2, 's'),
        shortGoal: atMost(10, 's'),
      },
    ],
    measure: slowFailures,
  },
  {
    name: 'hanging-calls',
    about: 'the calls of two tenants hang for 150 s; the claim of a third one',
    lines: [
      {
        what: "calls of two tenants hang: wait of a third one's claim",
        goal: atMost(2, 's'),
        shortGoal: atMost(10, 's'),
      },
    ],
    measure: hangingCalls,
  },
  {
    name: 'strangers',
    about:
      '1,600 claims of another driver with annotations of 240 kB each, and the heap limit of a container with 512 MiB',
    lines: [
      {
        what: 'large claims of another driver: peak memory of the sidecar',
        goal: atMost(150, 'MB'),
        shortGoal: atMost(180, 'MB'),
      },
      { what: 'large claims of another driver: a claim of ours is served', goal: yes },
    ],
    measure: strangers,
  },
  {
    name: 'throttled',
    about: 'all watches expire while hundreds of claims wait for --kube-api-qps=5, and lists are paginated',
    lines: [{ what: 'requests wait for --kube-api-qps=5: time to fill expired caches', goal: atMost(30, 's') }],
    waits: true,
    measure: throttled,
  },
];

/**
 * Scenarios of the short form, whose goals `.ci/run` requires. Add a scenario once it reaches its goals, except
 * `dead-backend`, which needs HTTP/2: the sandbox does not support that.
 */
export const shortNames: readonly string[] = [
  'standing-server',
  'dead-backend-leader',
  'hanging-request',
  'slow-failures',
  'hanging-calls',
  'strangers',
  'throttled',
];
