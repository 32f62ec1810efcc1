/** The documents of a text in YAML or JSON, as kubectl reads them. */
import { boolYaml11Tag, CORE_SCHEMA, loadAll, mergeTag, YAMLException } from 'js-yaml';
import { ManifestError } from './manifest.ts';

/** YAML 1.2 with what the YAML of Kubernetes has besides: merged maps, and yes and no. */
const schema = CORE_SCHEMA.withTags(mergeTag, boolYaml11Tag);

/** A template that happens to be YAML. */
const ofChart = /\{\{-?[^}]*\.(?:Values|Release)\b/;
const template = /\{\{[^}]*\}\}/;

/**
 * The documents, null for an empty one.
 *
 * @param file - its name, for errors.
 * @throws {ManifestError} which never shows the text itself: it may hold a secret.
 */
export function parseDocuments(text: string, file: string): unknown[] {
  if (ofChart.test(text)) throw templateError(file);
  const json = text.trimStart().startsWith('{') ? parsedJson(text) : undefined;
  if (json !== undefined) return [json];
  try {
    return loadTolerantly(text);
  } catch (error) {
    throw unreadable(text, file, error);
  }
}

/** Max number of lines that are indented further. */
const maxMended = 200;

/**
 * YAML wants the lines of a map or list in brackets further to the right than what they belong to; kubectl does not, and drivers
 * have published such lines.
 */
function loadTolerantly(text: string): unknown[] {
  const lines = text.split('\n');
  let first: unknown;
  for (let mended = 0; ; mended += 1) {
    try {
      return loadAll(lines.join('\n'), { schema });
    } catch (error) {
      first ??= error;
      const line = shallowLine(error);
      if (line === undefined || lines[line] === undefined || mended === maxMended) throw first;
      lines[line] = `${' '.repeat(80)}${lines[line]}`;
    }
  }
}

function shallowLine(error: unknown): number | undefined {
  const isShallow = error instanceof YAMLException && error.reason === 'deficient indentation';
  return isShallow ? error.mark?.line : undefined;
}

/** JSON may be indented with tabs, and hold characters that YAML forbids. */
function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function unreadable(text: string, file: string, error: unknown): ManifestError {
  if (template.test(text)) return templateError(file);
  if (!(error instanceof YAMLException)) {
    const why = error instanceof RangeError ? 'it is nested too deeply' : 'its structure cannot be followed';
    return new ManifestError(`${file}: it cannot be read as YAML: ${why}. Correct the file`);
  }
  const line = error.mark?.line;
  const place = line === undefined ? '' : `, line ${line + 1}, document ${documentAt(text, line)}`;
  const cure = 'Correct the file; kubectl apply --dry-run=client -f FILE reads it, too';
  return new ManifestError(`${file}${place}: it is neither YAML nor JSON: ${reasonOf(error)}. ${cure}`);
}

/** What the parser says, without words of the text: one could be a secret. The error has the whole text, so it is no cause of ours. */
function reasonOf({ reason }: YAMLException): string {
  return reason.replaceAll(/"[^"]*"|'[^']*'|<[^>]*>/g, '…');
}

function templateError(file: string): ManifestError {
  return new ManifestError(
    `${file}: it is a template of a Helm chart, not a manifest. Render the chart: helm template NAME CHART | csi-provisioner preflight -`,
  );
}

/** Number of the document that a line is in, from 1. */
function documentAt(text: string, line: number): number {
  const before = text.split('\n').slice(0, line + 1);
  const starts = before.flatMap((each, index) => (/^---(\s|$)/.test(each) ? [index] : []));
  const [first] = starts;
  const isExplicit = first !== undefined && before.slice(0, first).every((each) => /^\s*(#|$)/.test(each));
  return Math.max(1, starts.length + (isExplicit ? 0 : 1));
}
