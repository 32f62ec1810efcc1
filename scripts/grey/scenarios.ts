import { deadBackend, deadBackendOfLeader } from './dead-backend.ts';
import { flood, hangingCalls, slowFailures } from './floods.ts';
import { all, atMost, type Goal, type Measured, noMoreThanPeer, yes } from './goals.ts';
import { hangingRequests, kindNames } from './hanging-request.ts';
import type { Run } from './stage.ts';
import { standingServer } from './standing-server.ts';
import { strangers } from './strangers.ts';
import { throttled } from './throttled.ts';

/** One line of the table. */
export interface Line {
  what: string;
  goal: Goal;
  /** Of the short form, which says nothing about the speed of a machine. Default: the same. */
  shortGoal?: Goal;
}

/** A result for each line, undefined for one that this form leaves out. */
export type Results = readonly (Measured | undefined)[];

/** What happens to a sidecar, and what is measured of it. */
export interface Scenario {
  name: string;
  /** For the help. */
  about: string;
  lines: readonly Line[];
  /** It takes time but next to no CPU: in the short form all of these run at once. */
  waits?: true;
  measure: (run: Run) => Promise<Results>;
}

/** In the order of the table. */
export const scenarios: readonly Scenario[] = [
  {
    name: 'standing-server',
    about: 'the API server stands still for 3, 6 and 9 s, under leaders at seven phases of their renewals',
    lines: [{ what: 'API server stands still: leaders that live on', goal: all }],
    waits: true,
    measure: standingServer,
  },
  {
    name: 'dead-backend-leader',
    about: 'the server behind a balancer dies without a word, under a leader',
    lines: [{ what: 'server behind a balancer dies silently: the leader lives on', goal: yes }],
    waits: true,
    measure: deadBackendOfLeader,
  },
  {
    name: 'dead-backend',
    about: 'the same without election, under watches 10 s old and 90 s old',
    lines: [
      { what: 'the same without election: a claim waits, young watches', goal: atMost(40, 's') },
      { what: 'the same without election: a claim waits, older watches', goal: atMost(40, 's') },
    ],
    waits: true,
    measure: deadBackend,
  },
  {
    name: 'hanging-request',
    about: 'SIGTERM while a request of one kind is never answered, for each kind',
    lines: kindNames.map((kind) => ({
      what: `SIGTERM while one request hangs, ${kind}: the end`,
      goal: atMost(25, 's'),
    })),
    waits: true,
    measure: hangingRequests,
  },
  {
    name: 'flood',
    about: '4,000 claims of one tenant fail at once; the claim of another tenant, and the cost of the first 60 s',
    lines: [
      {
        what: "a tenant's claims fail at once: another's claim waits",
        goal: atMost(1, 's'),
        shortGoal: atMost(5, 's'),
      },
      { what: "a tenant's claims fail at once: CPU", goal: noMoreThanPeer },
      { what: "a tenant's claims fail at once: events written", goal: noMoreThanPeer },
    ],
    measure: flood,
  },
  {
    name: 'slow-failures',
    about: '5,000 claims of one tenant fail after a second each; the claim of another tenant',
    lines: [
      {
        what: "a tenant's claims fail slowly: another's claim waits",
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
        what: "calls of two tenants hang: a third one's claim waits",
        goal: atMost(2, 's'),
        shortGoal: atMost(10, 's'),
      },
    ],
    measure: hangingCalls,
  },
  {
    name: 'strangers',
    about:
      '1,600 claims of another driver with annotations of 240 kB each, and a heap limit as in a container of 512 MiB',
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
    about: 'all watches expire while hundreds of claims wait for --kube-api-qps=5, and lists have pages',
    lines: [{ what: 'requests wait for --kube-api-qps=5: expired caches are filled', goal: yes }],
    waits: true,
    measure: throttled,
  },
];

/**
 * Scenarios of the short form: `.ci/run` needs their goals reached. One that starts to hold is added here, but for `dead-backend`: it
 * needs HTTP/2, which the sandbox does not speak.
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
