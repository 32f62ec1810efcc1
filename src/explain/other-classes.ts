/** What a claim without a class, or with one that does not exist, could have instead. */
import { nameList } from '../base/name-list.ts';
import { shellCommand } from '../base/shell-word.ts';
import { className } from '../provision/claim-fields.ts';
import {
  betaStorageClassKey,
  type PersistentVolumeClaim,
  type StorageClass,
  storageClasses,
} from '../provision/objects.ts';
import { claimOfSet, type SetClaim, statefulSets, type Workload } from './claim-owners.ts';
import { type ClusterReader, found, type Reading } from './cluster-reader.ts';
import { withCommand } from './texts.ts';

export interface OtherClasses {
  classes: Reading<StorageClass[]>;
  /** StatefulSets of the namespace, for a claim whose name may be one of theirs. */
  sets?: Reading<Workload[]> | undefined;
}

export const defaultClassKey = 'storageclass.kubernetes.io/is-default-class';
const olderDefaultClassKey = 'storageclass.beta.kubernetes.io/is-default-class';
const maxNamed = 15;

/** Two requests at most. */
export async function readOtherClasses(claim: PersistentVolumeClaim, reader: ClusterReader): Promise<OtherClasses> {
  const { namespace = '', name } = claim.metadata;
  const [classes, sets] = await Promise.all([
    reader.list<StorageClass>(storageClasses),
    /-\d+$/.test(name) ? reader.list<Workload>(statefulSets, { namespace }) : undefined,
  ]);
  return { classes, sets };
}

/** The one that claims without a class get: the newest of several (Kubernetes page "Storage Classes", "Default StorageClass"). */
export function defaultClass(classes: readonly StorageClass[]): StorageClass | undefined {
  const createdMs = ({ metadata }: StorageClass): number => Date.parse(metadata.creationTimestamp ?? '') || 0;
  const marked = classes.filter(({ metadata: { annotations = {} } }) =>
    [defaultClassKey, olderDefaultClassKey].some((key) => annotations[key] === 'true'),
  );
  return marked.toSorted((a, b) => createdMs(b) - createdMs(a) || (a.metadata.name < b.metadata.name ? -1 : 1))[0];
}

/** What was meant to make a class the default one and does not, such as `the annotation KEY: "True"`. */
export function nearlyDefault({ metadata: { annotations = {}, labels = {} } }: StorageClass): string | undefined {
  const marks = [
    ...Object.entries(annotations).map(([key, value]) => ({ place: 'annotation', key, value })),
    ...Object.entries(labels).map(([key, value]) => ({ place: 'label', key, value })),
  ];
  const near = marks.find(({ key, value }) => /default-?class$/i.test(key) && /^\W*(true|yes|on|1)\W*$/i.test(value));
  return near && `the ${near.place} ${near.key}: ${JSON.stringify(near.value)}`;
}

/** Such as `The cluster has the classes a, b (default)`. */
export function classesText(classes: readonly StorageClass[]): string {
  if (classes.length === 0) return 'The cluster has no StorageClass';
  const usual = defaultClass(classes)?.metadata.name;
  const names = classes.map(({ metadata: { name } }) => (name === usual ? `${name} (default)` : name));
  return `The cluster has ${classes.length === 1 ? 'the class' : 'the classes'} ${nameList(names, maxNamed)}`;
}

/** The command that recreates a claim with another class; the class of a claim cannot be changed. */
export function recreationCommand(claim: PersistentVolumeClaim, storageClassName: string): string | undefined {
  const isOlder = claim.metadata.annotations?.[betaStorageClassKey] !== undefined;
  return recreation(claim, {
    ...(isOlder && { metadata: { annotations: { [betaStorageClassKey]: null } } }),
    spec: { storageClassName },
  });
}

/** The command that recreates a claim with other fields. @param patch - a JSON merge patch. */
export function recreation({ metadata }: PersistentVolumeClaim, patch: object): string | undefined {
  const { namespace = '', name } = metadata;
  const words = ['kubectl', 'patch', 'pvc', name, '-n', namespace, '--dry-run=client', '--type=merge'];
  const command = shellCommand([...words, '-p', JSON.stringify(patch), '-o', 'yaml']);
  return command && `${command} | kubectl replace --force -f -`;
}

/** The StatefulSet that creates the claim, and its template. */
export function makerOf(
  claim: PersistentVolumeClaim,
  sets: Reading<Workload[]> | undefined,
): { set: Workload; made: SetClaim; storageClassName: string | undefined } | undefined {
  for (const set of found(sets) ?? []) {
    const made = claimOfSet(set, claim.metadata.name);
    if (made === undefined) continue;
    const template = set.spec?.volumeClaimTemplates?.find(({ metadata }) => metadata.name === made.template);
    return { set, made, storageClassName: template?.spec?.storageClassName };
  }
  return undefined;
}

/** How a claim gets another class. @param meant - the class that it should have, where that is known. */
export function otherClassCure(
  claim: PersistentVolumeClaim,
  { sets }: Pick<OtherClasses, 'sets'>,
  meant: string | undefined,
): string | undefined {
  const maker = makerOf(claim, sets);
  const { namespace = '', name } = claim.metadata;
  if (maker === undefined) {
    const command = meant === undefined ? undefined : recreationCommand(claim, meant);
    return command && `recreate the claim with class ${meant ?? ''}: ${command}`;
  }
  const { set, made, storageClassName } = maker;
  const setName = set.metadata.name;
  if (storageClassName !== undefined && storageClassName !== className(claim)) {
    return withCommand(
      `delete the claim and its Pod: StatefulSet ${setName} creates both again, and its template now has the class ${storageClassName}`,
      ['kubectl', 'delete', `pvc/${name}`, `pod/${made.pod}`, '-n', namespace, '--ignore-not-found', '--wait=false'],
    );
  }
  return withCommand(
    `correct storageClassName in the volumeClaimTemplates of StatefulSet ${setName}${meant === undefined ? '' : `, such as to ${meant}`}. They cannot be changed: delete it without its Pods, create it again, and delete this claim and its Pod`,
    ['kubectl', 'delete', `statefulset/${setName}`, '-n', namespace, '--cascade=orphan'],
  );
}
