import { claimList } from './claim-sections.ts';
import { countText, durationText, escapeHtml, latencyText, plural, shortened } from './html.ts';
import { hourSection } from './last-hour.ts';
import { type StatusReport, stuckPhase } from './status-report.ts';
import {
  type DigestedReport,
  headline,
  queryText,
  type StatusQuery,
  type StatusView,
  stuckCount,
} from './status-view.ts';
import { auditSection, releasedSection, waitsSection } from './volume-sections.ts';

/** The parts of the page that change, by the id of the element that holds them. */
type Sections = ReadonlyMap<SectionId, string>;

export type SectionId =
  | 'summary'
  | 'hour'
  | 'reasons'
  | 'claim-list'
  | 'released'
  | 'calls'
  | 'queues'
  | 'waits'
  | 'misfits'
  | 'intents'
  | 'audit'
  | 'requests'
  | 'process';

const maxCalls = 20;

export function renderSections(view: StatusView): Sections {
  const { report, query } = view;
  return new Map([
    ['summary', summary(report)],
    ['hour', hourSection(report)],
    ['reasons', reasons(report, query)],
    ['claim-list', claimList(view)],
    ['released', releasedSection(report)],
    ['calls', calls(report)],
    ['queues', queues(report)],
    ['waits', waitsSection(report)],
    ['misfits', misfits(report)],
    ['intents', intents(report)],
    ['audit', auditSection(report.audit, report.atMs)],
    ['requests', requests(report)],
    ['process', process(report)],
  ] satisfies [SectionId, string][]);
}

function summary(report: DigestedReport): string {
  const { driver, program, role, work, calls, atMs, digest } = report;
  const { text, isGood } = headline(report);
  const roles = {
    leader: 'has been leading',
    standby: 'has been a standby',
    alone: 'has been running without leader election',
  } as const;
  const duration = durationText((atMs - role.sinceMs) / 1000);
  const figures: [string, string][] =
    work === undefined
      ? []
      : [
          ['waiting', countText(work.claims.length)],
          ['failing', countText(digest.failing)],
          ['released volumes', countText(work.released.total)],
          ['deletions failing', countText(work.released.failing)],
          [calls.length === 1 ? 'call in flight' : 'calls in flight', countText(calls.length)],
          ['longest call', calls[0] === undefined ? '–' : latencyText(calls[0].seconds)],
          [stuckCount(work) === 1 ? 'record stuck' : 'records stuck', countText(stuckCount(work))],
        ];
  const list = figures.map(([label, value]) => `<li><b>${value}</b> ${label}`).join('');
  return `<p class="headline ${isGood ? 'good' : 'bad'}"><span aria-hidden="true">${isGood ? '✓' : '!'}</span> ${escapeHtml(text)}</p>
<p class="sub"><code>${escapeHtml(program.host)}</code> ${roles[role.name]} for ${duration}.
Driver ${escapeHtml(driver.name)} ${escapeHtml(driver.version)} is ${driver.connected ? 'connected' : '<b class="bad">not connected</b>'}.</p>
${list === '' ? '' : `<ul class="figures">${list}</ul>`}`;
}

function reasons({ work, digest }: DigestedReport, query: StatusQuery): string {
  if (work === undefined) return '<p class="empty">The leader knows.</p>';
  if (digest.reasons.length === 0) return '<p class="empty">No waiting claim has failed.</p>';
  const items = digest.reasons.map(({ text, count }) => {
    const longest = text.split('…').toSorted((a, b) => b.length - a.length)[0] ?? '';
    const href = escapeHtml(
      queryText(query, { search: longest.trim().slice(0, 80), from: 0, step: undefined, claim: undefined }),
    );
    return `<li><b>${countText(count)}×</b> <a href="${href}">${escapeHtml(shortened(text, 200))}</a>`;
  });
  return `<ol class="reasons">${items.join('')}</ol>`;
}

function misfits({ work }: StatusReport): string {
  if (work === undefined) return '<p class="empty">The leader knows.</p>';
  if (work.misfits.length === 0) return '<p class="empty">Nothing is known that does not fit this sidecar.</p>';
  const items = work.misfits.map(
    ({ message, cure }) => `<li><b class="bad">!</b> ${escapeHtml(message)} ${escapeHtml(cure)}`,
  );
  return `<ul class="reasons">${items.join('')}</ul>`;
}

function calls({ calls: all }: StatusReport): string {
  if (all.length === 0) return '<p class="empty">No call is in flight.</p>';
  const rows = all
    .slice(0, maxCalls)
    .map(
      ({ method, about, seconds }) =>
        `<tr><th scope="row">${escapeHtml(method)}<td>${escapeHtml(about)}<td class="n">${latencyText(seconds)}\n`,
    );
  const caption =
    all.length > maxCalls
      ? `The ${maxCalls} longest of ${countText(all.length)} calls in flight`
      : plural(all.length, 'call', 'calls');
  return tableOf({
    label: 'Calls to the driver',
    caption,
    head: '<th scope="col">Call<th scope="col">For<th scope="col" class="n">Since',
    rows,
  });
}

function queues({ work }: StatusReport): string {
  if (work === undefined) return '<p class="empty">Queues are filled on the leader.</p>';
  const busy = work.queues.filter(({ waiting, processing, delayed }) => waiting + processing + delayed > 0);
  if (busy.length === 0) return '<p class="empty">All queues are empty.</p>';
  const rows = busy.map(
    ({ name, waiting, processing, delayed, longestSeconds, workers }) =>
      `<tr><th scope="row">${escapeHtml(name)}<td class="n">${countText(waiting)}<td class="n">${countText(processing)}${workers === undefined ? '' : ` of ${countText(workers)}`}<td class="n">${countText(delayed)}<td class="n">${processing === 0 ? '–' : durationText(longestSeconds)}\n`,
  );
  return tableOf({
    label: 'Queues',
    caption:
      'Objects that wait for a worker, are worked on (each queue has its own workers), or wait for their next attempt',
    head: '<th scope="col">Queue<th scope="col" class="n">Waiting<th scope="col" class="n">In progress<th scope="col" class="n">Delayed<th scope="col" class="n">Longest',
    rows,
  });
}

function intents({ work, atMs }: StatusReport): string {
  if (work === undefined || work.phases.length === 0)
    return '<p class="empty">No record of the intent journal is open.</p>';
  const rows = work.phases.map(({ phase, count, oldest }) => {
    const age = durationText((atMs - Date.parse(oldest.createdAt)) / 1000);
    const problem = oldest.problem === undefined ? '' : `<p class="e">${escapeHtml(shortened(oldest.problem, 300))}`;
    const name = phase === stuckPhase ? `<b class="bad">${phase}</b>` : escapeHtml(phase);
    return `<tr><th scope="row">${name}<td class="n">${countText(count)}<td>${escapeHtml(oldest.claim)}${problem}<td class="n">${age}\n`;
  });
  return tableOf({
    label: 'Volumes in progress',
    caption: 'Open records of the intent journal by phase',
    head: '<th scope="col">Phase<th scope="col" class="n">Records<th scope="col">Oldest, of claim<th scope="col" class="n">Age',
    rows,
  });
}

function requests({ requests: all }: StatusReport): string {
  if (all.length === 0) return '<p class="empty">No request yet.</p>';
  const rows = all.map(
    ({ name, count, failed, medianSeconds, p95Seconds }) =>
      `<tr><th scope="row">${escapeHtml(name)}<td class="n">${countText(count)}<td class="n">${failed > 0 ? `<b class="bad">${countText(failed)}</b>` : '0'}<td class="n">${latencyText(medianSeconds)}<td class="n">${latencyText(p95Seconds)}\n`,
  );
  const failed = all.reduce((sum, each) => sum + each.failed, 0);
  const count = all.reduce((sum, each) => sum + each.count, 0);
  const failedText = failed === 0 ? 'none failed' : `<b class="bad">${countText(failed)} failed</b>`;
  const table = tableOf({
    label: 'Requests',
    caption: 'Of the last 5 minutes; times of the last 128 of each kind',
    head: '<th scope="col">Request<th scope="col" class="n">Count<th scope="col" class="n">Failed<th scope="col" class="n">Median<th scope="col" class="n">95 %',
    rows,
  });
  return `<details><summary>${plural(count, 'request', 'requests')} of ${plural(all.length, 'kind', 'kinds')} in the last 5 minutes, ${failedText}</summary>${table}</details>`;
}

function process({ process: own, program, driver, atMs }: StatusReport): string {
  const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;
  const mebibytes = (bytes: number): string => `${Math.round(bytes / 1024 ** 2)} MiB`;
  const delay =
    own.delay === undefined
      ? 'measured while somebody watches'
      : `99 % below ${own.delay.p99Ms.toFixed(0)} ms, at most ${own.delay.maxMs.toFixed(0)} ms`;
  const facts = [
    ['Version', escapeHtml(program.version)],
    ['Running for', durationText((atMs - program.startedAtMs) / 1000)],
    [
      'Event loop busy',
      `${percent(own.busy)} of the last ${durationText(own.busyOverSeconds)}, ${percent(own.busySinceStart)} since the start`,
    ],
    ['Event loop delay', delay],
    ['Memory', `${mebibytes(own.residentBytes)} resident, ${mebibytes(own.heapUsedBytes)} of it in use as heap`],
    ['Driver capabilities', driver.capabilities.map((name) => `<code>${escapeHtml(name)}</code>`).join(' ') || 'none'],
  ];
  return `<dl class="facts">${facts.map(([term, text]) => `<dt>${term}<dd>${text}`).join('')}</dl>`;
}

function tableOf({
  label,
  caption,
  head,
  rows,
}: Record<'label' | 'caption' | 'head', string> & { rows: string[] }): string {
  return `<div class="scroll" role="region" aria-label="${label}" tabindex="0"><table><caption>${caption}</caption>
<thead><tr>${head}</thead><tbody>${rows.join('')}</tbody></table></div>`;
}

/** The whole page. It is complete without its script. */
export function statusDocument(view: StatusView): string {
  const { report, query } = view;
  const sections = renderSections(view);
  const part = (id: SectionId, element = 'div'): string =>
    `<${element} id="${id}">${sections.get(id) ?? ''}</${element}>`;
  const section = (id: SectionId, heading: string): string =>
    `<section aria-labelledby="${id}-heading"><h2 id="${id}-heading">${heading}</h2>${part(id)}</section>\n`;
  const name = escapeHtml(report.driver.name);
  const title = `${query.claim === undefined ? name : `${escapeHtml(query.claim)} – ${name}`} – csi-provisioner`;
  const { mark } = headline(report);
  const time = new Date(report.atMs).toISOString();
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${mark === '' ? '' : `${mark} – `}${title}</title>
<link rel="icon" href="status/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="status/style.css">
<script src="status/live.js" defer></script>
</head>
<body data-title="${title}" data-as-of="${time}">
<a class="skip" href="#claims-heading">Skip to the waiting claims</a>
<header>
<h1>${name} <small>csi-provisioner</small></h1>
<p class="live"><span id="as-of">As of <time datetime="${time}">${time.slice(11, 19)} UTC</time></span>
<a id="reload" href="${escapeHtml(queryText(query))}">Reload</a> <button id="pause" type="button" hidden>Pause</button></p>
<p id="announcement" class="hidden" role="status" aria-live="polite"></p>
</header>
<main>
<section aria-label="Summary">${part('summary')}</section>
${section('hour', 'The last hour')}
${section('reasons', 'Why claims fail')}
<section aria-labelledby="claims-heading"><h2 id="claims-heading" tabindex="-1">Waiting claims</h2>
<form role="search" action="status" method="get"><label for="q">Search namespace/name, class, UID or error</label>
<input id="q" name="q" type="search" maxlength="400" value="${escapeHtml(query.search)}" autocomplete="off" spellcheck="false">${
    query.step === undefined ? '' : `<input type="hidden" name="step" value="${query.step}">`
  }
<button>Search</button></form>
${part('claim-list')}</section>
${section('released', 'Released volumes')}
${section('calls', 'Calls to the driver')}
${section('queues', 'Queues')}
${section('misfits', 'Configuration')}
${section('waits', 'Deliberate waits')}
${section('intents', 'Volumes in the making')}
${section('audit', 'Audit')}
${section('requests', 'Requests')}
${section('process', 'Process')}
</main>
</body>
</html>
`;
}
