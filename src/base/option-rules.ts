/** Checks of options at the start of a program: many are written in JavaScript, where no type checker finds a wrong value. */
import { inspect } from 'node:util';

/** What values an option may have. */
export interface OptionRule {
  /** Completes "NAME must be ...". */
  readonly allowed: string;
  /** Also for undefined, which otherwise stands for the default. */
  readonly isRequired?: boolean;
  readonly accepts: (value: unknown) => boolean;
}

/** The longest time of a timer of Node.js, in milliseconds. */
const maxMs = 2_147_483_647;

export const flag: OptionRule = { allowed: 'true or false', accepts: (value) => typeof value === 'boolean' };

export const aFunction: OptionRule = { allowed: 'a function', accepts: (value) => typeof value === 'function' };

export const text: OptionRule = {
  allowed: 'a text that is not empty',
  accepts: (value) => typeof value === 'string' && value !== '',
};

export const texts: OptionRule = {
  allowed: 'an array of texts that are not empty',
  accepts: (value) => Array.isArray(value) && value.every(text.accepts),
};

export function wholeNumber(min: number, meaning = ''): OptionRule {
  return {
    allowed: `a whole number from ${min}${meaning}`,
    accepts: (value) => Number.isSafeInteger(value) && (value as number) >= min,
  };
}

export function milliseconds(min: number, meaning = ''): OptionRule {
  return {
    allowed: `a number of milliseconds from ${min}${meaning} to ${maxMs}`,
    accepts: (value) => typeof value === 'number' && value >= min && value <= maxMs,
  };
}

export function oneOf(...values: readonly unknown[]): OptionRule {
  return { allowed: values.map(shown).join(' or '), accepts: (value) => values.includes(value) };
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

function shown(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value) : inspect(value, { depth: 0, breakLength: Infinity });
}
