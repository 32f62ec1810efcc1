/** The picture of the last hour: drawn here, so that it needs no script. */
import { countText, plural } from './html.ts';
import type { StatusReport } from './status-report.ts';

const minutes = 60;
/** Of a minute, in the units of the drawing; the style sheet stretches it. */
const width = 10;
const height = 50;

interface Chart {
  readonly id: string;
  readonly title: string;
  /** Undefined: not known. */
  readonly values: readonly (number | undefined)[];
  readonly figure: string;
  readonly words: string;
  readonly axis: string;
}

export function hourSection({ lastHour }: StatusReport): string {
  if (lastHour === undefined) return '<p class="empty">The leader has the picture of the last hour.</p>';
  const { made, failed, deleted, deletionsFailed, waiting } = lastHour;
  const failures = failed.map((count, index) => count + (deletionsFailed[index] ?? 0));
  const charts = [
    counts('made', 'Volumes made', made),
    counts('failed', 'Attempts failed', failures, `, ${countText(sum(deletionsFailed))} of them to delete a volume`),
    counts('deleted', 'Volumes deleted', deleted),
    level('waiting', 'Claims waiting', waiting),
  ];
  return `<div class="hour">${charts.map(figure).join('')}</div>`;
}

function counts(id: string, title: string, values: readonly number[], more = ''): Chart {
  const total = sum(values);
  const most = Math.max(0, ...values);
  const recent = sum(values.slice(-5));
  return {
    id,
    title,
    values,
    figure: countText(total),
    words: `${countText(total)} in ${spanText(values.length)}${more}; at most ${countText(most)} in a minute, ${countText(recent)} in the last 5 minutes.`,
    axis: `at most ${countText(most)} a minute`,
  };
}

function level(id: string, title: string, values: readonly (number | undefined)[]): Chart {
  const known = values.filter((value) => value !== undefined);
  const now = known.at(-1);
  const common = { id, title, values };
  if (now === undefined) return { ...common, figure: '–', words: 'Not counted yet.', axis: 'counted each minute' };
  const [most, least] = [Math.max(...known), Math.min(...known)];
  return {
    ...common,
    figure: countText(now),
    words: `${countText(now)} at last, counted once a minute; in ${spanText(values.length)} at most ${countText(most)}, at least ${countText(least)}.`,
    axis: `at most ${countText(most)}`,
  };
}

function figure({ id, title, values, figure: number, words, axis }: Chart): string {
  return `<figure class="${id}"><figcaption>${title} <b>${number}</b></figcaption>
<svg role="img" aria-labelledby="hour-${id} hour-${id}-words" viewBox="0 0 ${minutes * width} ${height}" preserveAspectRatio="none"><title id="hour-${id}">${title}</title><desc id="hour-${id}-words">${words}</desc><path class="base" d="M0 ${height}h${minutes * width}"/><path class="bars" d="${bars(values)}"/></svg>
<p class="axis" aria-hidden="true"><span>60 min ago</span><span>${axis}</span><span>now</span></p></figure>`;
}

/** The outline of a bar for each minute, the last one at the right; any number above 0 can be seen. */
function bars(values: readonly (number | undefined)[]): string {
  const most = Math.max(1, ...values.map((value) => value ?? 0));
  const outline = values.map((value = 0) => {
    const bar = value === 0 ? 0 : Math.max(2, Math.round((value / most) * (height - 2)));
    return `V${height - bar}h${width}`;
  });
  return `M${(minutes - values.length) * width} ${height}${outline.join('')}V${height}z`;
}

function spanText(count: number): string {
  return count >= minutes
    ? 'the last hour'
    : `the ${plural(count, 'minute', 'minutes')} since this instance began to work`;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
