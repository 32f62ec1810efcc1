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

/** What happens to a sidecar, and what is measured of it. */
export interface Scenario {
  name: string;
  /** For the help. */
  about: string;
  lines: readonly Line[];
  /** @returns a result for each line, undefined for one that this form leaves out. */
  measure: (run: Run) => Promise<readonly (Measured | undefined)[]>;
}

/** In the order of the table. */
export const scenarios: readonly Scenario[] = [
  {
    name: 'standing-server',
    about: 'the API server stands still for 3, 6 and 9 s, under leaders at seven phases of their renewals',
    lines: [{ what: 'API server stands still for 3, 6, 9 s: leaders that live on', goal: all }],
    measure: standingServer,
  },
  {
    name: 'dead-backend-leader',
    about: 'the server behind a balancer dies without a word, under a leader',
    lines: [{ what: "a balancer's backend dies silently: the leader lives on", goal: yes }],
    measure: deadBackendOfLeader,
  },
  {
    name: 'dead-backend',
    about: 'the same without election, under young watches and under older ones',
    lines: [
      { what: 'the same without election: a claim waits, young watches', goal: atMost(40, 's') },
      { what: 'the same without election: a claim waits, older watches', goal: atMost(40, 's') },
    ],
    measure: deadBackend,
  },
  {
    name: 'hanging-request',
    about: 'SIGTERM while a request of one kind is never answered, for each kind',
    lines: kindNames.map((kind) => ({
      what: `SIGTERM while a ${kind} hangs: the end`,
      goal: atMost(25, 's'),
      shortGoal: atMost(40, 's'),
    })),
    measure: hangingRequests,
  },
  {
    name: 'flood',
    about: "4,000 claims of one tenant fail at once; another tenant's good claim",
    lines: [
      {
        what: "4,000 claims fail at once: another tenant's claim waits",
        goal: atMost(1, 's'),
        shortGoal: atMost(15, 's'),
      },
      { what: '4,000 claims fail at once: CPU in 60 s', goal: noMoreThanPeer },
      { what: '4,000 claims fail at once: events written in 60 s', goal: noMoreThanPeer },
    ],
    measure: flood,
  },
  {
    name: 'slow-failures',
    about: "5,000 claims fail after a second each; another tenant's good claim",
    lines: [
      {
        what: "5,000 claims fail after 1 s each: another tenant's claim waits",
        goal: atMost(2, 's'),
        shortGoal: atMost(20, 's'),
      },
    ],
    measure: slowFailures,
  },
  {
    name: 'hanging-calls',
    about: "the calls of two tenants hang for 150 s; a third tenant's good claim",
    lines: [
      {
        what: "calls of two tenants hang: a third one's claim waits",
        goal: atMost(2, 's'),
        shortGoal: atMost(20, 's'),
      },
    ],
    measure: hangingCalls,
  },
  {
    name: 'strangers',
    about: '1,600 claims of another driver with 240 kB of annotations each, in a container of 512 MiB',
    lines: [
      { what: "1,600 large claims of another driver: the sidecar's peak memory", goal: atMost(150, 'MB') },
      { what: '1,600 large claims of another driver: a claim of ours is served', goal: yes },
    ],
    measure: strangers,
  },
  {
    name: 'throttled',
    about: 'watches expire while 350 requests wait for --kube-api-qps=5, and lists have pages',
    lines: [{ what: '350 requests wait for --kube-api-qps=5: expired caches are filled', goal: yes }],
    measure: throttled,
  },
];

/** Scenarios of the short form: `.ci/run` needs their goals reached. A scenario that starts to hold is added here. */
export const shortNames: readonly string[] = ['standing-server', 'dead-backend-leader', 'strangers', 'throttled'];
