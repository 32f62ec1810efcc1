/** How a value looks when other programs quote it. */
import { goQuote } from './go-quote.ts';

/**
 * Every form in which a value is usually quoted: verbatim, with and without the white space around it, escaped as JSON and Go do
 * (also twice, as in a quoted JSON text, and in ASCII alone), URL-encoded, base64 (standard and URL, padded or not, also inside a
 * longer text such as `user:password`) and hexadecimal.
 *
 * @param bytes - the value; not necessarily text.
 */
export function quotedForms(bytes: Uint8Array): Set<string> {
  const whole = Buffer.from(bytes);
  const text = whole.toString('utf8');
  const values = new Set([whole, Buffer.from(text.trim())]);
  const forms = new Set<string>();
  for (const value of values) {
    for (const form of [...textForms(value.toString('utf8')), ...base64Forms(value), ...hexForms(value)])
      forms.add(form);
  }
  return forms;
}

function textForms(text: string): string[] {
  const once = escapes.map((escape) => escape(text));
  const twice = once.flatMap((escaped) => escapes.map((escape) => escape(escaped)));
  return [text, ...once, ...twice, ...urlForms(text)];
}

/** Without the quotation marks. */
const escapes: readonly ((text: string) => string)[] = [
  (text) => JSON.stringify(text).slice(1, -1),
  (text) => htmlSafe(JSON.stringify(text).slice(1, -1)),
  (text) => inAscii(JSON.stringify(text).slice(1, -1)),
  (text) => inAscii(htmlSafe(JSON.stringify(text).slice(1, -1))),
  (text) => goQuote(text).slice(1, -1),
  (text) => inAscii(goQuote(text).slice(1, -1), goEscape),
];

/** As Go's encoding/json writes by default. */
function htmlSafe(json: string): string {
  return json.replaceAll(/[<>&\u2028\u2029]/g, (character) => jsonEscape(character));
}

function inAscii(text: string, escape = jsonEscape): string {
  return text.replaceAll(/[\u0080-\u{10ffff}]/gu, escape);
}

function jsonEscape(character: string): string {
  const units = Array.from({ length: character.length }, (_, index) => character.charCodeAt(index));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('');
}

/** As Go's `%+q` writes. */
function goEscape(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return code > 0xffff ? `\\U${code.toString(16).padStart(8, '0')}` : jsonEscape(character);
}

/** Of a component, a form and a path, as several languages encode them; with digits in upper and lower case. */
function urlForms(text: string): string[] {
  const component = encodeURIComponent(text.toWellFormed());
  const strict = component.replaceAll(/[!'()*]/g, percent);
  const form = component.replaceAll(/[!'()~]/g, percent).replaceAll('%20', '+');
  const path = strict.replaceAll(/%(24|26|2B|3A|3D|40)/g, decodeURIComponent);
  const forms = [component, strict, strict.replaceAll('%20', '+'), strict.replaceAll('%2F', '/'), form, path];
  return forms.flatMap((each) => [each, each.replaceAll(/%[0-9A-F]{2}/g, (code) => code.toLowerCase())]);
}

function percent(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
}

function base64Forms(value: Buffer): string[] {
  const padded = value.toString('base64');
  const standard = [padded, padded.replace(/=+$/, ''), ...[0, 1, 2].map((offset) => base64Inside(value, offset))];
  return standard.flatMap((form) => [form, urlAlphabet(form), ...urlForms(form), ...urlForms(urlAlphabet(form))]);
}

/** The part of a value's base64 that is the same within a longer text that begins `offset` bytes before the value. */
function base64Inside(value: Buffer, offset: number): string {
  const bits = (offset + value.length) * 8;
  const encoded = Buffer.concat([Buffer.alloc(offset), value]).toString('base64');
  return encoded.slice(Math.ceil((offset * 8) / 6), Math.floor(bits / 6));
}

function urlAlphabet(base64: string): string {
  return base64.replaceAll('+', '-').replaceAll('/', '_');
}

function hexForms(value: Buffer): string[] {
  const hex = value.toString('hex');
  return [hex, hex.toUpperCase()];
}
