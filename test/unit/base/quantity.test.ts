import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { capacityText, formatQuantity, parseQuantity, quantityBytes } from '../../../src/base/quantity.ts';

const largest = 2n ** 63n - 1n;

describe('quantityBytes', () => {
  const cases: [string | number, bigint][] = [
    ['5Gi', 5_368_709_120n],
    ['1.5Gi', 1_610_612_736n],
    ['1G', 1_000_000_000n],
    ['1e9', 1_000_000_000n],
    ['1E9', 1_000_000_000n],
    ['1e+9', 1_000_000_000n],
    ['1000000000', 1_000_000_000n],
    ['100m', 1n],
    ['0.5', 1n],
    ['1500m', 2n],
    ['4097', 4097n],
    ['0', 0n],
    ['-1.5', -2n],
    ['+7', 7n],
    ['.5k', 500n],
    ['5.', 5n],
    ...['-', '+', '.', '-.', '+.', 'k', '-k', 'n', 'E', 'Gi', '.Ti', 'e3', '.e-9', '-e+30'].map(
      (zero): [string, bigint] => [zero, 0n],
    ),
    ['1n', 1n],
    ['1u', 1n],
    ['1E', 10n ** 18n],
    ['1Ei', 2n ** 60n],
    ['1Pi', 2n ** 50n],
    ['1Ti', 2n ** 40n],
    ['1Mi', 2n ** 20n],
    ['1Ki', 1024n],
    ['1P', 10n ** 15n],
    ['1T', 10n ** 12n],
    ['1M', 10n ** 6n],
    ['1k', 1000n],
    ['9223372036854775807', largest],
    ['9223372036854775808', largest],
    ['100Ei', largest],
    ['1e999999999', largest],
    ['0e999999999', 0n],
    ['1e-999999999', 1n],
    [1073741824, 1_073_741_824n],
    [1e21, largest],
    [0.25, 1n],
  ];
  for (const [value, bytes] of cases) {
    test(`${value} is ${bytes}`, () => assert.equal(quantityBytes(value), bytes));
  }

  for (const text of [
    '',
    ' ',
    '5 Gi',
    '5GB',
    'Pi',
    '-Ei',
    'e-10',
    '+.e-99',
    'e',
    '..',
    '+-',
    '1.2.3',
    '1e',
    '1ee3',
    '1e1.5',
    '0x10',
    '--1',
    '5gi',
    '1K',
    'NaN',
  ]) {
    test(`${JSON.stringify(text)} is refused by name`, () => {
      assert.throws(() => quantityBytes(text), {
        name: 'QuantityError',
        message: `invalid quantity ${JSON.stringify(text)}: expected a number with an optional suffix`,
      });
    });
  }

  test('a long fraction neither loses nor wins a byte', () => {
    assert.equal(quantityBytes('0.9999999999999999999999Gi'), 1_073_741_824n);
    assert.equal(quantityBytes('1073741823.000000001'), 1_073_741_824n);
  });
});

describe('capacityText', () => {
  const cases: [bigint, string][] = [
    [5_368_709_120n, '5Gi'],
    [1_610_612_736n, '1536Mi'],
    [1_000_000_000n, '1000000000'],
    [4097n, '4097'],
    [1000n, '1k'],
    [100n, '100'],
    [1023n, '1023'],
    [1n, '1'],
    [2000n, '2000'],
    [1_000_000n, '1000000'],
    [1024n, '1Ki'],
    [1025n, '1025'],
    [4096n, '4Ki'],
    [102_400n, '100Ki'],
    [1_024_000_000n, '1000000Ki'],
    [5_905_580_032n, '5632Mi'],
    [5_970_004_541n, '5970004541'],
    [2n ** 40n, '1Ti'],
    [2n ** 60n, '1Ei'],
    [largest, '9223372036854775807'],
    [0n, '0'],
  ];
  for (const [bytes, text] of cases) {
    test(`${bytes} is written ${text}`, () => assert.equal(capacityText(bytes), text));
  }

  test('reading it gives the same bytes again', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: largest }), (bytes) => {
        assert.equal(quantityBytes(capacityText(bytes)), bytes);
      }),
    );
  });

  test('the text is never longer than the plain number', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 1024n, max: largest }), (bytes) => {
        assert.ok(capacityText(bytes).length <= String(bytes).length);
      }),
    );
  });
});

describe('formatQuantity', () => {
  const cases: [string, string][] = [
    ['1G', '1G'],
    ['1000000000', '1G'],
    ['100M', '100M'],
    ['1500m', '1500m'],
    ['0.5', '500m'],
    ['1.5Gi', '1536Mi'],
    ['0.5Ki', '512'],
    ['1.0001Ki', '1024102400u'],
    ['1e3', '1e3'],
    ['1500e-3', '1500e-3'],
    ['1e9', '1e9'],
    ['12e0', '12'],
    ['-2Gi', '-2Gi'],
    ['0Gi', '0'],
    ['10000', '10k'],
    ['2048Mi', '2Gi'],
  ];
  for (const [text, canonical] of cases) {
    test(`${text} becomes ${canonical}`, () => assert.equal(formatQuantity(parseQuantity(text)), canonical));
  }

  const quantities = fc
    .tuple(
      fc.constantFrom('', '-'),
      fc.bigInt({ min: 0n, max: 10n ** 9n }),
      fc.option(fc.stringMatching(/^\d{1,12}$/), { nil: undefined }),
      fc.constantFrom(
        '',
        'n',
        'u',
        'm',
        'k',
        'M',
        'G',
        'T',
        'P',
        'E',
        'Ki',
        'Mi',
        'Gi',
        'Ti',
        'Pi',
        'Ei',
        'e3',
        'e-3',
        'E6',
      ),
    )
    .map(
      ([sign, whole, fraction, suffix]) => `${sign}${whole}${fraction === undefined ? '' : `.${fraction}`}${suffix}`,
    );

  test('the canonical text has the same value and is canonical itself', () => {
    fc.assert(
      fc.property(quantities, (text) => {
        const quantity = parseQuantity(text);
        const canonical = formatQuantity(quantity);
        assert.equal(parseQuantity(canonical).nanos, quantity.nanos);
        assert.equal(formatQuantity({ ...parseQuantity(canonical), format: quantity.format }), canonical);
      }),
    );
  });

  test('no text is read that is no quantity, and none throws anything else', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        try {
          parseQuantity(text);
        } catch (error) {
          assert.equal((error as Error).name, 'QuantityError');
          return;
        }
        assert.match(text, /^[+-]?[\d.]*([numkMGTPE]|[KMGTPE]i|[eE][+-]?\d+)?$/);
      }),
    );
  });
});
