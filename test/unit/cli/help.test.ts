import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { helpText } from '../../../src/cli/command.ts';
import { flagGroups, flagList } from '../../../src/cli/flags.ts';
import { flagTableMarkdown } from '../../../src/cli/flags-markdown.ts';

const help = helpText('/csi-provisioner');

/** The part of the help below a heading. */
function section(title: string): string {
  return help.split(/\n(?=\S.*:\n)/).find((part) => part.startsWith(`${title}:\n`)) ?? '';
}

describe('the help', () => {
  test('begins with the program and fits 100 columns', () => {
    assert.match(help, /^Usage of \/csi-provisioner:\n\nProvisions /);
    for (const line of help.split('\n')) assert.ok(line.length <= 100, line);
  });

  for (const [name, spec] of flagList) {
    test(`--${name} stands under "${flagGroups[spec.group]}", once`, () => {
      const term = new RegExp(`^(?:  -v, |      )--${name}(?:[ =]|$)`, 'gm');
      assert.equal([...section(flagGroups[spec.group]).matchAll(term)].length, 1);
      assert.equal([...help.matchAll(term)].length, 1);
    });
  }

  test('headings come in the order of the table', () => {
    const headings = [...help.matchAll(/^(\S.*):$/gm)].map(([, title]) => title).slice(1);
    assert.deepEqual(headings, Object.values(flagGroups));
  });

  test('shows defaults, what is deprecated and what has no effect', () => {
    const flowing = help.replace(/\s+/g, ' ');
    assert.match(flowing, /--timeout <duration> .*?\(default: 10s\)/);
    assert.match(flowing, /--immediate-topology=false .*?\(default: true\)/);
    assert.match(flowing, /--metrics-address <address> .*?\(deprecated: use --http-endpoint; default: no server\)/);
    assert.match(flowing, /--vmodule <pattern=N,...> .*?\(accepted, without effect\)/);
  });

  test('names every path that an address serves', () => {
    const flowing = help.replace(/\s+/g, ' ');
    assert.match(
      flowing,
      /--http-endpoint <address> [^(]*metrics, \/healthz, \/readyz and, with leader election, \/healthz\/leader-election\./,
    );
    assert.match(
      flowing,
      /--metrics-address <address> [^(]*metrics, \/healthz and \/readyz, without \/healthz\/leader-election\./,
    );
  });

  test('GA gates are not shown', () => {
    assert.doesNotMatch(help, /VolumeAttributesClass/);
    assert.match(help, /CrossNamespaceVolumeDataSource/);
  });
});

describe('flagTableMarkdown', () => {
  const markdown = flagTableMarkdown();

  test('has one row of three cells for every flag', () => {
    const rows = markdown.split('\n').filter((line) => line.startsWith('| `'));
    assert.equal(rows.length, flagList.length);
    for (const row of rows) assert.equal(row.replaceAll('\\|', '').split('|').length, 5, row);
  });

  test('shows defaults', () => {
    assert.match(markdown, /^\| `--timeout` \| `10s` \| /m);
    assert.match(markdown, /^\| `-v`, `--v` \| `0` \| /m);
    assert.match(markdown, /^\| `--kube-api-qps` \| no limit \| /m);
    assert.match(markdown, /^\| `--automaxprocs` \| `false` \| .* Accepted without effect\. \|$/m);
    assert.match(markdown, /^\| `--metrics-address` \| .* Deprecated: use --http-endpoint\. \|$/m);
  });
});
