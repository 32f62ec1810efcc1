/** What an audit of many volumes costs. `AUDIT_VOLUMES` says how many; default 2,000. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RecordedCall } from '../../support/fakes/recording-driver.ts';
import { AuditRig } from './rig.ts';

const count = Number(process.env['AUDIT_VOLUMES'] ?? '2000');
const pageLength = 500;
/** Of the list; each of these volumes is lost under its own id, and unexplained under this one. */
const strangers = 20;

test(`an audit of ${count} volumes sends a request for each page, not for each volume`, async (t) => {
  await using rig = await AuditRig.start();
  for (let number = 0; number < count; number++) rig.addVolume(`pv-${number}`, `vol-${number}`);
  const ids = Array.from({ length: count }, (_, number) => `${number < strangers ? 'stranger' : 'vol'}-${number}`);
  rig.driver.always('ListVolumes', ({ request }: RecordedCall) => {
    const start = Number((request as { starting_token?: string }).starting_token || '0');
    const entries = ids.slice(start, start + pageLength).map((volume_id) => ({ volume: { volume_id } }));
    const end = start + pageLength;
    return end < count ? { entries, next_token: String(end) } : { entries };
  });
  const requests = (): number => rig.cluster.server.requestLog.entries({}).length;
  const [before, usedBefore, beganMs] = [requests(), process.cpuUsage(), performance.now()];
  const { stdout } = await rig.run(['--second-look=0']);
  const { user, system } = process.cpuUsage(usedBefore);
  t.diagnostic(
    `${Math.round(performance.now() - beganMs)} ms, and of CPU with API server and driver ${Math.round((user + system) / 1000)} ms; ` +
      `${requests() - before} requests to the API server, ${rig.driver.callsOf('ListVolumes').length} to the driver`,
  );
  assert.equal(stdout.match(/^unexplained /gm)?.length, strangers);
  assert.equal(rig.driver.callsOf('ListVolumes').length, Math.ceil(count / pageLength));
  assert.ok(requests() - before <= count / pageLength + 10, `${requests() - before} requests`);
});
