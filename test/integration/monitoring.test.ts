/** deploy/components/monitoring against what the running program exports. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { before, describe, test } from 'node:test';
import { liveMetrics, type LiveMetrics } from './live-metrics.ts';
import { familiesOf } from './metrics-page.ts';
import { alertRules } from '../support/alert-rules.ts';
import { anchorsOf } from '../support/markdown-anchors.ts';
import { groupingLabels, selectorsOf } from '../support/promql.ts';

const root = path.join(import.meta.dirname, '../..');
const folder = 'deploy/components/monitoring';
const read = (name: string): Promise<string> => readFile(path.join(root, name), 'utf8');

interface Dashboard {
  templating: { list: { name: string; query: string | { query: string } }[] };
  panels: { type: string; title: string; description: string; targets?: { expr: string }[] }[];
}

/** Labels that a scrape adds to every series. */
const targetLabels = new Set(['namespace', 'job', 'instance']);

async function dashboard(): Promise<Dashboard> {
  return JSON.parse(await read(`${folder}/dashboard.json`)) as Dashboard;
}

/** Expressions of the panels, and those that fill the choices above them. */
async function dashboardExpressions(): Promise<string[]> {
  const { panels, templating } = await dashboard();
  const choices = templating.list.flatMap(({ query }) => (typeof query === 'string' ? [] : [query.query]));
  const series = choices.map((text) => /^label_values\((.*), \w+\)$/.exec(text)?.[1] ?? assert.fail(text));
  return [...panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)), ...series];
}

describe('the files in deploy/components/monitoring', () => {
  let live: LiveMetrics;
  let familyOf: (sample: string) => string | undefined;
  before(async () => {
    live = await liveMetrics();
    const samples = new Map(
      [...live.values()].flatMap(({ name, samples: own }) => [...own].map((each) => [each, name])),
    );
    familyOf = (sample) => samples.get(sample);
  });

  const check = (expression: string): void => {
    const selected = selectorsOf(expression);
    assert.ok(selected.length > 0, expression);
    const known = new Set([...targetLabels, 'le']);
    for (const { metric, labels } of selected) {
      const family = live.get(familyOf(metric) ?? '');
      assert.ok(family, `${metric} is no metric of ours, in ${expression}`);
      for (const label of family.labels) known.add(label);
      for (const label of labels) {
        assert.ok(targetLabels.has(label) || family.labels.includes(label), `${metric} has no label ${label}`);
      }
    }
    for (const label of groupingLabels(expression)) assert.ok(known.has(label), `no ${label} in ${expression}`);
  };

  test('alert on metrics and labels that are exported', async () => {
    const rules = await alertRules();
    assert.ok(rules.length > 0);
    for (const { expr } of rules) check(expr);
  });

  test('show metrics and labels that are exported', async () => {
    const expressions = await dashboardExpressions();
    assert.ok(expressions.length > 0);
    for (const expression of expressions) check(expression);
  });

  test('say for each alert and panel what it means', async () => {
    for (const { alert, labels, annotations } of await alertRules()) {
      assert.match(labels.severity, /^(critical|warning)$/, alert);
      assert.ok(annotations.summary.length > 0 && annotations.description.length > 0, alert);
    }
    for (const { type, title, description } of (await dashboard()).panels) {
      if (type !== 'row') assert.ok(description.length > 0, title);
    }
  });

  test('lead from each alert to its section in the docs', async () => {
    for (const { alert, annotations } of await alertRules()) {
      const [page = '', anchor = ''] = annotations.runbook_url.split('#');
      assert.equal(anchor, alert.toLowerCase(), 'a section of its own');
      assert.ok(anchorsOf(await read(page)).has(anchor), `${page} has no section ${anchor}`);
    }
  });

  test('show only what the choices above the panels leave', async () => {
    const { panels, templating } = await dashboard();
    const choices = templating.list.map(({ name }) => name);
    assert.deepEqual(choices, ['datasource', 'namespace', 'job', 'driver']);
    for (const { expr } of panels.flatMap(({ targets = [] }) => targets)) {
      for (const { metric, labels } of selectorsOf(expr)) {
        assert.ok(labels.includes('namespace') && labels.includes('job'), `${metric} in ${expr}`);
      }
    }
  });

  test('are what the last column of docs/metrics.md says', async () => {
    const users = new Map<string, string[]>();
    const note = (expressions: string[], where: string): void => {
      for (const { metric } of expressions.flatMap(selectorsOf)) {
        const name = familyOf(metric) ?? metric;
        const list = users.get(name) ?? [];
        if (!list.includes(where)) users.set(name, [...list, where]);
      }
    };
    note(await dashboardExpressions(), 'dashboard');
    note(
      (await alertRules()).map(({ expr }) => expr),
      'alerts',
    );
    for (const [name, { usedIn }] of familiesOf(await read('docs/metrics.md'))) {
      assert.equal(usedIn, (users.get(name) ?? []).join(', '), name);
    }
  });
});
