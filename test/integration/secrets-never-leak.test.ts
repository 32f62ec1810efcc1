/**
 * The whole program at its most talkative, beside the sandbox and the sample driver: the values of provisioner secrets
 * reach the driver and nothing else. Marks stand in the values; every page, object and line is searched for them.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Sandbox } from '../../sandbox/sandbox.ts';
import type { SandboxClient, SandboxObject } from '../../sandbox/api/client.ts';
import { ApiProxy } from '../support/api-proxy.ts';
import { freePort } from '../support/free-ports.ts';
import { startDriver, type DriverProcess } from '../support/driver-process.ts';
import { eventually } from '../support/eventually.ts';
import { programFile } from '../support/program-file.ts';
import { startProcess, type StartedProcess } from '../support/started-process.ts';

const main = programFile('csi-provisioner');
const prefix = 'csi.storage.k8s.io/';
const core = (plural: string) => ({ group: '', version: 'v1', plural });
const classes = { group: 'storage.k8s.io', version: 'v1', plural: 'storageclasses' };
const [claims, volumes, secrets, events] = ['persistentvolumeclaims', 'persistentvolumes', 'secrets', 'events'].map(
  core,
) as [ReturnType<typeof core>, ReturnType<typeof core>, ReturnType<typeof core>, ReturnType<typeof core>];

/** A text that stands nowhere by chance. Lower-case, so that it can be part of any name. */
const newMark = (): string => `m${randomBytes(11).toString('hex')}`;

/**
 * How a mark may stand somewhere: its beginning as it is, in hexadecimal, and in base64 at each of the three places in
 * a group of bytes at which it may begin.
 */
function formsOf(mark: string): string[] {
  const base64 = [0, 1, 2].map((before) =>
    Buffer.from('?'.repeat(before) + mark)
      .toString('base64')
      .slice(before === 0 ? 0 : 4, before === 0 ? 8 : 12),
  );
  return [mark.slice(0, 10), Buffer.from(mark).toString('hex').slice(0, 16), ...base64];
}

const holds = (text: string, mark: string): boolean => formsOf(mark).some((form) => text.includes(form));

/** A response for the Secret `broken-creds` arrives with this code, as something that is not JSON. */
function spoiling(code: number): ApiProxy['decide'] {
  // The parser complains about the first character of the value and quotes what follows.
  const body = (text: string): string => text.replace('"password":"', '"password":');
  return ({ path: requested }) => (requested.endsWith('/secrets/broken-creds') ? { response: { code, body } } : 'pass');
}

/** Everything that anybody could read, by place. */
type Places = Record<
  'log' | 'events' | 'claims' | 'volumes' | 'metrics' | 'status page' | 'heap profile' | 'termination message',
  string
>;

/** One life of the program, full of misfortunes, from start to an end with code 1. */
class Story implements AsyncDisposable {
  /** Marks in values of secrets. */
  readonly secretMarks: string[] = [];
  /** A mark that is no secret, put where it must show. */
  readonly controlMark = newMark();
  readonly places: Places = {
    log: '',
    events: '',
    claims: '',
    volumes: '',
    metrics: '',
    'status page': '',
    'heap profile': '',
    'termination message': '',
  };
  readonly format: string;
  ending = '';
  /** Keys of the secrets in the calls that the driver answered with OK. */
  received: Record<string, unknown[]> = {};
  readonly #opened = new AsyncDisposableStack();
  #api!: SandboxClient;
  #sidecar!: StartedProcess;

  constructor(format: string) {
    this.format = format;
  }

  async run(): Promise<void> {
    const folder = await mkdtemp(path.join(tmpdir(), 'leaks-'));
    this.#opened.defer(() => rm(folder, { recursive: true, force: true }));
    const kubeconfigPath = path.join(folder, 'kubeconfig');
    const sandbox = this.#opened.use(await Sandbox.start({ nodes: 0, kubeconfigPath }));
    const api = (this.#api = sandbox.api.client('test'));
    for (const [place, resource] of Object.entries({ events, claims, volumes })) {
      api.subscribe(resource, ({ object }) => (this.places[place as keyof Places] += `${JSON.stringify(object)}\n`));
    }
    const proxy = this.#opened.use(await ApiProxy.start({ url: sandbox.url }));
    const driverName = 'leaks.example.com';
    const driver = await startDriver({ driverName, folder });
    this.#opened.defer(() => driver.stop());
    const port = await freePort();
    const flags = [
      `--csi-address=${driver.address}`,
      `--kubeconfig=${kubeconfigPath}`,
      `--master=${proxy.url}`,
      `--http-endpoint=127.0.0.1:${port}`,
      '--enable-pprof',
      '--status-page',
      `--logging-format=${this.format}`,
      '-v=9',
      '--timeout=1s',
      '--retry-interval-start=100ms',
      '--retry-interval-max=300ms',
      '--extra-create-metadata',
    ];
    this.#sidecar = await startProcess({
      program: '/bin/sh', // so that both outputs are read as one
      args: ['-c', 'exec "$0" "$@" 1>&2', process.execPath, main, ...flags],
      env: { KUBECONFIG: undefined },
    });
    this.#opened.defer(() => this.#sidecar.stop('SIGKILL'));

    const parameters = {
      [`${prefix}provisioner-secret-name`]: '${pvc.name}-creds',
      [`${prefix}provisioner-secret-namespace`]: '${pvc.namespace}',
      note: this.controlMark,
    };
    const needing = (name: string, key: string): SandboxObject =>
      api.create(classes, {
        metadata: { name },
        provisioner: driverName,
        parameters: { ...parameters, requireSecret: key, requireSecretOnDelete: key },
      });
    const className = needing(`class-${this.controlMark}`, 'password').metadata.name;
    needing('strict', 'absent');

    for (const name of ['good', 'late', 'failing', 'strict', 'raw', 'broken']) this.#addSecret(name);

    const page = async (at: string): Promise<string> => (await fetch(`http://127.0.0.1:${port}${at}`)).text();
    /** What the status page says of a claim that fails. */
    const look = async (name: string): Promise<void> => {
      this.places['status page'] += await page(`/status?claim=default/${name}`);
    };

    // Well, with an error of the driver, and with a driver that does not answer in time.
    this.#addClaim('good', className);
    await this.#bound('good');
    await driver.setFaults([
      { method: 'CreateVolume', code: 'INTERNAL', message: `out of ${this.controlMark}`, times: 1 },
    ]);
    this.#addClaim('failing', className);
    await this.#bound('failing');
    await driver.setFaults([{ method: 'CreateVolume', hang: true, times: 1 }]);
    this.#addClaim('late', className);
    await this.#told('late', 'context deadline exceeded');
    await look('late');
    await this.#bound('late');

    // A key that the driver misses, a value that cannot be sent, a Secret that cannot be read.
    this.#addClaim('strict', 'strict');
    await this.#told('strict', 'secrets must have the key absent');
    await look('strict');
    this.#addClaim('raw', className);
    await this.#told('raw', 'string field contains invalid UTF-8');
    await look('raw');
    this.#addClaim('missing', className);
    await this.#told('missing', 'secrets "missing-creds" not found');
    await look('missing');
    proxy.decide = spoiling(200);
    this.#addClaim('broken', className);
    await this.#told(
      'broken',
      'error getting secret broken-creds in namespace default: get secrets: the response is not a JSON object',
    );
    await look('broken');
    proxy.decide = spoiling(500);
    await this.#told('broken', 'error getting secret broken-creds in namespace default: the server responded with 500');
    await look('broken');
    proxy.decide = () => 'pass';
    await this.#bound('broken');

    // Deletion: refused by the driver at first, with a Secret that cannot be read, and without one.
    await driver.setFaults([{ method: 'DeleteVolume', code: 'INTERNAL', message: 'still busy', times: 1 }]);
    const good = this.#volumeOf('good');
    this.#remove('good');
    await this.#told(good, 'still busy');
    await this.#gone(good);
    const broken = this.#volumeOf('broken');
    proxy.decide = spoiling(200);
    this.#remove('broken');
    await this.#told(broken, 'secrets must have the key password');
    proxy.decide = () => 'pass';
    await this.#gone(broken);
    const failing = this.#volumeOf('failing');
    api.delete(secrets, { namespace: 'default', name: 'failing-creds' });
    this.#remove('failing');
    await this.#told(failing, 'secrets must have the key password');

    this.places.metrics = await page('/metrics');
    this.places['status page'] += await page('/status');
    this.places['heap profile'] = await page('/debug/pprof/heap');
    for (const method of ['CreateVolume', 'DeleteVolume']) {
      const calls = await driver.calls(method);
      this.received[method] = calls.filter(({ code }) => code === 'OK').map(({ request }) => request.secrets);
    }
    await this.#replaceDriver(driver, folder);
  }

  /** The program ends with an error: its last lines are what Kubernetes shows as termination message. */
  async #replaceDriver(driver: DriverProcess, folder: string): Promise<void> {
    await driver.stop();
    const stranger = await startDriver({ driverName: 'stranger.example.com', folder });
    this.#opened.defer(() => stranger.stop());
    this.ending = await this.#sidecar.ending();
    this.places.log = this.#sidecar.log();
    const written = await readFile('/dev/termination-log', 'utf8').catch(() => '');
    this.places['termination message'] = `${written}\n${this.places.log.split('\n').slice(-80).join('\n')}`;
  }

  /** Values that are easy to find, that need escapes in JSON and text, and, for one claim, that are no text. */
  #addSecret(claim: string): void {
    const value = (wrap: (mark: string) => string | Buffer): string => {
      const mark = newMark();
      this.secretMarks.push(mark);
      return Buffer.from(wrap(mark)).toString('base64');
    };
    const plain = value((mark) => mark);
    const data = {
      password: claim === 'raw' ? value((mark) => Buffer.concat([Buffer.of(0xff), Buffer.from(mark)])) : plain,
      quoted: value((mark) => `"${mark}"\n\\${mark}\u0000%s$` + '{pvc.name}'),
      long: value((mark) => mark.repeat(200)),
    };
    this.#api.create(secrets, { metadata: { namespace: 'default', name: `${claim}-creds` }, data });
  }

  #addClaim(name: string, storageClassName: string): void {
    this.#api.create(claims, {
      metadata: { namespace: 'default', name, annotations: { note: this.controlMark } },
      spec: {
        accessModes: ['ReadWriteOnce'],
        resources: { requests: { storage: '1Mi' } },
        storageClassName,
      },
    });
  }

  #remove(name: string): void {
    this.#api.delete(claims, { namespace: 'default', name });
  }

  #volumeOf(name: string): string {
    const claim = this.#api.get(claims, { namespace: 'default', name });
    return (claim?.['spec'] as { volumeName?: string } | undefined)?.volumeName ?? '';
  }

  async #bound(name: string): Promise<void> {
    await this.#eventually(() => {
      const claim = this.#api.get(claims, { namespace: 'default', name });
      assert.equal((claim?.['status'] as { phase?: string } | undefined)?.phase, 'Bound', name);
    });
  }

  async #gone(volume: string): Promise<void> {
    await this.#eventually(() => {
      assert.equal(this.#api.get(volumes, { name: volume }), undefined, `${volume} is still there`);
    });
  }

  /** A warning about the object holds the text. */
  async #told(name: string, text: string): Promise<void> {
    await this.#eventually(() => {
      const about = this.#api.list(events).filter((event) => {
        const { type, involvedObject } = event as unknown as { type: string; involvedObject: { name: string } };
        return type === 'Warning' && involvedObject.name === name;
      });
      const messages = about.map((event) => String(event['message']));
      assert.ok(
        messages.some((message) => message.includes(text)),
        `${name}: ${messages.join('; ')}, not ${text}`,
      );
    });
  }

  #eventually(check: () => void): Promise<void> {
    const hopeless = (): string | undefined =>
      this.#sidecar.running() ? undefined : `the sidecar has ended\n${this.#sidecar.log()}`;
    return eventually(check, { hopeless });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#opened.disposeAsync();
  }
}

for (const format of ['text', 'json']) {
  describe(`values of provisioner secrets, with a log in ${format}`, () => {
    const story = new Story(format);
    before(() => story.run());
    after(() => story[Symbol.asyncDispose]());

    test('reach the driver in every call that it could answer with OK', () => {
      const { CreateVolume: creations = [], DeleteVolume: deletions = [] } = story.received;
      assert.ok(creations.length >= 4, `${creations.length}`); // good, failing, late and broken; on a busy machine some again
      assert.ok(deletions.length >= 2, `${deletions.length}`); // good and broken
      for (const secrets of [...creations, ...deletions]) assert.deepEqual(secrets, ['long', 'password', 'quoted']);
    });

    test('the program ended as it was meant to, and had talked of its calls', () => {
      assert.equal(story.ending, 'exit code 1');
      const lines = story.places.log.split('\n');
      for (const texts of [
        ['GRPC call', '/csi.v1.Controller/CreateVolume', '***stripped***'],
        ['GRPC call', '/csi.v1.Controller/DeleteVolume', '***stripped***'],
        ['Reading the deletion secret failed', 'broken-creds'],
        ['Reading the deletion secret failed', 'secrets \\"failing-creds\\" not found'],
      ]) {
        assert.ok(
          lines.some((line) => texts.every((text) => line.includes(text))),
          texts.join(', '),
        );
      }
    });

    for (const place of ['log', 'events', 'claims', 'volumes', 'metrics', 'status page'] as const) {
      test(`a mark that is no secret is found in: ${place}`, () => {
        assert.ok(holds(story.places[place], story.controlMark), story.places[place].slice(0, 2000));
      });
    }

    test('the heap profile is one, with the functions that have allocated', () => {
      assert.match(story.places['heap profile'], /^\{"head":\{"callFrame":\{"functionName":"\(root\)"/);
    });

    for (const place of Object.keys(story.places) as (keyof Places)[]) {
      test(`stand nowhere in: ${place}`, () => {
        assert.notEqual(story.places[place].trim(), '');
        const found = story.secretMarks.filter((mark) => holds(story.places[place], mark));
        const lines = story.places[place].split('\n').filter((line) => found.some((mark) => holds(line, mark)));
        assert.deepEqual(lines, []);
      });
    }
  });
}

describe('the search for marks', () => {
  const mark = newMark();
  const hidings = {
    'as it is': `"a":"${mark}"`,
    'in hexadecimal': Buffer.from(`key=${mark}`).toString('hex'),
    'in base64': Buffer.from(mark).toString('base64'),
    'in base64 behind one byte': Buffer.from(`a${mark}`).toString('base64'),
    'in base64 behind two bytes': Buffer.from(`ab${mark}`).toString('base64'),
    'in base64 in the middle of an encoded object': Buffer.from(JSON.stringify({ data: { key: mark } })).toString(
      'base64',
    ),
    'cut off': mark.slice(0, 12),
  };
  for (const [how, text] of Object.entries(hidings)) {
    test(`finds one ${how}`, () => {
      assert.ok(holds(`some ${text} text`, mark));
    });
  }

  test('finds nothing in other texts', () => {
    assert.equal(holds(`${newMark()} ${Buffer.from(newMark()).toString('base64')}`, mark), false);
  });
});
