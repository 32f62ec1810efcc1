/** Whether a claim may use a data source of another namespace. */
import { shellWord } from '../../base/shell-word.ts';
import { shortValue } from '../../base/short-value.ts';
import { allowsSource, type ReferenceGrant, referenceGrants } from '../../provision/objects.ts';
import { attempts, type FailedAttempt } from '../attempts.ts';
import type { ClaimFacts } from '../claim-facts-reader.ts';
import { found } from '../cluster-reader.ts';
import type { Finding } from '../explanation.ts';
import type { SourceReference } from '../source-facts-reader.ts';
import { defineCause } from './cause.ts';

/** No ReferenceGrant allows the data source, which is in another namespace (Gateway API, "ReferenceGrant"). */
export const grantMissing = defineCause({
  name: 'grant-missing',
  failures: [
    {
      pattern: /^accessing .* isn't allowed$/,
      cure: 'Create a ReferenceGrant in the namespace of the source',
    },
  ],
});

export function checkGrant({ claim, source, grants, ownGrants }: ClaimFacts): Finding | undefined {
  if (source === undefined || grants === undefined) return undefined;
  if (grants.kind === 'unreadable') return { state: 'unknown', detail: grants.why };
  const { namespace = '' } = claim.metadata;
  const existing = found(grants) ?? [];
  if (existing.some((grant) => allowsSource(grant, namespace, source))) {
    return { state: 'ok', detail: `a ReferenceGrant in ${source.namespace} allows it` };
  }
  const held = { state: 'stuck', cause: 'grant-missing' } as const;
  const base = `No ReferenceGrant in namespace ${source.namespace} allows claims of ${namespace} to use ${shortValue(source.kind)} ${shortValue(source.name)} as their data source`;
  if (grants.kind === 'missing') {
    return {
      ...held,
      message: `${base}: the cluster does not have this kind.`,
      cure: 'Install the CRD ReferenceGrant of the Gateway API, and create one',
    };
  }
  const near = existing.flatMap((grant) => misfit(grant, namespace, source) ?? []);
  const misplaced = (found(ownGrants) ?? []).find((grant) => allowsSource(grant, namespace, source));
  const hint =
    near[0] ??
    (misplaced === undefined
      ? undefined
      : `ReferenceGrant ${misplaced.metadata.name} would, but is in namespace ${namespace}`);
  return { ...held, message: `${base}${hint === undefined ? '' : `. ${hint}`}.`, cure: grantCure(namespace, source) };
}

/** The only field in which a grant does not fit; undefined where there are more. */
function misfit({ metadata, spec }: ReferenceGrant, namespace: string, source: SourceReference): string | undefined {
  const differences: string[][] = [];
  for (const [i, from] of (spec?.from ?? []).entries()) {
    for (const [j, to] of (spec?.to ?? []).entries()) {
      const isAny = (to.name ?? '') === '';
      const fields: [path: string, is: string, wanted: string][] = [
        [`from[${i}].group`, from.group ?? '', ''],
        [`from[${i}].kind`, from.kind ?? '', 'PersistentVolumeClaim'],
        [`from[${i}].namespace`, from.namespace ?? '', namespace],
        [`to[${j}].group`, to.group ?? '', source.apiGroup],
        [`to[${j}].kind`, to.kind ?? '', source.kind],
        [`to[${j}].name`, isAny ? source.name : (to.name ?? ''), source.name],
      ];
      differences.push(
        fields.flatMap(([path, is, wanted]) =>
          is === wanted ? [] : [`spec.${path} is "${shortValue(is)}" and has to be "${shortValue(wanted)}"`],
        ),
      );
    }
  }
  const only = differences.find(({ length }) => length === 1);
  return only === undefined ? undefined : `Of ReferenceGrant ${metadata.name} ${only[0] ?? ''}`;
}

function grantCure(namespace: string, { apiGroup, kind, name, namespace: foreign }: SourceReference): string {
  const { group, version } = referenceGrants;
  const manifest = JSON.stringify({
    apiVersion: `${group}/${version}`,
    kind: 'ReferenceGrant',
    metadata: { name: `claims-of-${namespace}`, namespace: foreign },
    spec: { from: [{ group: '', kind: 'PersistentVolumeClaim', namespace }], to: [{ group: apiGroup, kind, name }] },
  });
  const text = `Who owns namespace ${foreign} creates a ReferenceGrant there, such as`;
  const word = shellWord(manifest);
  return word === undefined ? text.replace(', such as', '') : `${text}: kubectl apply -f - <<< ${word}`;
}

const disabledText = 'CrossNamespaceVolumeDataSource feature is disabled';

/** What the claim needs is off in the provisioner. */
export const featureDisabled = defineCause({
  name: 'feature-disabled',
  failures: [
    {
      pattern: new RegExp(disabledText),
      cure: 'Start the provisioner with --feature-gates=CrossNamespaceVolumeDataSource=true; a ReferenceGrant alone changes nothing. Or recreate the claim with a source of its own namespace',
    },
  ],
});

/** Comes before the grant that would be missing as well. */
export function checkFeatureEnabled(facts: ClaimFacts): FailedAttempt | undefined {
  const { failed } = attempts(facts);
  return failed?.text.includes(disabledText) === true ? { failed } : undefined;
}
