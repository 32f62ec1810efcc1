import { countText, durationText, errorText, escapeHtml, plural, shortened } from './html.ts';
import { queryText, type StatusQuery, type StatusView } from './status-view.ts';
import {
  badSteps,
  claimSteps,
  type ReportedClaim,
  type ReportedExplanation,
  type ReportedStep,
} from './status-report.ts';
import { claimWaitText } from './volume-sections.ts';

/** Claims on one page, and the bytes that they may take: names and errors may be long. */
const pageLength = 200;
const pageBytes = 46_000;
/** Of an error in the list; the page of the claim has all of it. */
const errorLength = 110;

const stepTexts: Readonly<Record<ReportedStep, string>> = {
  retrying: 'waits for next attempt',
  'class-missing': 'StorageClass missing',
  saving: 'volume created, not saved yet',
  syncing: 'in progress',
  queued: 'queued',
  waiting: 'waits',
  'not-handed-over': 'not handed over yet',
  'waiting-for-consumer': 'waits for a Pod',
  'volume-made': 'volume created, not bound yet',
  idle: 'not queued',
};

const stepMeanings: Readonly<Record<ReportedStep, string>> = {
  retrying: 'The last attempt failed. The next one is scheduled.',
  'class-missing': 'The claim names a StorageClass that does not exist.',
  saving: 'The driver has created the volume; the API server has not accepted its PersistentVolume yet.',
  syncing: 'A worker has the claim: it calls the driver, or is about to.',
  queued: 'The claim waits for a free worker.',
  waiting: 'Something else has to end first, such as the work of another process. Nothing has failed.',
  'not-handed-over':
    'kube-controller-manager has not handed the claim to this driver yet (annotation volume.kubernetes.io/storage-provisioner).',
  'waiting-for-consumer':
    'The class has WaitForFirstConsumer: the volume is created once a Pod that uses the claim is scheduled.',
  'volume-made': 'The PersistentVolume exists; kube-controller-manager has to bind it.',
  idle: 'Nothing happens here until the claim changes, or another instance provisions it.',
};

/** The list of claims, and in it the one that was asked for. */
export function claimList({ report, query, found, explanation }: StatusView): string {
  if (report.work === undefined) return '<p class="empty">This instance is a standby: the leader has the list.</p>';
  const { claims } = report.work;
  const shown = mostUrgentFirst(query.step === undefined ? found : found.filter(({ step }) => step === query.step));
  const page = pageOf(shown, query, report.atMs);
  // where its row is not on this page of the list, it stands above the list
  const isInPlace = page.claims.some((claim) => nameOf(claim) === query.claim);
  const detail = query.claim === undefined ? '' : oneClaim(claims, query, { atMs: report.atMs, explanation });
  if (claims.length === 0) {
    const text =
      report.unhealthyReason === undefined ? 'No claim waits for a volume.' : 'No waiting claim is known yet.';
    return `${detail === '' ? '' : detailBlock(detail)}<p class="empty">${text}</p>`;
  }
  return [
    detail === '' || isInPlace ? '' : detailBlock(detail),
    stepLinks(found, query),
    table(page, { query, detail }),
  ].join('');
}

function nameOf({ namespace, name }: ReportedClaim): string {
  return `${namespace}/${name}`;
}

/** Claims for which something has failed, then those that are worked on, then those that only wait for a Pod; each oldest first. */
function mostUrgentFirst(claims: readonly ReportedClaim[]): readonly ReportedClaim[] {
  const rank = ({ step }: ReportedClaim): number => (badSteps.has(step) ? 0 : step === 'waiting-for-consumer' ? 2 : 1);
  return [0, 1, 2].flatMap((each) => claims.filter((claim) => rank(claim) === each));
}

/** The element that a link to a claim leads to. */
const detailId = 'claim';

function detailBlock(detail: string): string {
  return `<div id="${detailId}" class="detail">${detail}</div>`;
}

/** How many claims are in each step; each is a link to them alone. */
function stepLinks(claims: readonly ReportedClaim[], query: StatusQuery): string {
  const counts = new Map<ReportedStep, number>();
  for (const { step } of claims) counts.set(step, (counts.get(step) ?? 0) + 1);
  const link = (step: ReportedStep | undefined, text: string, count: number): string => {
    const current = query.step === step ? ' aria-current="true"' : '';
    const bad = step !== undefined && badSteps.has(step) && count > 0 ? ' class="bad"' : '';
    const href = escapeHtml(queryText(query, { step, from: 0 }));
    return `<li><a href="${href}"${current}${bad}>${text} <b>${countText(count)}</b></a>`;
  };
  const steps = claimSteps.filter((step) => counts.has(step) || query.step === step);
  const links = steps.map((step) => link(step, stepTexts[step], counts.get(step) ?? 0));
  return `<ul class="steps" aria-label="Claims by step">${link(undefined, 'all', claims.length)}${links.join('')}</ul>`;
}

interface ClaimPage {
  readonly claims: readonly ReportedClaim[];
  readonly from: number;
  readonly total: number;
  readonly rows: readonly string[];
}

function pageOf(claims: readonly ReportedClaim[], query: StatusQuery, atMs: number): ClaimPage {
  const lastPage = Math.max(0, Math.floor((claims.length - 1) / pageLength) * pageLength);
  const from = query.from < claims.length ? query.from : lastPage;
  const rows: string[] = [];
  let bytes = 0;
  for (const claim of claims.slice(from, from + pageLength)) {
    const row = claimRow(claim, query, atMs);
    if (rows.length > 0 && bytes + row.length > pageBytes) break;
    rows.push(row);
    bytes += row.length;
  }
  return { claims: claims.slice(from, from + rows.length), from, total: claims.length, rows };
}

function table(
  { claims, from, total, rows }: ClaimPage,
  { query, detail }: { query: StatusQuery; detail: string },
): string {
  if (claims.length === 0) return '<p class="empty">No waiting claim matches.</p>';
  const last = from + claims.length;
  const order = 'those that fail first, then the oldest';
  const range =
    claims.length === total
      ? `${plural(total, 'claim', 'claims')}, ${order}`
      : `${countText(from + 1)} to ${countText(last)} of ${countText(total)} claims, ${order}`;
  const body = rows.map((row, index) => {
    const claim = claims[index];
    if (claim === undefined || nameOf(claim) !== query.claim) return row;
    return `${row}<tr id="${detailId}" class="detail"><td colspan="4">${detail}\n`;
  });
  return `<div class="scroll" role="region" aria-label="Waiting claims" tabindex="0"><table class="claims"><caption>${range}</caption>
<thead><tr><th scope="col">Claim<th scope="col">State and last error<th scope="col">Next attempt<th scope="col">Waiting</thead>
<tbody>${body.join('')}</tbody></table></div>${pageLinks(query, { from, last, total })}`;
}

function claimRow(claim: ReportedClaim, query: StatusQuery, atMs: number): string {
  const name = nameOf(claim);
  const isOpen = name === query.claim; // a second click closes it
  const link = isOpen ? queryText(query, { claim: undefined }) : `${queryText(query, { claim: name })}#${detailId}`;
  const error =
    claim.lastError === undefined
      ? ''
      : `<p class="e">${escapeHtml(shortened(errorText(claim.lastError.message), errorLength))}`;
  const state = `${badSteps.has(claim.step) ? '<b class="bad">' : '<b>'}${stepTexts[claim.step]}</b>`;
  return `<tr><th scope="row"><a href="${escapeHtml(link)}"${isOpen ? ' aria-expanded="true"' : ''}>${escapeHtml(name)}</a><td>${state}${failuresText(claim)}${waitText(claim)}${error}<td>${nextTry(claim)}<td>${age(claim.createdAt, atMs)}\n`;
}

function waitText({ wait }: ReportedClaim): string {
  return wait === undefined ? '' : `<p class="e">${claimWaitText(wait)}`;
}

function failuresText(claim: ReportedClaim): string {
  const failures = failuresOf(claim);
  return failures === 0 ? '' : `, failed ${countText(failures)}×`;
}

/** An attempt that found that it has to wait has not failed. */
function failuresOf({ failures, lastError }: ReportedClaim): number {
  return lastError?.kind === 'waiting' ? 0 : failures;
}

function nextTry({ nextTryInMs, step }: ReportedClaim): string {
  if (nextTryInMs !== undefined) return nextTryInMs < 1000 ? 'now' : `in ${durationText(nextTryInMs / 1000)}`;
  return step === 'syncing' || step === 'queued' ? 'now' : '–';
}

function age(createdAt: string, atMs: number): string {
  const createdAtMs = Date.parse(createdAt);
  return Number.isNaN(createdAtMs) ? '–' : durationText((atMs - createdAtMs) / 1000);
}

function pageLinks(query: StatusQuery, { from, last, total }: { from: number; last: number; total: number }): string {
  if (from === 0 && last === total) return '';
  const link = (start: number, rel: string, text: string): string =>
    `<a href="${escapeHtml(queryText(query, { from: start }))}" rel="${rel}">${text}</a> `;
  const previous = from > 0 ? link(Math.max(0, from - pageLength), 'prev', 'Previous claims') : '';
  const next = last < total ? link(last, 'next', 'Next claims') : '';
  return `<nav class="pages" aria-label="Pages of claims">${previous}${next}</nav>`;
}

function oneClaim(
  claims: readonly ReportedClaim[],
  query: StatusQuery,
  { atMs, explanation }: { atMs: number; explanation: ReportedExplanation | undefined },
): string {
  const back = `<p><a href="${escapeHtml(queryText(query, { claim: undefined }))}">Close</a></p>`;
  const claim = claims.find((each) => nameOf(each) === query.claim);
  const name = escapeHtml(query.claim ?? '');
  if (claim === undefined) {
    return `<h3>${name}</h3><p class="empty">This claim does not wait here: it has its volume, is gone, or is not for this driver.</p>${back}`;
  }
  const { lastError } = claim;
  const facts: [string, string][] = [
    ...explained(explanation),
    ['State', `${stepTexts[claim.step]}. ${stepMeanings[claim.step]}`],
    ['Waiting for', age(claim.createdAt, atMs)],
    ['Next attempt', nextTry(claim)],
    ...(claim.wait === undefined ? [] : [['Waits', claimWaitText(claim.wait)] as [string, string]]),
    ['Failed in a row', countText(failuresOf(claim))],
    ...lastErrorFacts(lastError, atMs),
    ['StorageClass', claim.className === '' ? 'none' : escapeHtml(claim.className)],
    ['UID', `<code>${escapeHtml(claim.uid)}</code>`],
    ['Created', escapeHtml(claim.createdAt)],
    [
      'Explain',
      `<code>kubectl csi why ${name}</code> or <code>csi-provisioner why ${name}</code>, which also see Pods, nodes and Secrets`,
    ],
  ];
  const list = facts.map(([term, text]) => `<dt>${term}<dd>${text}`).join('');
  return `<h3>${name}</h3><dl class="facts">${list}</dl>${back}`;
}

function lastErrorFacts(lastError: ReportedClaim['lastError'], atMs: number): [string, string][] {
  if (lastError === undefined) return [['Last error', 'none']];
  const { kind, message } = lastError;
  const term = kind === 'failed' ? 'Last error' : 'Last attempt';
  return [
    [term, escapeHtml(message)],
    [`${term} was`, ago(lastError.atMs, atMs)],
  ];
}

/** Cause and cure, as `why` names them. */
function explained(explanation: ReportedExplanation | undefined): [string, string][] {
  if (explanation === undefined) return [];
  const { verdict, cause, message, cure } = explanation;
  const label = cause === null ? verdict : `${verdict}: ${cause}`;
  return [
    ['Cause', `<b>${escapeHtml(label)}</b>. ${escapeHtml(message)}`],
    ['What to do', cure === '' ? 'nothing' : `${escapeHtml(cure)}.`],
  ];
}

function ago(thenMs: number, atMs: number): string {
  return `${durationText((atMs - thenMs) / 1000)} ago`;
}
