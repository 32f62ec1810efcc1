/** The style sheet of the status page. Colours keep a contrast of at least 4.5 to 1 (WCAG 2.2, AA); nothing moves. */
export const statusStyle = `
:root {
  color-scheme: light dark;
  --page: #fff; --text: #1c1f23; --muted: #59616b; --line: #d9dde2; --band: #f4f6f8;
  --link: #0b57d0; --bad: #b3261e; --good: #1b6e3c; --focus: #0b57d0;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14171a; --text: #e6e8ea; --muted: #a3abb3; --line: #343a41; --band: #1d2126;
    --link: #8ab8ff; --bad: #ff8a80; --good: #7ddc9e; --focus: #8ab8ff;
  }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 0 1.25rem 3rem; max-width: 78rem; background: var(--page); color: var(--text);
  font: 0.9375rem/1.45 system-ui, sans-serif; }
a { color: var(--link); text-underline-offset: 0.15em; }
:focus-visible { outline: 2px solid var(--focus); outline-offset: 2px; }
.skip { position: absolute; left: -100rem; }
.skip:focus { left: 0.5rem; top: 0.5rem; padding: 0.4rem 0.8rem; background: var(--page); z-index: 1; }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
header { display: flex; flex-wrap: wrap; justify-content: space-between; align-items: baseline; gap: 0 1rem;
  padding: 0.9rem 0 0.5rem; border-bottom: 1px solid var(--line); }
h1 { margin: 0; font-size: 1.25rem; overflow-wrap: anywhere; }
h1 small { white-space: nowrap; color: var(--muted); font-weight: 400; font-size: 0.9375rem; }
h2 { margin: 1.9rem 0 0.5rem; font-size: 1.0625rem; }
h3 { margin: 1rem 0 0.3rem; font-size: 0.9375rem; overflow-wrap: anywhere; }
p { margin: 0.2rem 0; }
.live, .sub, caption, .empty { color: var(--muted); }
.live { font-variant-numeric: tabular-nums; }
body.stale main { --text: var(--muted); --link: var(--muted); --bad: var(--muted); --good: var(--muted); filter: grayscale(1);
  color: var(--muted); }
body.stale #as-of { padding: 0.1rem 0.5rem; border: 2px solid var(--bad); color: var(--bad); font-weight: 600; }
.headline { margin: 1rem 0 0.2rem; font-size: 1.375rem; font-weight: 600; overflow-wrap: anywhere; }
.good { color: var(--good); }
.bad { color: var(--bad); }
code { font: 0.875em ui-monospace, monospace; overflow-wrap: anywhere; }
.figures { display: flex; flex-wrap: wrap; gap: 0.5rem 2rem; margin: 0.8rem 0 0; padding: 0; list-style: none; color: var(--muted); }
.figures b { color: var(--text); font-size: 1.25rem; font-variant-numeric: tabular-nums; }
form { display: flex; flex-wrap: wrap; align-items: center; gap: 0.4rem 0.6rem; margin-bottom: 0.6rem; }
form label { color: var(--muted); }
input[type="search"] { flex: 1 1 14rem; max-width: 32rem; min-height: 2rem; padding: 0.2rem 0.5rem; font: inherit;
  color: inherit; background: var(--page); border: 1px solid var(--muted); border-radius: 4px; }
button { min-height: 2rem; padding: 0.2rem 0.9rem; font: inherit; color: inherit; background: var(--band);
  border: 1px solid var(--muted); border-radius: 4px; cursor: pointer; }
.steps { display: flex; flex-wrap: wrap; gap: 0.35rem; margin: 0 0 0.6rem; padding: 0; list-style: none; }
.steps a { display: block; padding: 0.15rem 0.6rem; border: 1px solid var(--line); border-radius: 1rem; color: var(--text);
  text-decoration: none; font-variant-numeric: tabular-nums; }
.steps a:hover { text-decoration: underline; }
.steps a[aria-current] { border-color: var(--text); box-shadow: inset 0 0 0 1px var(--text); }
.steps a.bad b { color: var(--bad); }
/* Lists are as high as what is in them, up to a limit; the browser keeps what a reader looks at where it is (CSS Scroll Anchoring). */
#claim-list .scroll { max-height: 34rem; }
#claim-list:has(.detail) .scroll { max-height: none; }
#released .scroll { max-height: 15rem; }
:is(#calls, #intents) .scroll { max-height: 13rem; }
:is(#claim-list, #released, #calls, #intents) .scroll { border-bottom: 1px solid var(--line); }
.detail { scroll-margin-top: 4.5rem; }
div.detail, tr.detail > td { padding: 0.6rem 1rem 0.9rem; background: var(--band); border-left: 3px solid var(--link); }
tr.detail h3 { margin-top: 0; }
details summary { cursor: pointer; }
.released th:first-child { width: 38%; }
.scroll { overflow: auto; }
:is(#claim-list, #released, #calls, #intents) thead th { position: sticky; top: 0; background: var(--page); }
.hour { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(15rem, 100%), 1fr)); gap: 0.8rem 2rem; }
.hour figure { margin: 0; min-width: 0; }
.hour figcaption { color: var(--muted); }
.hour figcaption b { color: var(--text); font-size: 1.25rem; font-variant-numeric: tabular-nums; }
.hour figcaption small { display: block; color: var(--muted); font-size: 0.8125rem; }
.hour .plot { display: grid; grid-template-columns: max-content 1fr; gap: 0.4rem; }
.hour .scale { display: flex; flex-direction: column; justify-content: space-between; margin: 0; text-align: right; min-width: 1.6rem;
  color: var(--muted); font-size: 0.75rem; line-height: 1; font-variant-numeric: tabular-nums; }
.hour svg { display: block; width: 100%; height: 4rem; }
.hour .grid { fill: none; stroke: var(--line); stroke-width: 1; vector-effect: non-scaling-stroke; }
.hour .bars { fill: var(--link); }
.hour .failed .bars { fill: var(--bad); }
.hour .base { fill: none; stroke: var(--muted); stroke-width: 1; vector-effect: non-scaling-stroke; }
.hour .axis { display: flex; justify-content: space-between; gap: 0.5rem; margin: 0.1rem 0 0 2rem; color: var(--muted);
  font-size: 0.8125rem; font-variant-numeric: tabular-nums; }
table { width: 100%; border-collapse: collapse; }
caption { padding: 0.2rem 0; text-align: left; font-size: 0.875rem; }
th, td { padding: 0.3rem 0.9rem 0.3rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line);
  overflow-wrap: anywhere; }
table:not(.claims, .released) tbody th { overflow-wrap: break-word; }
thead th { color: var(--muted); font-weight: 600; font-size: 0.8125rem; overflow-wrap: normal; }
tbody th { font-weight: 400; }
tbody tr:hover { background: var(--band); }
td b { font-weight: 600; }
.n, :is(.claims, .released) :is(th, td):nth-child(n + 3) { text-align: right; padding-right: 0; padding-left: 0.9rem; white-space: nowrap;
  font-variant-numeric: tabular-nums; }
.n + :not(.n) { padding-left: 2rem; }
.claims th:first-child { width: 30%; }
.e { margin: 0; color: var(--muted); font-size: 0.93em; }
.reasons { margin: 0; padding-left: 1.4rem; overflow-wrap: anywhere; }
.pages { display: flex; gap: 1.5rem; margin-top: 0.7rem; }
.facts { display: grid; grid-template-columns: max-content 1fr; gap: 0.25rem 1.5rem; margin: 0; }
.facts + p { margin-top: 0.8rem; }
.live button { margin-left: 0.4rem; }
.facts dt { color: var(--muted); }
.facts dd { margin: 0; overflow-wrap: anywhere; }
@media (max-width: 40rem) {
  body { padding: 0 0.8rem 2rem; }
  th, td { padding-right: 0.5rem; }
  .n, :is(.claims, .released) :is(th, td):nth-child(n + 3) { padding-left: 0.5rem; }
  .n + :not(.n) { padding-left: 1rem; }
  table:not(.claims, .released) { font-size: 0.8125rem; }
  table:not(.claims, .released) .n { white-space: normal; padding-left: 0.3rem; }
  table:not(.claims, .released) thead th { font-size: 0.75rem; }
  #requests tbody th { overflow-wrap: anywhere; }
  :is(.claims, .released) thead { position: absolute; clip-path: inset(50%); }
  :is(.claims, .released) tbody tr { display: grid; grid-template-columns: 1fr 1fr; padding: 0.4rem 0; border-bottom: 1px solid var(--line); }
  :is(.claims, .released) tbody :is(th, td) { border: 0; padding: 0.05rem 0; }
  :is(.claims, .released) tbody th:first-child, :is(.claims, .released) tbody td:nth-child(2) { grid-column: 1 / -1; width: auto; }
  :is(.claims, .released) tbody td:nth-child(n + 3) { padding-left: 0; text-align: left; color: var(--muted); font-size: 0.875rem; }
  :is(.claims, .released) tbody td:nth-child(3)::before { content: "Next attempt: "; }
  .claims tbody td:nth-child(4)::before { content: "Waiting: "; }
  .released tbody td:nth-child(4)::before { content: "Released: "; }
  .figures { gap: 0.3rem 1.2rem; }
  .claims tbody tr.detail { display: block; }
  .claims tbody tr.detail td { display: block; padding: 0.6rem; }
  #claim-list .scroll { max-height: none; }
  .facts { grid-template-columns: 1fr; gap: 0; }
  .facts dd { margin-bottom: 0.5rem; }
  a, button, .steps a { min-height: 1.5rem; }
}
@media (forced-colors: active) { .hour .bars { fill: CanvasText; } .steps a[aria-current] { outline: 2px solid; } }
@media print {
  .live, form, .skip { display: none; }
  .scroll { max-height: none; }
}
`;

/** A drum, as storage is drawn. */
export const statusIcon =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path fill="#0b57d0" d="M2 4v8c0 1.7 12 1.7 12 0V4"/><ellipse cx="8" cy="4" rx="6" ry="2" fill="#8ab8ff"/></svg>';
