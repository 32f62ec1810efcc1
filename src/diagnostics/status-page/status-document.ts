import { headline } from './headline.ts';
import { escapeHtml } from './html.ts';
import { queryText } from './status-query.ts';
import { renderSections, type SectionId } from './status-sections.ts';
import type { StatusView } from './status-view.ts';

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
