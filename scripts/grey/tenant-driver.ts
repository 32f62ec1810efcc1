/**
 * A CSI driver whose response depends on the class of the claim, under several names, each with a socket of its own:
 *
 *   node scripts/grey/tenant-driver.ts FOLDER NAME...
 *
 * Class parameters: `failAfterMs` makes calls fail after that time, `hangMs` makes them succeed only after it. Reports
 * on standard output when it is ready.
 */
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import { DriverFailure, type RecordedCall, RecordingDriver } from '../../test/support/fakes/recording-driver.ts';

interface CreateVolumeRequest {
  name: string;
  parameters?: Record<string, string>;
  capacity_range?: { required_bytes?: string };
  volume_content_source?: object;
}

async function createVolume({ request, cancelled }: RecordedCall): Promise<object> {
  const { name, parameters, capacity_range, volume_content_source } = request as unknown as CreateVolumeRequest;
  const { failAfterMs, hangMs } = parameters ?? {};
  await delay(Number(failAfterMs ?? hangMs ?? 0), undefined, { signal: cancelled });
  if (failAfterMs !== undefined) throw new DriverFailure(status.INTERNAL, 'the pool of this tenant is full');
  const capacity_bytes = capacity_range?.required_bytes ?? 0;
  return { volume: { volume_id: name, capacity_bytes, content_source: volume_content_source } };
}

const [folder = '', ...names] = process.argv.slice(2);
for (const [index, name] of names.entries()) {
  const socketPath = path.join(folder, `${index}.sock`);
  const controller = ['CREATE_DELETE_VOLUME', 'CLONE_VOLUME'];
  const driver = await RecordingDriver.start({ name, socketPath, controller });
  driver.always('CreateVolume', (call: RecordedCall) => createVolume(call));
}
process.stdout.write(`${JSON.stringify({ ready: true })}\n`);
