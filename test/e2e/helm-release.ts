/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
/** A release of Helm on the cluster, and what an upgrade has changed of its objects. */
import assert from 'node:assert/strict';
import type { KubernetesObject } from '@kubernetes/client-node';
import { loadAll } from 'js-yaml';
import type { Admin } from '../support/admin.ts';
import type { Helm, Values } from '../support/helm/helm.ts';
import { plainJson } from './plain-json.ts';

/** An object as the API server has it. */
export interface LiveObject extends KubernetesObject {
  metadata: { name: string; uid: string; resourceVersion: string; labels?: Record<string, string> };
}

/** Objects of a release by `Kind name`. */
export type LiveObjects = ReadonlyMap<string, LiveObject>;

export interface HelmReleaseOptions {
  helm: Helm;
  admin: Admin;
  name: string;
  namespace: string;
}

export class HelmRelease {
  readonly name: string;
  readonly namespace: string;
  readonly #helm: Helm;
  readonly #admin: Admin;

  constructor({ helm, admin, name, namespace }: HelmReleaseOptions) {
    this.#helm = helm;
    this.#admin = admin;
    this.name = name;
    this.namespace = namespace;
  }

  /** The same release by another Helm. */
  with(helm: Helm): HelmRelease {
    return new HelmRelease({ helm, admin: this.#admin, name: this.name, namespace: this.namespace });
  }

  /** @returns the notes. @throws {HelmError} */
  async install(chart: string, values: Values): Promise<string> {
    return await this.#run(['install', this.name, chart], values);
  }

  /** @param values - absent: none is given. @returns the notes. @throws {HelmError} */
  async upgrade(chart: string, values?: Values, flags: readonly string[] = []): Promise<string> {
    return await this.#run(['upgrade', this.name, chart, ...flags], values);
  }

  async rollback(revision: number): Promise<void> {
    await this.#run(['rollback', this.name, String(revision)]);
  }

  async uninstall(): Promise<void> {
    await this.#run(['uninstall', this.name, '--ignore-not-found']);
  }

  /** How the last revision was applied: `csa` (client-side apply) or `ssa` (server-side apply). Only Helm 4 reports it. */
  async applyMethod(): Promise<string | undefined> {
    const text = await this.#run(['get', 'metadata', this.name, '--output', 'json']);
    return (JSON.parse(text) as { applyMethod?: string }).applyMethod;
  }

  /** What the API server has of the objects of the release. */
  async objects(): Promise<LiveObjects> {
    const text = await this.#run(['get', 'manifest', this.name]);
    const found = new Map<string, LiveObject>();
    for (const each of loadAll(text) as KubernetesObject[]) {
      const { apiVersion = '', kind = '', metadata: { name = '', namespace = this.namespace } = {} } = each;
      const live = await this.#admin.objects.read({ apiVersion, kind, metadata: { name, namespace } });
      found.set(`${kind} ${name}`, plainJson(live) as unknown as LiveObject);
    }
    return found;
  }

  /** The only object of a kind. */
  async one<T extends KubernetesObject>(kind: string): Promise<T> {
    const [found, ...more] = [...(await this.objects()).values()].filter((object) => object.kind === kind);
    assert.ok(found !== undefined && more.length === 0, `one ${kind}`);
    return found as KubernetesObject as T;
  }

  async #run(args: readonly string[], values?: Values): Promise<string> {
    return await this.#helm.run([...args, '--namespace', this.namespace], values);
  }
}

/** Kinds of objects, sorted, one for each that is there before or after, and is not the same. */
export interface Changes {
  changed: string[];
  added: string[];
  /** Deleted, or deleted and created again. */
  lost: string[];
}

/** Compares by meaning: what the API server counts and the label `chart` do not matter. */
export function changesBetween(before: LiveObjects, after: LiveObjects): Changes {
  const kinds = (names: Iterable<string>): string[] => [...names].map((name) => name.split(' ')[0] ?? '').sort();
  const stays = (name: string): boolean => before.get(name)?.metadata.uid === after.get(name)?.metadata.uid;
  const both = [...before.keys()].filter(stays);
  return {
    changed: kinds(both.filter((name) => meaningOf(before.get(name)) !== meaningOf(after.get(name)))),
    added: kinds([...after.keys()].filter((name) => !before.has(name))),
    lost: kinds([...before.keys()].filter((name) => !stays(name))),
  };
}

function meaningOf(object: LiveObject | undefined): string {
  const counted = new Set(['resourceVersion', 'generation', 'managedFields', 'status', 'chart']);
  return JSON.stringify(object, (key, value: unknown) =>
    counted.has(key) || key === 'deployment.kubernetes.io/revision' ? undefined : value,
  );
}
