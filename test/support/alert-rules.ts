/** The alerts of deploy/components/monitoring. */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { loadYaml } from '@kubernetes/client-node';

export interface AlertRule {
  alert: string;
  expr: string;
  labels: { severity: string };
  annotations: { summary: string; description: string; runbook_url: string };
}

export interface RuleGroup {
  name: string;
  rules: AlertRule[];
}

const file = path.join(import.meta.dirname, '../../deploy/components/monitoring/prometheus-rule.yaml');

/** What the PrometheusRule holds: a file of Prometheus itself has the same `groups`. */
export async function ruleGroups(): Promise<RuleGroup[]> {
  return loadYaml<{ spec: { groups: RuleGroup[] } }>(await readFile(file, 'utf8')).spec.groups;
}

export async function alertRules(): Promise<AlertRule[]> {
  return (await ruleGroups()).flatMap(({ rules }) => rules);
}
