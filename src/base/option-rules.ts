/** Checks options at the start: a program in JavaScript has no type checker. */
import { inspect } from 'node:util';

/** What values an option may have. */
export interface OptionRule {
  /** Completes "NAME must be ...". */
  readonly allowed: string;
  /** Also for undefined, which otherwise stands for the default. */
  readonly isRequired?: boolean;
  readonly accepts: (value: unknown) => boolean;
}

/** The longest delay of a Node.js timer, in milliseconds; a longer one fires after 1 ms. */
const maxMs = 2_147_483_647;

export const flag: OptionRule = { allowed: 'true or false', accepts: (value) => typeof value === 'boolean' };

export const aFunction: OptionRule = { allowed: 'a function', accepts: (value) => typeof value === 'function' };

export const text: OptionRule = {
  allowed: 'a non-empty string',
  accepts: (value) => typeof value === 'string' && value !== '',
};

export const texts: OptionRule = {
  allowed: 'an array of non-empty strings',
  accepts: (value) => Array.isArray(value) && value.every(text.accepts),
};

export function wholeNumber(min: number, meaning = ''): OptionRule {
  return {
    allowed: `an integer of at least ${min}${meaning}`,
    accepts: (value) => Number.isSafeInteger(value) && (value as number) >= min,
  };
}

export function milliseconds(min: number, meaning = ''): OptionRule {
  return {
    allowed: `between ${min} and ${maxMs} milliseconds${meaning}`,
    accepts: (value) => typeof value === 'number' && value >= min && value <= maxMs,
  };
}

export function oneOf(...values: readonly unknown[]): OptionRule {
  const words = values.map(shown);
  const allowed = `${words.slice(0, -1).join(', ')} or ${words.at(-1) ?? ''}`;
  return { allowed, accepts: (value) => values.includes(value) };
}

export function required(rule: OptionRule): OptionRule {
  return { ...rule, isRequired: true };
}

/** An object with these methods. */
export function having(...methods: readonly string[]): OptionRule {
  const some = methods.length === 1 ? `a method ${methods[0]}` : `methods ${methods.join(', ')}`;
  return {
    allowed: methods.length === 0 ? 'an object' : `an object with ${some}`,
    accepts: (value) =>
      typeof value === 'object' &&
      value !== null &&
      methods.every((name) => typeof (value as Record<string, unknown>)[name] === 'function'),
  };
}

/**
 * @param prefix - of the names in errors, such as `save.`.
 * @throws {TypeError} for the first value that its rule does not accept, with the option, what it must be, and the value.
 */
export function checkOptions<T extends object>(
  options: T,
  rules: { readonly [Name in keyof T]?: OptionRule | undefined },
  prefix = '',
): void {
  for (const [name, rule] of Object.entries<OptionRule | undefined>(rules)) {
    const value: unknown = (options as Record<string, unknown>)[name];
    if (rule === undefined || (value === undefined && rule.isRequired !== true) || rule.accepts(value)) continue;
    throw new TypeError(`${prefix}${name} must be ${rule.allowed}, got ${shown(value)}`);
  }
}

/** Of an object only what it is: its fields may be long, or secret. */
function shown(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value);
  return inspect(value, { depth: -1 });
}
