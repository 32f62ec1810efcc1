/** Paths that come from users and must stay below a directory. */
import path from 'node:path';

/** Max length of one component, in bytes (Linux, `NAME_MAX`). */
const maxComponentBytes = 255;
/** Max length of a path, in bytes (Linux, `PATH_MAX`, without the byte that ends it). */
const maxPathBytes = 4095;

/** A path that would leave its folder, or that no file system takes. The message names the offending part. */
export class PathError extends Error {
  override readonly name = 'PathError';
}

/**
 * The components of a relative path. Empty ones and `.` are dropped, so a leading slash means nothing.
 *
 * @throws {PathError} for `..` (even if it stayed inside), control characters, a component of more than 255 bytes, a
 * path of more than 4,095 bytes, and a path without components, which is the folder itself.
 */
export function pathComponents(text: string): string[] {
  if (/\p{Cc}/u.test(text)) throw new PathError(`${shown(text)} has a control character`);
  const components = text.split('/').filter((component) => component !== '' && component !== '.');
  if (components.includes('..')) throw new PathError(`${shown(text)} has the component ".."`);
  if (components.length === 0) throw new PathError(`${shown(text)} is the folder itself, not a path below it`);
  for (const component of components) {
    const bytes = Buffer.byteLength(component);
    if (bytes > maxComponentBytes) {
      throw new PathError(
        `the component ${shown(component)} has ${bytes} bytes, at most ${maxComponentBytes} are possible`,
      );
    }
  }
  const bytes = Buffer.byteLength(components.join('/'));
  if (bytes > maxPathBytes)
    throw new PathError(`a path of ${bytes} bytes is too long, at most ${maxPathBytes} are possible`);
  return components;
}

/**
 * Joins a folder and a path below it. A text check alone: where others can write into the folder, a component may be a
 * symbolic link; `OpenedDirectory` follows none.
 *
 * @throws {PathError} as `pathComponents`, and where the result is too long.
 */
export function containedPath(folder: string, text: string): string {
  const joined = path.posix.join(folder, ...pathComponents(text));
  if (Buffer.byteLength(joined) > maxPathBytes) throw new PathError(`${shown(joined)} is too long for a path`);
  return joined;
}

/** Quoted, without control characters, and not so long that it fills an event. */
function shown(text: string): string {
  return JSON.stringify(text.length > 120 ? `${text.slice(0, 120)}…` : text);
}
