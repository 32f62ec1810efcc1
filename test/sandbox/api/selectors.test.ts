import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { builtInResources } from '../../../sandbox/api/built-in-resources.ts';
import { parseFieldSelector, parseLabelSelector } from '../../../sandbox/api/selectors.ts';

describe('label selectors', () => {
  const labels = { a: 'b', tier: 'db', n: '5', 'x.io/y': '' };
  const cases: [string, boolean][] = [
    ['a', true],
    ['!a', false],
    ['z', false],
    ['!z', true],
    ['a=b', true],
    ['a==b', true],
    ['a = b', true],
    ['a=c', false],
    ['a!=b', false],
    ['z!=b', true],
    ['tier in (web, db)', true],
    ['tier in (web)', false],
    ['tier notin (web)', true],
    ['tier notin (db)', false],
    ['z notin (db)', true],
    ['n>4', true],
    ['n<5', false],
    ['a>1', false],
    ['x.io/y=', true],
    ['a=b,tier in (db,web),!z', true],
    ['a=b,z', false],
    ['toString', false],
  ];
  for (const [selector, want] of cases) {
    test(`${selector} is ${want}`, () => assert.equal(parseLabelSelector(selector)?.(labels), want));
  }
  test('an empty selector selects everything', () => assert.equal(parseLabelSelector(' '), undefined));
  for (const bad of ['a in b', '=b', 'a=b=c', 'a,,b', 'a in (b', 'a b']) {
    test(`${bad} is refused`, () => assert.throws(() => parseLabelSelector(bad), { code: 400 }));
  }
});

describe('field selectors', () => {
  const type = (plural: string) => {
    const found = builtInResources.find((each) => each.plural === plural);
    assert.ok(found);
    return found;
  };
  const pod = {
    metadata: { name: 'p', namespace: 'ns' },
    spec: { nodeName: 'n', hostNetwork: true },
    status: { phase: 'Running' },
  };
  const cases: [string, boolean][] = [
    ['metadata.name=p', true],
    ['metadata.name==q', false],
    ['metadata.name!=q', true],
    ['metadata.namespace=ns,spec.nodeName=n', true],
    ['spec.schedulerName=', true],
    ['spec.hostNetwork=true', true],
    ['status.phase!=Running', false],
  ];
  for (const [selector, want] of cases) {
    test(`${selector} is ${want}`, () => {
      assert.equal(parseFieldSelector(selector, type('pods'))?.matches(pod), want);
    });
  }
  test('escaped characters belong to the value', () => {
    const selector = parseFieldSelector('metadata.name=a\\,b\\=c\\\\d', type('pods'));
    assert.equal(selector?.name, 'a,b=c\\d');
  });
  test('a field of another kind is refused', () => {
    assert.throws(() => parseFieldSelector('spec.nodeName=n', type('nodes')), {
      code: 400,
      message: 'field label not supported: spec.nodeName',
    });
  });
  test('a term without an operator is refused', () => {
    assert.throws(() => parseFieldSelector('metadata.name', type('pods')), { code: 400 });
  });
});
