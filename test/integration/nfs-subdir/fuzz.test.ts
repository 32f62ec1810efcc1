/**
 * Hostile patterns, names, annotations and pods: nothing outside the export is ever touched, and no volume loses what is in
 * it to another. `FUZZ_RUNS=5000` runs it for longer.
 */
import assert from 'node:assert/strict';
import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { PersistentVolume } from '../../../src/index.ts';
import { SubdirRig } from './rig.ts';

const runs = Number(process.env['FUZZ_RUNS'] ?? 150);
const storagePath = 'nfs.io/storage-path';

/** Everything below a folder, with the times at which it was last touched. */
function snapshot(folder: string): Record<string, string> {
  const found: Record<string, string> = {};
  const visit = (place: string): void => {
    const { mode, ctimeNs, mtimeNs, ino } = lstatSync(place, { bigint: true });
    found[place] = [mode, ctimeNs, mtimeNs, ino].join(' ');
    if (!lstatSync(place).isDirectory()) return;
    for (const name of readdirSync(place)) visit(path.join(place, name));
  };
  visit(folder);
  return found;
}

const piece = fc.constantFrom(
  ...['a', 'b', 'ns', 'c', '.', '..', '/', '//', '', ' ', '~', '\0', '\n', '\u202e', 'ä'.repeat(127), 'x'.repeat(255)],
  ...['%2e%2e', '\\', '..\\', '$&', '$1', '$$', '${.PVC.name}', '${.PVC.namespace}', '${PVC.name}', 'archived-a'],
  ...[
    `\${.PVC.annotations.${storagePath}}`,
    '${.PVC.labels.app}',
    '${.PVC.labels.}',
    '${.PVC.',
    '}',
    'bait',
    'mount',
    '/etc',
  ],
);
const text = fc.array(piece, { maxLength: 6 }).map((pieces) => pieces.join(''));
/** Half of the paths are of few names, so that volumes lie inside each other. */
const annotationText = fc.oneof(text, fc.constantFrom('a', 'a/b', 'a/b/c', 'b', 'b/a', './a/', '/a//b'));
const patternText = fc.oneof(
  text,
  fc.constantFrom(`\${.PVC.annotations.${storagePath}}`, `ns/\${.PVC.annotations.${storagePath}}`),
);
const fate = fc.constantFrom<Record<string, string>>(
  ...[{}, { onDelete: 'delete' }, { onDelete: 'retain' }, { archiveOnDelete: 'false' }, { archiveOnDelete: 'no' }],
);

type Step =
  | { do: 'claim'; pattern: string; annotation: string; label: string; parameters: Record<string, string> }
  | { do: 'delete'; which: number }
  | { do: 'foreign'; path: string }
  | { do: 'plant'; where: number; name: string; target: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('claim' as const),
      pattern: patternText,
      annotation: annotationText,
      label: text,
      parameters: fate,
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('delete' as const), which: fc.nat(20) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('foreign' as const), path: text }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('plant' as const),
      where: fc.nat(20),
      name: fc.constantFrom('a', 'b', 'ns', 'c', 'link'),
      target: fc.nat(3),
    }),
  },
);

/** A cluster's worth of volumes, and pods that mean ill. */
class Scene {
  readonly #rig: SubdirRig;
  /** Live volumes, and their marks: a file that only their own deletion may take. */
  readonly live = new Map<string, PersistentVolume>();
  #serial = 0;
  #marks = 0;

  constructor(rig: SubdirRig) {
    this.#rig = rig;
  }

  async take(given: Step): Promise<void> {
    if (given.do === 'claim') await this.#claim(given);
    else if (given.do === 'delete') await this.#delete(given.which);
    else if (given.do === 'foreign') await this.#foreign(given.path);
    else this.#plant(given);
  }

  async #claim({ pattern, annotation, label, parameters }: Extract<Step, { do: 'claim' }>): Promise<void> {
    const name = `pvc-${++this.#serial}`;
    const storageClass = this.#rig.storageClass({ ...parameters, ...(pattern !== '' && { pathPattern: pattern }) });
    const sketch = { annotations: { [storagePath]: annotation }, labels: { app: label } };
    let volume: PersistentVolume;
    try {
      volume = await this.#rig.provision(storageClass, sketch, name);
    } catch {
      return;
    }
    const nfsPath = volume.spec.nfs?.path ?? '';
    assert.ok(nfsPath.startsWith('/exp/'));
    assert.equal(path.posix.normalize(nfsPath), nfsPath);
    this.live.set(name, volume);
    const place = this.#placeOf(volume);
    if (lstatSync(place).isDirectory()) writeFileSync(path.join(place, `mark-${name}`), String(++this.#marks));
  }

  async #delete(which: number): Promise<void> {
    const volume = [...this.live.values()].at(which % Math.max(1, this.live.size));
    if (volume === undefined) return;
    this.live.delete(volume.metadata.name);
    try {
      await this.#rig.delete(volume);
    } catch {
      this.live.set(volume.metadata.name, volume);
    }
  }

  /** A volume that the original may have made, of any path at all. */
  async #foreign(below: string): Promise<void> {
    const { name } = this.#rig.storageClass({ onDelete: 'delete' }).metadata;
    const volume = this.#rig.volume(`/exp/${below}`, name, `foreign-${++this.#serial}`);
    const others = [...this.live.values()].map((each) => this.#placeOf(each));
    const place = path.posix.normalize(path.join(this.#rig.mount, below));
    if (others.some((other) => place.startsWith(`${other}/`))) this.#rig.volumes.delete(volume.metadata.name);
    else await this.#rig.delete(volume).catch(() => this.#rig.volumes.delete(volume.metadata.name));
  }

  /** A pod swaps an entry of its volume for a link: to the bait, out by a relative path, to the export, or to itself. */
  #plant({ where, name, target }: Extract<Step, { do: 'plant' }>): void {
    const volume = [...this.live.values()].at(where % Math.max(1, this.live.size));
    if (volume === undefined) return;
    const folder = this.#placeOf(volume);
    const link = path.join(folder, name);
    if ([...this.live.values()].some((other) => `${this.#placeOf(other)}/`.startsWith(`${link}/`))) return; // its own alone
    try {
      rmSync(link, { recursive: true, force: true });
      symlinkSync([this.#rig.bait, '../../../../bait', this.#rig.mount, '.'][target] ?? '.', link);
    } catch {
      // the volume was archived or lost its directory to its own pod
    }
  }

  /** Every live volume still has its mark, unless its own pod removed it. */
  check(): void {
    for (const [name, volume] of this.live) {
      const mark = path.join(this.#placeOf(volume), `mark-${name}`);
      assert.doesNotThrow(() => readFileSync(mark), `${name} at ${volume.spec.nfs?.path ?? ''} lost what is in it`);
    }
  }

  #placeOf({ spec }: PersistentVolume): string {
    return path.join(this.#rig.mount, spec.nfs?.path.slice('/exp'.length) ?? '');
  }
}

describe('nfs-subdir among hostile tenants', () => {
  test('touches nothing outside the export, and takes no other volume along', { timeout: 3_600_000 }, async () => {
    await using rig = await SubdirRig.start();
    mkdirSync(path.join(rig.bait, 'a/b'), { recursive: true });
    writeFileSync(path.join(rig.bait, 'a/b/file'), 'bait');
    const before = snapshot(rig.bait);
    const above = lstatSync(rig.folder, { bigint: true }).ctimeNs;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 25 }), async (steps) => {
        const scene = new Scene(rig);
        for (const each of steps) {
          await scene.take(each);
          assert.deepEqual(snapshot(rig.bait), before);
          assert.equal(lstatSync(rig.folder, { bigint: true }).ctimeNs, above, 'nothing was made beside the export');
          scene.check();
        }
        rig.volumes.clear();
        for (const name of readdirSync(rig.mount)) rmSync(rig.path(name), { recursive: true });
      }),
      { numRuns: runs },
    );
    rmSync(path.join(rig.bait, 'a'), { recursive: true });
  });

  test('follows no link that appears while it looks', { timeout: 3_600_000 }, async () => {
    await using rig = await SubdirRig.start();
    const before = snapshot(rig.bait);
    const pathPattern = `\${.PVC.namespace}/\${.PVC.annotations.${storagePath}}`;
    const storageClass = rig.storageClass({ pathPattern, onDelete: 'delete' });
    const archiving = rig.storageClass({ pathPattern });
    const end = new AbortController();
    let swaps = 0;
    // a pod with a volume above swaps the directories below for links to the bait and back
    const pod = (async () => {
      while (!end.signal.aborted) {
        for (const name of ['ns/a', 'ns/a/b']) {
          try {
            renameSync(rig.path(name), rig.path('ns/away'));
            symlinkSync(rig.bait, rig.path(name));
            swaps += 1;
            await new Promise((resolve) => setImmediate(resolve));
            rmSync(rig.path(name), { force: true });
            renameSync(rig.path('ns/away'), rig.path(name));
          } catch {
            rmSync(rig.path('ns/away'), { recursive: true, force: true });
          }
        }
        await new Promise((resolve) => setImmediate(resolve));
      }
    })();
    let made = 0;
    for (let round = 0; round < Math.max(100, runs); round++) {
      const class_ = round % 3 === 0 ? archiving : storageClass;
      try {
        const volume = await rig.provision(class_, { annotations: { [storagePath]: 'a/b/c' } }, `pvc-${round}`);
        made += 1;
        await rig.delete(volume);
      } catch {
        // a link in the way, or the directory gone: both are fine
      }
      rig.volumes.clear();
      assert.deepEqual(snapshot(rig.bait), before);
    }
    end.abort();
    await pod;
    assert.ok(made > 0 && swaps > 10, `${made} made, ${swaps} swaps`);
  });
});
