/**
 * A driver as a process of its own, `holding-driver.ts FOLDER`, which does not lock volumes. It stops itself by SIGSTOP once the first
 * CreateVolume is read. That call then waits until the folder has the file `go-on`; others are served meanwhile. The folder has its socket
 * `csi.sock`, a file for each volume in `volumes`, and a line in `calls` for each call as it begins, and for the end of the first
 * CreateVolume. It prints its socket as JSON once it listens.
 */
import { appendFileSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { RecordingDriver } from './recording-driver.ts';

const folder = process.argv[2] ?? '';
const volumes = join(folder, 'volumes');
mkdirSync(volumes);
const driver = await RecordingDriver.start({ socketPath: join(folder, 'csi.sock') });
const log = (line: string): void => appendFileSync(join(folder, 'calls'), `${line}\n`);

let isFirst = true;
driver.always('CreateVolume', async ({ request }) => {
  const holds = isFirst;
  isFirst = false;
  log(holds ? 'CreateVolume holds' : 'CreateVolume');
  if (holds) process.kill(process.pid, 'SIGSTOP');
  while (holds && !existsSync(join(folder, 'go-on'))) await delay(20);
  const name = String(request['name']);
  writeFileSync(join(volumes, name), '');
  if (holds) log('CreateVolume ends');
  return { volume: { volume_id: name, capacity_bytes: 1 << 30 } };
});
driver.always('DeleteVolume', ({ request }) => {
  log('DeleteVolume');
  rmSync(join(volumes, String(request['volume_id'])), { force: true });
  return {};
});
console.log(JSON.stringify({ socketPath: driver.socketPath }));
