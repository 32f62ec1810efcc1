import { StatusError } from './status-error.ts';
import { groupVersion } from './resource-type.ts';
import type { VersionedType } from './resource-type.ts';
import type { Revision } from './revision.ts';
import { columnsOf } from './table-columns.ts';

/** The form in which a client wants objects: as they are, as a table to print, or their metadata alone. */
export type Presentation =
  | { readonly form: 'objects' }
  | { readonly form: 'table'; readonly apiVersion: string; readonly include: 'None' | 'Metadata' | 'Object' }
  | { readonly form: 'metadata'; readonly apiVersion: string };

/** Metadata of a list response. */
export interface ListMeta {
  readonly rv: number;
  readonly continueToken?: string;
  readonly remaining?: number;
}

/** One media range of an `Accept` header. */
interface MediaRange {
  readonly type: string;
  readonly parameters: ReadonlyMap<string, string>;
}

/** The ranges of an `Accept` header in the client's order; parameters may come in any order. */
export function parseAccept(header: string | undefined): MediaRange[] {
  return (header === undefined || header === '' ? '*/*' : header).split(',').map((range) => {
    const [type = '', ...rest] = range.split(';').map((part) => part.trim());
    const pairs = rest.map((part): [string, string] => {
      const [name = '', value = ''] = part.split('=');
      return [name, value];
    });
    return { type: type.toLowerCase(), parameters: new Map(pairs) };
  });
}

/** True for the ranges that JSON satisfies. */
function acceptsJson(type: string): boolean {
  return type === 'application/json' || type === '*/*' || type === 'application/*';
}

/** @throws {StatusError} `NotAcceptable` if the client takes nothing that we make. */
export function choosePresentation(accept: string | undefined, query: URLSearchParams): Presentation {
  for (const { type, parameters } of parseAccept(accept)) {
    if (!acceptsJson(type)) continue;
    const form = parameters.get('as');
    if (form === undefined) return { form: 'objects' };
    const apiVersion = groupVersion(parameters.get('g') ?? 'meta.k8s.io', parameters.get('v') ?? 'v1');
    if (form === 'Table') {
      const include = query.get('includeObject');
      return { form: 'table', apiVersion, include: include === 'Object' || include === 'None' ? include : 'Metadata' };
    }
    if (form === 'PartialObjectMetadata' || form === 'PartialObjectMetadataList')
      return { form: 'metadata', apiVersion };
  }
  throw new StatusError(
    'NotAcceptable',
    'only the following media types are accepted: application/json, application/json;stream=watch',
  );
}

/** JSON texts of objects as a request wants to see them. */
export class Renderer {
  readonly #of: VersionedType;
  readonly #presentation: Presentation;
  readonly #now: () => number;
  readonly #prefix: string;

  constructor(of: VersionedType, presentation: Presentation, now: () => number) {
    this.#of = of;
    this.#presentation = presentation;
    this.#now = now;
    this.#prefix = `{"kind":${JSON.stringify(of.type.kind)},"apiVersion":${JSON.stringify(apiVersionOf(of))},`;
  }

  /** One object, also the `object` of a watch event. */
  object(revision: Revision): string {
    const { form } = this.#presentation;
    if (form === 'table') return this.#table([revision], { rv: revision.rv });
    if (form === 'metadata') return this.#metadataOnly(revision);
    return this.#prefix + this.#body(revision);
  }

  /** A list, in parts to be sent one after the other. */
  list(revisions: readonly Revision[], meta: ListMeta): string[] {
    const { form } = this.#presentation;
    if (form === 'table') return [this.#table(revisions, meta)];
    const { type } = this.#of;
    const [kind, apiVersion] =
      form === 'metadata'
        ? ['PartialObjectMetadataList', this.#presentation.apiVersion]
        : [type.listKind, apiVersionOf(this.#of)];
    const head = JSON.stringify({ kind, apiVersion, metadata: listMetaObject(meta) });
    const parts = [`${head.slice(0, -1)},"items":[`];
    for (let start = 0; start < revisions.length; start += itemsPerPart) {
      const items = revisions.slice(start, start + itemsPerPart).map((revision) => this.#item(revision));
      parts.push((start === 0 ? '' : ',') + items.join(','));
    }
    parts.push(']}');
    return parts;
  }

  /** The `object` of a bookmark. */
  bookmark(rv: number, annotations?: Record<string, string>): string {
    const metadata = {
      resourceVersion: String(rv),
      creationTimestamp: null,
      ...(annotations === undefined ? {} : { annotations }),
    };
    if (this.#presentation.form === 'table') {
      const { apiVersion } = this.#presentation;
      const row = {
        cells: columnsOf(this.#of.type).map(() => ''),
        object: { kind: 'PartialObjectMetadata', apiVersion, metadata },
      };
      return JSON.stringify({ kind: 'Table', apiVersion, metadata: {}, columnDefinitions: [], rows: [row] });
    }
    if (this.#presentation.form === 'metadata') {
      return JSON.stringify({ kind: 'PartialObjectMetadata', apiVersion: this.#presentation.apiVersion, metadata });
    }
    const { kind } = this.#of.type;
    return JSON.stringify({ kind, apiVersion: apiVersionOf(this.#of), metadata });
  }

  /** Items of built-in lists carry neither kind nor version, as those of a real server. */
  #item(revision: Revision): string {
    if (this.#presentation.form === 'metadata') return this.#metadataOnly(revision);
    return (this.#of.type.custom ? this.#prefix : '{') + this.#body(revision);
  }

  #body(revision: Revision): string {
    const { fromStored, group } = this.#of.type;
    return fromStored === undefined ? revision.body : revision.convertedBody(group, fromStored);
  }

  #metadataOnly({ object }: Revision): string {
    const apiVersion = this.#presentation.form === 'objects' ? 'meta.k8s.io/v1' : this.#presentation.apiVersion;
    return JSON.stringify({ kind: 'PartialObjectMetadata', apiVersion, metadata: object.metadata });
  }

  #table(revisions: readonly Revision[], meta: ListMeta): string {
    const presentation = this.#presentation;
    if (presentation.form !== 'table') throw new Error('not a table');
    const columns = columnsOf(this.#of.type);
    const nowMs = this.#now();
    const head = JSON.stringify({
      kind: 'Table',
      apiVersion: presentation.apiVersion,
      metadata: listMetaObject(meta),
      columnDefinitions: columns.map(({ name, type, format, priority }) => ({
        name,
        type,
        format,
        description: '',
        priority,
      })),
    });
    const rows = revisions.map((revision) => {
      const cells = JSON.stringify(columns.map(({ cell }) => cell(revision.object, nowMs)));
      if (presentation.include === 'None') return `{"cells":${cells}}`;
      const shown =
        presentation.include === 'Object' ? this.#prefix + this.#body(revision) : this.#metadataOnly(revision);
      return `{"cells":${cells},"object":${shown}}`;
    });
    return `${head.slice(0, -1)},"rows":[${rows.join(',')}]}`;
  }
}

const itemsPerPart = 500;

function apiVersionOf({ type, version }: VersionedType): string {
  return groupVersion(type.group, version);
}

function listMetaObject({ rv, continueToken, remaining }: ListMeta): object {
  return {
    resourceVersion: String(rv),
    ...(continueToken === undefined ? {} : { continue: continueToken }),
    ...(remaining === undefined ? {} : { remainingItemCount: remaining }),
  };
}
