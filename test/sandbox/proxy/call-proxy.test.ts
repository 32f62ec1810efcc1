/** The proxy between a sidecar and the sample driver, with a real gRPC client in the sidecar's place. */
import assert from 'node:assert/strict';
import { mkdtempDisposable, rename, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { type Client, credentials, makeClientConstructor, type ServiceError, status } from '@grpc/grpc-js';
import { csiServices } from '../../../sandbox/csi-services.ts';
import { parseFaults } from '../../../sandbox/proxy/call-fault.ts';
import { CallProxy } from '../../../sandbox/proxy/call-proxy.ts';
import { FaultSource } from '../../../sandbox/proxy/fault-source.ts';
import { type DriverProcess, startDriver } from '../../support/driver-process.ts';
import { eventually } from '../../support/eventually.ts';

const volume = {
  capacity_range: { required_bytes: 1024 },
  volume_capabilities: [{ mount: {}, access_mode: { mode: 'SINGLE_NODE_WRITER' } }],
};

describe('a proxy before a driver', () => {
  const opened = new AsyncDisposableStack();
  let driver: DriverProcess;
  before(async () => {
    const { path: folder } = opened.use(await mkdtempDisposable(path.join(tmpdir(), 'proxy-')));
    driver = await startDriver({ driverName: 'proxied.example.com', folder });
    opened.defer(() => driver.stop());
  });
  after(() => opened.disposeAsync());

  let serial = 0;
  /** A proxy with these faults, and a client of it. */
  async function open(options: { faults?: string; file?: string }) {
    const opened = new AsyncDisposableStack();
    const folder = opened.use(await mkdtempDisposable(path.join(tmpdir(), 'proxy-'))).path;
    const lines: string[] = [];
    const socketPath = path.join(folder, 'proxy.sock');
    const faults = new FaultSource({ faults: parseFaults(options.faults ?? ''), file: options.file });
    const driverSocket = driver.address.replace('unix://', '');
    opened.use(await CallProxy.start({ driverSocket, socketPath, faults, report: (text) => lines.push(text) }));
    const make = makeClientConstructor(csiServices()['csi.v1.Controller']!, 'Controller');
    const client: Client = new make(`unix:${socketPath}`, credentials.createInsecure());
    opened.defer(() => client.close());
    const call = async (method: string, request: object, timeoutMs = 20_000): Promise<unknown> => {
      const { promise, resolve, reject } = Promise.withResolvers<unknown>();
      const send = (client as unknown as Record<string, (...args: unknown[]) => void>)[method]!.bind(client);
      send(request, { deadline: Date.now() + timeoutMs }, (error: ServiceError | null, response: unknown) =>
        error === null ? resolve(response) : reject(error),
      );
      return await promise;
    };
    const create = (name: string, timeoutMs?: number): Promise<unknown> =>
      call('CreateVolume', { ...volume, name }, timeoutMs);
    return { lines, call, create, folder, [Symbol.asyncDispose]: () => opened.disposeAsync() };
  }

  const fresh = (): string => `proxied-${++serial}`;
  const callsFor = async (name: string): Promise<number> =>
    (await driver.calls('CreateVolume')).filter(({ request }) => request.name === name).length;

  test('passes calls, responses and errors on as they are', async () => {
    await using proxy = await open({});
    const name = fresh();
    const made = (await proxy.create(name)) as { volume: { volume_id: string } };
    assert.deepEqual(await proxy.create(name), made);
    await assert.rejects(proxy.create(''), { code: status.INVALID_ARGUMENT });
    await proxy.call('DeleteVolume', { volume_id: made.volume.volume_id });
    assert.deepEqual(proxy.lines, []);
  });

  test('drops the response of one call, which the driver has carried out', async () => {
    await using proxy = await open({ faults: 'CreateVolume:drop:1' });
    const name = fresh();
    await assert.rejects(proxy.create(name, 1000), { code: status.DEADLINE_EXCEEDED });
    assert.equal(await callsFor(name), 1);
    await proxy.create(name);
    assert.deepEqual(proxy.lines, ['Fault: CreateVolume reaches the driver, its response is dropped']);
  });

  test('fails a call with a code, which does not reach the driver', async () => {
    await using proxy = await open({ faults: 'CreateVolume:code=RESOURCE_EXHAUSTED:2' });
    const name = fresh();
    for (let n = 0; n < 2; n++) {
      await assert.rejects(proxy.create(name), {
        code: status.RESOURCE_EXHAUSTED,
        details: 'injected by csi-sandbox --fault',
      });
    }
    assert.equal(await callsFor(name), 0);
    await proxy.create(name);
  });

  test('delays a call before the driver gets it; one that was cancelled meanwhile never reaches it', async () => {
    await using proxy = await open({ faults: 'CreateVolume:delay=1h:1\nCreateVolume:delay=1ms:1' });
    const [cancelled, delayed] = [fresh(), fresh()];
    await assert.rejects(proxy.create(cancelled, 3000), { code: status.DEADLINE_EXCEEDED });
    await proxy.create(delayed);
    assert.equal(await callsFor(cancelled), 0);
    assert.equal(await callsFor(delayed), 1);
  });

  test('delivers a response late: the driver is done before', async () => {
    await using proxy = await open({ faults: 'CreateVolume:late=1h:1\nCreateVolume:late=1ms:1' });
    const [late, soon] = [fresh(), fresh()];
    const response = proxy.create(late, 2000);
    await eventually(async () => assert.equal(await callsFor(late), 1));
    await assert.rejects(response, { code: status.DEADLINE_EXCEEDED });
    await proxy.create(soon);
  });

  test('cuts the connection instead of a response; the next call has a new one', async () => {
    await using proxy = await open({ faults: 'CreateVolume:cut:1' });
    const name = fresh();
    await assert.rejects(proxy.create(name), { code: status.UNAVAILABLE });
    assert.equal(await callsFor(name), 1);
    await eventually(() => proxy.create(name));
  });

  test('follows a file that changes, and counts anew', async () => {
    await using files = await mkdtempDisposable(path.join(tmpdir(), 'proxy-'));
    const file = path.join(files.path, 'faults');
    const write = async (text: string): Promise<void> => {
      await writeFile(`${file}.new`, text);
      await rename(`${file}.new`, file);
    };
    await using proxy = await open({ file });
    await proxy.create(fresh());
    for (let n = 0; n < 2; n++) {
      await write(`# ${n}\n*:code=ABORTED:1\n`);
      await assert.rejects(proxy.create(fresh()), { code: status.ABORTED });
      await proxy.create(fresh());
    }
    await write('CreateVolume:abort\n');
    await assert.rejects(proxy.create(fresh()), { code: status.INTERNAL, details: /faults: "abort" is no action/ });
    await write('');
    await proxy.create(fresh());
  });

  const skip = process.platform === 'linux' ? false : 'only Linux says who listens on a socket';
  test('kills the driver at the call that is named, and not before', { skip }, async () => {
    await using proxy = await open({ faults: 'CreateVolume:kill:3' });
    await proxy.create(fresh());
    await proxy.create(fresh());
    assert.ok(driver.running());
    await assert.rejects(proxy.create(fresh()), { code: status.UNAVAILABLE });
    await eventually(() => assert.equal(driver.running(), false));
    assert.match(await driver.ending(), /SIGKILL/);
  });
});
