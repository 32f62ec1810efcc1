/** Volumes that are to be deleted, waits that keep storage from being lost, and what the last audit has found. */
import { countText, durationText, errorText, escapeHtml, plural, shortened } from './html.ts';
import type {
  ReportedAudit,
  ReportedFinding,
  ReportedVolume,
  ReportedVolumeStep,
  ReportedWait,
  StatusReport,
} from './status-report.ts';

/** Volumes in the list, and the bytes that they may take. */
const maxVolumes = 25;
const maxBytes = 4500;
const errorLength = 160;

const stepTexts: Readonly<Record<ReportedVolumeStep, string>> = {
  syncing: 'in progress',
  queued: 'queued',
  retrying: 'waits for next attempt',
  'earlier-call': 'waits for the end of an earlier call, which may still be creating the storage',
  'shared-storage': 'waits for another volume',
  'other-source': 'left as it is: its storage does not belong to this provisioner',
  idle: 'not queued: still attached, or left to another instance',
};

/** The most urgent of the released volumes. */
export function releasedSection({ work, atMs }: StatusReport): string {
  if (work === undefined) return '<p class="empty">The leader deletes volumes.</p>';
  const { released } = work;
  if (released.total === 0) return '<p class="empty">No released volume is to be deleted.</p>';
  let rows = '';
  let count = 0;
  for (const volume of released.first.slice(0, maxVolumes)) {
    const row = volumeRow(volume, atMs);
    if (count > 0 && rows.length + row.length > maxBytes) break;
    rows += row;
    count += 1;
  }
  const order = 'those that fail first, then the oldest';
  const all = plural(released.total, 'volume', 'volumes');
  const caption =
    count === released.total ? `${all}, ${order}` : `${countText(count)} of ${all}, ${order}; ${failingText(released)}`;
  return `<div class="scroll" role="region" aria-label="Released volumes" tabindex="0"><table class="released"><caption>${caption}</caption>
<thead><tr><th scope="col">Volume<th scope="col">State and last error<th scope="col">Next attempt<th scope="col">Released</thead>
<tbody>${rows}</tbody></table></div>`;
}

function failingText({ failing }: { failing: number }): string {
  return failing === 1 ? '1 of all fails' : `${countText(failing)} of all fail`;
}

function volumeRow(volume: ReportedVolume, atMs: number): string {
  const { name, claim, step, failures, lastError, nextTryInMs, waitText } = volume;
  const of = claim === '' ? '' : `<p class="e">of claim ${escapeHtml(shortened(claim, 120))}`;
  const since = lastError === undefined ? '' : ` for ${durationText((atMs - lastError.sinceMs) / 1000)}`;
  const failed = failures === 0 ? '' : `, failed ${countText(failures)}×${since}`;
  const wait = waitText === undefined ? '' : `<p class="e">${escapeHtml(waitText)}`;
  const error =
    lastError === undefined ? '' : `<p class="e">${escapeHtml(shortened(errorText(lastError.message), errorLength))}`;
  const state = `<b${lastError === undefined ? '' : ' class="bad"'}>${stepTexts[step]}</b>`;
  return `<tr><th scope="row">${escapeHtml(name)}${of}<td>${state}${failed}${wait}${error}<td>${nextText(step, nextTryInMs)}<td>${releasedText(volume, atMs)}\n`;
}

function nextText(step: ReportedVolumeStep, inMs: number | undefined): string {
  if (inMs !== undefined) return inMs < 1000 ? 'now' : `in ${durationText(inMs / 1000)}`;
  return step === 'syncing' || step === 'queued' ? 'now' : '–';
}

function releasedText({ releasedAt }: ReportedVolume, atMs: number): string {
  const releasedAtMs = Date.parse(releasedAt ?? '');
  return Number.isNaN(releasedAtMs) ? '–' : `${durationText((atMs - releasedAtMs) / 1000)} ago`;
}

const waitTexts: Readonly<Record<ReportedWait['reason'], { readonly what: string; readonly end?: string }>> = {
  'earlier-call': { what: 'for the end of an earlier call, which may still be creating the storage' },
  'other-process': {
    what: 'for the record of another process',
    end: 'once it is closed, or silent for 30 s',
  },
  'late-save': { what: 'for a late save: the API server may still create the PersistentVolume' },
  proof: { what: 'for a proof: what happened to PersistentVolumes is being read' },
  'shared-storage': {
    what: 'for another PersistentVolume with the same storage',
    end: 'once that one is deleted or changed',
  },
  'journal-rights': {
    what: 'for the permission to write the Leases of the intent journal: no volume waits, but none is recorded',
    end: 'tried again every minute',
  },
};

/** A row for each wait of which there is one. */
export function waitsSection({ work }: StatusReport): string {
  if (work === undefined) return '<p class="empty">The leader waits.</p>';
  const waits = work.waits.filter(({ count }) => count > 0);
  if (waits.length === 0) return '<p class="empty">Nothing waits on purpose.</p>';
  const rows = waits.map(({ reason, count, firstEndsInMs, lastEndsInMs, example }) => {
    const { what, end = '–' } = waitTexts[reason];
    const about = example === undefined ? '–' : escapeHtml(shortened(example, 120));
    return `<tr><th scope="row">${what}<td class="n">${countText(count)}<td>${endText(firstEndsInMs, lastEndsInMs, end)}<td>${about}\n`;
  });
  return `<div class="scroll" role="region" aria-label="Deliberate waits" tabindex="0"><table><caption>Nothing is deleted or closed meanwhile, so that no storage is lost or left behind</caption>
<thead><tr><th scope="col">Wait<th scope="col" class="n">Volumes<th scope="col">Ends<th scope="col">Such as</thead><tbody>${rows.join('')}</tbody></table></div>`;
}

function endText(firstMs: number | undefined, lastMs: number | undefined, otherwise: string): string {
  if (firstMs === undefined || lastMs === undefined) return otherwise;
  const [first, last] = [firstMs, lastMs].map((ms) => durationText(Math.ceil(ms / 1000)));
  return first === last ? `in ${first ?? ''}` : `in ${first ?? ''} to ${last ?? ''}`;
}

/** A deliberate wait of one claim, in a few words. */
export function claimWaitText({
  reason,
  endsInMs,
}: {
  reason: keyof typeof waitTexts;
  endsInMs: number | undefined;
}): string {
  const { what, end = '' } = waitTexts[reason];
  const ending = endsInMs === undefined ? end : `ends in ${durationText(Math.ceil(endsInMs / 1000))}`;
  return `a former attempt is undone first, and waits ${what}${ending === '' ? '' : ` (${ending})`}`;
}

const badStates: ReadonlySet<string> = new Set(['lost', 'leaked', 'stuck']);

/** @param audit - undefined: there is none on this instance. */
export function auditSection(audit: ReportedAudit | undefined, atMs: number): string {
  if (audit === undefined) return '<p class="empty">Volumes are audited with --audit-interval, on the leader.</p>';
  const { last, problem } = audit;
  const why = problem === undefined ? '' : `<p class="bad">${escapeHtml(shortened(problem, 300))}`;
  if (last === undefined) return `${why || '<p class="empty">The first audit comes after the interval.'}</p>`;
  const counts = Object.entries(last.counts)
    .map(([state, count]) => `<li><b>${countText(count)}</b> ${escapeHtml(state)}`)
    .join('');
  const ago = durationText((atMs - last.endedAtMs) / 1000);
  const sub = `<p class="sub">Ended ${ago} ago, after ${durationText(last.seconds)}.</p>`;
  return `${why}${sub}<ul class="figures">${counts}</ul>${table(last.findings)}`;
}

function table(findings: readonly ReportedFinding[]): string {
  if (findings.length === 0) return '<p class="empty">Every volume has its PersistentVolume.</p>';
  const rows = findings.map(({ state, volume, claim, age, size, detail, command }) => {
    const name = badStates.has(state) ? `<b class="bad">${escapeHtml(state)}</b>` : escapeHtml(state);
    const copy = command === undefined ? '' : `<p class="e"><code>${escapeHtml(command)}</code>`;
    return `<tr><th scope="row">${name}<td>${escapeHtml(volume)}<td>${escapeHtml(claim)}<td class="n">${escapeHtml(age || 'unknown')}<td class="n">${escapeHtml(size || 'unknown')}<td>${escapeHtml(shortened(detail, 300))}${copy}\n`;
  });
  const head = ['State', 'Volume', 'Claim', 'Age', 'Size', 'Detail'].map((text) => `<th scope="col">${text}`).join('');
  return `<div class="scroll" role="region" aria-label="Audit" tabindex="0"><table><caption>The worst ${findings.length} of the findings</caption>
<thead><tr>${head}</thead><tbody>${rows.join('')}</tbody></table></div>`;
}
