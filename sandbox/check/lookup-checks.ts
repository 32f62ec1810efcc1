/** Whether a driver knows its volumes: ValidateVolumeCapabilities, ListVolumes, ControllerGetVolume. */
import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Bench } from './bench.ts';
import type { Check, Findings } from './check.ts';
import type { Volume } from './csi-messages.ts';
import { expectCode } from './expected-code.ts';

export const lookupChecks: readonly Check[] = [
  {
    id: 'validate',
    title: 'a volume has the capabilities that it was created with',
    section: 'ValidateVolumeCapabilities',
    part: 'driver',
    needs: ['create'],
    run: validate,
  },
  {
    id: 'validate-unknown',
    title: 'ValidateVolumeCapabilities of a volume that does not exist is NOT_FOUND',
    section: 'ValidateVolumeCapabilities Errors',
    part: 'driver',
    needs: ['create'],
    async run(bench, findings) {
      const answer = await bench.call('ValidateVolumeCapabilities', {
        volume_id: randomUUID(),
        volume_capabilities: [bench.capability()],
        secrets: bench.options.secrets,
      });
      expectCode(findings, answer, ['NOT_FOUND'], 'of a volume that does not exist');
    },
  },
  {
    id: 'list',
    title: 'ListVolumes has the existing volumes, as CreateVolume returned them',
    section: 'ListVolumes',
    part: 'driver',
    needs: ['create'],
    run: list,
  },
  {
    id: 'list-pages',
    title: 'ListVolumes returns pages, which together have every volume once',
    section: 'ListVolumes',
    part: 'driver',
    needs: ['create', 'list'],
    run: listPages,
  },
  {
    id: 'list-token',
    title: 'a starting_token that is not valid is ABORTED',
    section: 'ListVolumes Errors',
    part: 'driver',
    needs: ['create', 'list'],
    async run(bench, findings) {
      bench.needController('LIST_VOLUMES');
      const answer = await bench.call('ListVolumes', { starting_token: 'csi-sandbox-no-token' });
      expectCode(findings, answer, ['ABORTED'], 'with a starting_token that is not valid');
    },
  },
  {
    id: 'get-volume',
    title: 'ControllerGetVolume finds a volume, and not one that was deleted',
    section: 'ControllerGetVolume',
    part: 'driver',
    needs: ['create', 'delete'],
    async run(bench, findings) {
      bench.needController('GET_VOLUME');
      const { id, volume } = await bench.create();
      const { volume: found = {} } = bench.ok(await bench.call('ControllerGetVolume', { volume_id: id }));
      compare(findings, 'ControllerGetVolume', volume, found);
      await bench.delete(id);
      const gone = await bench.call('ControllerGetVolume', { volume_id: id });
      expectCode(findings, gone, ['NOT_FOUND'], 'of a volume that was deleted');
    },
  },
];

async function validate(bench: Bench, findings: Findings): Promise<void> {
  const { id, volume, request } = await bench.create();
  const { confirmed, message = '' } = bench.ok(
    await bench.call('ValidateVolumeCapabilities', {
      volume_id: id,
      volume_context: volume.volume_context ?? {},
      volume_capabilities: request.volume_capabilities,
      parameters: request.parameters,
      secrets: bench.options.secrets,
    }),
  );
  if (confirmed === undefined) {
    findings.fail(`the capabilities of CreateVolume are not confirmed: ${message}`);
    return;
  }
  if ((confirmed.volume_capabilities ?? []).length === 0)
    findings.fail('confirmed has no volume_capabilities, but the field is REQUIRED');
}

async function list(bench: Bench, findings: Findings): Promise<void> {
  bench.needController('LIST_VOLUMES');
  const { id, volume } = await bench.create();
  const found = (await bench.list()).find((each) => each.volume_id === id);
  if (found === undefined) findings.fail(`volume ${id}, which was just created, is not listed`);
  else compare(findings, 'ListVolumes', volume, found);
}

/** What is always the same, if it is given at all. */
function compare(findings: Findings, method: string, made: Volume, found: Volume): void {
  if (found.volume_id !== made.volume_id) {
    findings.fail(
      `${method} returned volume_id ${JSON.stringify(found.volume_id ?? '')} instead of ${JSON.stringify(made.volume_id)}`,
    );
  }
  const context = found.volume_context ?? {};
  if (isDeepStrictEqual(context, made.volume_context ?? {})) return;
  const text = `${method} returned volume_context ${JSON.stringify(context)}, but CreateVolume ${JSON.stringify(made.volume_context ?? {})}`;
  if (Object.keys(context).length === 0) findings.warn(text, 'CreateVolume, volume_context');
  else findings.fail(text, 'CreateVolume, volume_context');
}

async function listPages(bench: Bench, findings: Findings): Promise<void> {
  bench.needController('LIST_VOLUMES');
  const ids = [(await bench.create()).id, (await bench.create()).id, (await bench.create()).id];
  const seen: string[] = [];
  let token = '';
  for (let page = 0; page === 0 || token !== ''; page++) {
    const { entries = [], next_token: next = '' } = bench.ok(
      await bench.call('ListVolumes', { max_entries: 2, starting_token: token }),
    );
    if (entries.length > 2) {
      findings.fail(`with max_entries 2, a page has ${entries.length} entries`);
      return;
    }
    seen.push(...entries.map(({ volume }) => volume?.volume_id ?? ''));
    if (next !== '' && entries.length === 0) {
      findings.fail('a page without entries has a next_token');
      return;
    }
    token = next;
    if (page > 1000) {
      findings.note('more than 1000 pages; the rest was not read');
      return;
    }
  }
  const lost = ids.filter((id) => !seen.includes(id));
  if (lost.length > 0) findings.fail(`missing from all pages: ${lost.join(', ')}`);
  const double = ids.filter((id) => seen.indexOf(id) !== seen.lastIndexOf(id));
  if (double.length > 0) findings.warn(`on several pages: ${double.join(', ')}`);
}
