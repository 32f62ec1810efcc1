import type { KubernetesObject, V1Container, V1PodSpec } from '@kubernetes/client-node';

/** What a chart has rendered. */
export class ChartObjects {
  readonly all: readonly KubernetesObject[];

  constructor(all: readonly KubernetesObject[]) {
    this.all = all;
  }

  /** `Kind name` of each, sorted. */
  get names(): string[] {
    return this.all.map(({ kind, metadata }) => `${kind ?? ''} ${metadata?.name ?? ''}`).sort();
  }

  /** The only object of a kind. @throws where there is none, or several. */
  one<T extends KubernetesObject = KubernetesObject>(kind: string): T {
    const found = this.all.filter((object) => object.kind === kind);
    if (found.length !== 1) throw new Error(`${found.length} objects of kind ${kind}, not one`);
    return found[0] as T;
  }

  has(kind: string): boolean {
    return this.all.some((object) => object.kind === kind);
  }

  /** The Pod of the Deployment or StatefulSet. */
  get pod(): V1PodSpec {
    const { spec } = this.one<Workload>(this.has('Deployment') ? 'Deployment' : 'StatefulSet');
    return spec.template.spec;
  }

  get container(): V1Container {
    const [container, ...more] = this.pod.containers;
    if (container === undefined || more.length > 0) throw new Error('not one container');
    return container;
  }
}

interface Workload extends KubernetesObject {
  spec: { template: { spec: V1PodSpec } };
}
