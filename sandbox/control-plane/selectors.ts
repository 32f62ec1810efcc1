import type { LabelSelector, Node, NodeSelector, NodeSelectorTerm, SelectorRequirement } from './objects.ts';

/** Whether labels match the selector; an empty one matches everything (Kubernetes, "Labels and Selectors"). */
export function matchesLabelSelector(selector: LabelSelector, labels: Record<string, string> = {}): boolean {
  for (const [key, value] of Object.entries(selector.matchLabels ?? {})) {
    if (labels[key] !== value) return false;
  }
  return (selector.matchExpressions ?? []).every((requirement) => holds(requirement, labels[requirement.key]));
}

/** Whether one term of the node selector matches the node; a selector without terms matches nothing. */
export function matchesNodeSelector(selector: NodeSelector, node: Node): boolean {
  return (selector.nodeSelectorTerms ?? []).some((term) => matchesTerm(term, node));
}

function matchesTerm({ matchExpressions = [], matchFields = [] }: NodeSelectorTerm, node: Node): boolean {
  if (matchExpressions.length === 0 && matchFields.length === 0) return false;
  const { labels = {}, name } = node.metadata;
  return (
    matchExpressions.every((requirement) => holds(requirement, labels[requirement.key])) &&
    matchFields.every((requirement) => requirement.key === 'metadata.name' && holds(requirement, name))
  );
}

function holds({ operator, values = [] }: SelectorRequirement, value: string | undefined): boolean {
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    case 'Gt':
      return value !== undefined && Number(value) > Number(values[0]);
    case 'Lt':
      return value !== undefined && Number(value) < Number(values[0]);
    default:
      return false;
  }
}
