const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;
const year = 365 * day;

/** How long ago a timestamp was, in the short form of tables. */
export function ageText(time: unknown, nowMs: number): string {
  const then = typeof time === 'string' ? Date.parse(time) : NaN;
  if (Number.isNaN(then)) return '<unknown>';
  return durationText(nowMs - then);
}

/** A duration in the same form. */
export function durationText(ms: number): string {
  if (ms < -second) return '<invalid>';
  if (ms < 0) return '0s';
  if (ms < 2 * minute) return whole(ms, second, 's');
  if (ms < 10 * minute) return split(ms, minute, 'm', second, 's');
  if (ms < 3 * hour) return whole(ms, minute, 'm');
  if (ms < 8 * hour) return split(ms, hour, 'h', minute, 'm');
  if (ms < 2 * day) return whole(ms, hour, 'h');
  if (ms < 8 * day) return split(ms, day, 'd', hour, 'h');
  if (ms < 2 * year) return whole(ms, day, 'd');
  if (ms < 8 * year) return split(ms, year, 'y', day, 'd');
  return whole(ms, year, 'y');
}

function whole(ms: number, unit: number, letter: string): string {
  return `${Math.floor(ms / unit)}${letter}`;
}

function split(ms: number, unit: number, letter: string, subUnit: number, subLetter: string): string {
  const rest = Math.floor((ms % unit) / subUnit);
  return whole(ms, unit, letter) + (rest === 0 ? '' : `${rest}${subLetter}`);
}
