const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/**
 * Text for HTML, in an element or a quoted attribute. Control characters, such as those that turn the direction of writing,
 * are replaced: what a driver writes must not look like something else.
 */
export function escapeHtml(text: string): string {
  return text
    .replace(/[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, (character) => (/\s/.test(character) ? ' ' : '�'))
    .replace(/[&<>"']/g, (character) => entities[character] ?? '');
}

/** Shortened for a table. */
export function shortened(text: string, maxLength: number): string {
  return text.length <= maxLength ? text : `${text.slice(0, maxLength - 1).trimEnd()}…`;
}

/** An error without what all of them begin with: the name of the class, and how gRPC words a status. */
export function errorText(message: string): string {
  return message
    .replace(/^failed to provision volume with StorageClass "[^"]*": /, '')
    .replace(/^rpc error: code = (\w+) desc = /, '$1: ');
}

/** A duration in its two largest units, such as `3 h 5 min`. */
export function durationText(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 120) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 120) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return withRest(hours, 'h', minutes % 60, 'min');
  return withRest(Math.floor(hours / 24), 'd', hours % 24, 'h');
}

function withRest(count: number, unit: string, rest: number, restUnit: string): string {
  return rest === 0 ? `${count} ${unit}` : `${count} ${unit} ${rest} ${restUnit}`;
}

/** A latency with a sensible number of digits. */
export function latencyText(seconds: number): string {
  if (seconds < 0.01) return `${(seconds * 1000).toFixed(1)} ms`;
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  return seconds < 60 ? `${seconds.toFixed(1)} s` : durationText(seconds);
}

/** With thin separators, as in `10,000`. */
export function countText(count: number): string {
  return count.toLocaleString('en-US');
}

/** `1 claim waits`, `2 claims wait`. */
export function plural(count: number, one: string, many: string): string {
  return `${countText(count)} ${count === 1 ? one : many}`;
}
