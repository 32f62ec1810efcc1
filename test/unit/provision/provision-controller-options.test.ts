import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type ProvisionControllerOptions, runProvisioner, type RunProvisionerOptions } from '../../../src/index.ts';
import { checkControllerOptions, checkProvisioner } from '../../../src/provision/provision-controller-options.ts';
import type { Provisioner } from '../../../src/provision/provisioner.ts';
import { isRecoverable, type Recoverable } from '../../../src/provision/recoverable.ts';
import { checkRunOptions } from '../../../src/run/run-provisioner-options.ts';

const never = (): never => assert.fail('not called');
const provisioner = { provision: never, delete: never };
const limiter = { when: never, forget: never, failures: never };

describe('the options of a controller', () => {
  const transport = { stream: never } as unknown as ProvisionControllerOptions['transport'];
  const check = (options: object): void =>
    checkControllerOptions({ provisionerName: 'a.example.com', provisioner, transport, ...options });

  test('are accepted at their limits, and undefined stands for the default', () => {
    check({});
    check({
      workers: 1,
      provisionTimeoutMs: 0,
      failedProvisionThreshold: 0,
      maxCallMs: 0.5 + 0.5,
      resyncMs: 2147483647,
    });
    check({ workers: undefined, saveLimiter: undefined });
    check({ saveLimiter: limiter, fieldManager: 'a'.repeat(128), keepLastErrors: 'short' });
  });

  const refused: [options: object, message: string][] = [
    [
      { provisionTimeoutMs: NaN },
      'provisionTimeoutMs must be between 0 and 2147483647 milliseconds (0: no limit), got NaN',
    ],
    [
      { deletionTimeoutMs: -1 },
      'deletionTimeoutMs must be between 0 and 2147483647 milliseconds (0: no limit), got -1',
    ],
    [{ maxCallMs: Infinity }, 'maxCallMs must be between 1 and 2147483647 milliseconds, got Infinity'],
    [{ resyncMs: '900000' }, 'resyncMs must be between 1 and 2147483647 milliseconds, got "900000"'],
    [{ workers: 0 }, 'workers must be an integer of at least 1, got 0'],
    [{ workers: 1.5 }, 'workers must be an integer of at least 1, got 1.5'],
    [
      { failedDeleteThreshold: -1 },
      'failedDeleteThreshold must be an integer of at least 0 (0: never give up), got -1',
    ],
    [{ saveLimiter: 'queue' }, 'saveLimiter must be an object with methods when, forget, failures, got "queue"'],
    [{ limiter: { when: never } }, 'limiter must be an object with methods when, forget, failures, got [Object]'],
    [{ additionalProvisionerNames: 'b' }, 'additionalProvisionerNames must be an array of non-empty strings, got "b"'],
    [
      { fieldManager: 'a'.repeat(129) },
      `fieldManager must be a string of 1 to 128 characters, got "${'a'.repeat(129)}"`,
    ],
    [{ addFinalizer: 'yes' }, 'addFinalizer must be true or false, got "yes"'],
    [{ volumeName: 'pvc' }, 'volumeName must be a function, got "pvc"'],
    [{ keepLastErrors: 'long' }, 'keepLastErrors must be true, false or "short", got "long"'],
    [{ permit: {} }, 'permit must be an object with a boolean isValid and a method renewed, got {}'],
    [{ transport: undefined }, 'transport must be an object with a method stream, got undefined'],
  ];
  for (const [options, message] of refused) {
    test(`are refused: ${message.slice(0, 100)}`, () => {
      assert.throws(() => check(options), { name: 'TypeError', message });
    });
  }
});

describe('the options of runProvisioner', () => {
  const complete = (options: object): RunProvisionerOptions => ({
    provisionerName: 'a.example.com',
    provisioner,
    ...options,
  });

  test('may be a function that makes the provisioner, and everything else may be absent', () => {
    checkRunOptions(complete({}));
    checkRunOptions(
      complete({ provisioner: () => provisioner, leaderElection: { namespace: '', leaseDurationMs: 1000 } }),
    );
    checkRunOptions(complete({ http: { address: ':8080' }, drainMs: 25_000, intentJournal: 'off', environment: {} }));
  });

  const refused: [options: object, message: string][] = [
    [{ drainMs: 1000 }, 'drainMs must be between 25000 and 2147483647 milliseconds, got 1000'],
    [{ leaderElection: 'yes' }, 'leaderElection must be true, false or an object with settings, got "yes"'],
    [
      { leaderElection: { leaseDurationMs: NaN } },
      'leaderElection.leaseDurationMs must be between 1000 and 2147483647 milliseconds, got NaN',
    ],
    [{ intentJournal: 'Lease' }, 'intentJournal must be "lease" or "off", got "Lease"'],
    [{ http: { port: 8080 } }, 'http.address must be a non-empty string, got undefined'],
    [{ checks: { live: true } }, 'checks.live must be a function, got true'],
    [{ leaderElection: { namespace: 5 } }, 'leaderElection.namespace must be a string, got 5'],
    [{ soleInstance: '' }, 'soleInstance must be a non-empty string, got ""'],
    [{ workers: 0 }, 'workers must be an integer of at least 1, got 0'],
    [{ registry: {} }, 'registry must be an object with methods registerMetric, metrics, got {}'],
  ];
  for (const [options, message] of refused) {
    test(`are refused before anything is done: ${message.slice(0, 100)}`, async () => {
      await assert.rejects(runProvisioner(complete(options)), { name: 'TypeError', message });
    });
  }
});

const plain: Provisioner = { provision: never, delete: never };
const recoverable: Recoverable = {
  plan: never,
  fulfil: never,
  revoke: never,
  storageKeys: never,
  handleKey: never,
  delete: never,
};

describe('a provisioner', () => {
  test('has provision, or is Recoverable', () => {
    checkProvisioner(plain);
    checkProvisioner(recoverable);
    checkProvisioner({ ...plain, ...recoverable });
    assert.deepEqual([isRecoverable(plain), isRecoverable(recoverable)], [false, true]);
    // @ts-expect-error: the types say so, too
    const neither: Provisioner | Recoverable = { delete: never };
    assert.throws(() => checkProvisioner(neither), {
      name: 'TypeError',
      message:
        'provisioner must have a method provision, or implement Recoverable, of which it lacks ' +
        'plan, fulfil, revoke, storageKeys, handleKey',
    });
    for (const nothing of [undefined, null]) {
      assert.throws(() => checkProvisioner(nothing), /^TypeError: provisioner must have a method provision, or /);
    }
  });

  for (const method of ['plan', 'fulfil', 'revoke', 'storageKeys', 'handleKey'] as const) {
    test(`is refused with some of the methods of Recoverable, and without ${method}, also if it has provision`, () => {
      const { [method]: _, ...lacking } = recoverable;
      for (const given of [lacking, { ...plain, ...lacking }, { ...plain, ...lacking, [`${method}s`]: never }]) {
        assert.throws(() => checkProvisioner(given), {
          name: 'TypeError',
          message: new RegExp(`but not ${method}: it would not be Recoverable`),
        });
        assert.equal(isRecoverable(given as Provisioner), false);
      }
    });
  }

  test('may have storageKeys and no other method of Recoverable: volumes of other names are recognised by it', () => {
    checkProvisioner({ ...plain, storageKeys: never });
  });

  test('has delete in any case', () => {
    for (const methods of [plain, recoverable]) {
      const lacking = { ...methods, delete: undefined } as unknown as Provisioner;
      assert.throws(() => checkProvisioner(lacking), {
        name: 'TypeError',
        message: 'provisioner must have a method delete',
      });
    }
  });
});
