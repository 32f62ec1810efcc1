import { createHash } from 'node:crypto';
import type { BundledPackage } from '../bundled-packages.ts';
import type { DebianPackage } from './debian-packages.ts';

/** One entry of a bill of materials (CycloneDX 1.6). */
export interface Component {
  readonly type: 'application' | 'library' | 'platform';
  readonly 'bom-ref': string;
  readonly name: string;
  readonly version: string;
  readonly purl: string;
  /** Vulnerabilities of Node.js are published under it. */
  readonly cpe?: string;
  readonly licenses?: readonly { readonly expression: string }[];
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
}

/** What scanners read (CycloneDX 1.6, https://cyclonedx.org/docs/1.6/json/). */
export interface BillOfMaterials {
  readonly bomFormat: 'CycloneDX';
  readonly specVersion: '1.6';
  readonly serialNumber: string;
  readonly version: 1;
  readonly metadata: { readonly timestamp?: string; readonly component: Component };
  readonly components: readonly Component[];
}

export interface BillOptions {
  readonly image: string;
  /** Of the image, such as `v0.1.0`. */
  readonly version: string;
  readonly nodeVersion: string;
  readonly packages: readonly BundledPackage[];
  readonly debian: readonly DebianPackage[];
  /** When it was made, as it says; default: it does not say. */
  readonly timeMs?: number;
}

export function billOfMaterials(options: BillOptions): BillOfMaterials {
  const { image, version, nodeVersion, packages, debian, timeMs } = options;
  const metadata = {
    ...(timeMs !== undefined && { timestamp: new Date(timeMs).toISOString() }),
    component: component('application', { name: image, version, purl: `pkg:oci/${image}@${version}` }),
  };
  const all = [nodeComponent(nodeVersion), ...packages.map(npmComponent), ...debian.map(debianComponent)];
  const components = [...new Map(all.map((each) => [each.purl, each])).values()]; // npm installs a version in many folders
  const bill = { bomFormat: 'CycloneDX', specVersion: '1.6', version: 1, metadata, components } as const;
  return { ...bill, serialNumber: `urn:uuid:${uuidOf(JSON.stringify(bill))}` };
}

function component(
  type: Component['type'],
  { name, version, purl }: { name: string; version: string; purl: string },
): Component {
  return { type, 'bom-ref': purl, name, version, purl };
}

function nodeComponent(version: string): Component {
  const purl = `pkg:generic/node@${version}`;
  return {
    ...component('platform', { name: 'node', version, purl }),
    cpe: `cpe:2.3:a:nodejs:node.js:${version}:*:*:*:*:*:*:*`,
  };
}

function npmComponent({ name, version, license, sha512 }: BundledPackage): Component {
  return {
    ...component('library', { name, version, purl: `pkg:npm/${name.replace('@', '%40')}@${version}` }),
    ...(license !== undefined && { licenses: [{ expression: license }] }),
    ...(sha512 !== undefined && { hashes: [{ alg: 'SHA-512', content: sha512 }] }),
  };
}

function debianComponent({ name, version, architecture }: DebianPackage): Component {
  const purl = `pkg:deb/debian/${name}@${encodeURIComponent(version)}?arch=${architecture}&distro=debian-12`;
  return component('library', { name, version, purl });
}

/** A UUID of version 8 (RFC 9562) from a text: the same text has the same one. */
function uuidOf(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex');
  const variant = '89ab'.charAt(Number.parseInt(hex.charAt(16), 16) % 4);
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    `${variant}${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ].join('-');
}
