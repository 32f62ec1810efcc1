import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { tracesConfig } from '../../../src/cli/traces/start-traces.ts';

const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' };

describe('traces are asked for', () => {
  const rows: [string, Record<string, string>, { ratio: number } | null][] = [
    ['by nothing', {}, null],
    ['by empty variables: not at all', { OTEL_EXPORTER_OTLP_ENDPOINT: '', OTEL_TRACES_EXPORTER: ' ' }, null],
    ['by an endpoint', endpoint, { ratio: 1 }],
    ['by an endpoint for traces', { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://c/v1/traces' }, { ratio: 1 }],
    ['by the exporter', { OTEL_TRACES_EXPORTER: 'otlp' }, { ratio: 1 }],
    ['not with none', { ...endpoint, OTEL_TRACES_EXPORTER: 'none' }, null],
    ['not with the SDK disabled', { ...endpoint, OTEL_SDK_DISABLED: 'TRUE' }, null],
    ['with OTEL_SDK_DISABLED=false', { ...endpoint, OTEL_SDK_DISABLED: 'false' }, { ratio: 1 }],
    [
      'of a share of the claims',
      { ...endpoint, OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.25' },
      { ratio: 0.25 },
    ],
    ['of none of them', { ...endpoint, OTEL_TRACES_SAMPLER: 'always_off' }, null],
    [
      'by the protocol for traces, whatever the other one is',
      {
        ...endpoint,
        OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/protobuf',
        OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
      },
      { ratio: 1 },
    ],
  ];
  for (const [title, environment, want] of rows) test(title, () => assert.deepEqual(tracesConfig(environment), want));
});

describe('a value that is not supported is refused by name, with what may stand there', () => {
  const rows: [Record<string, string>, RegExp][] = [
    [{ OTEL_TRACES_EXPORTER: 'zipkin' }, /^OTEL_TRACES_EXPORTER="zipkin" is not supported: it must be otlp or none$/],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' }, /^OTEL_EXPORTER_OTLP_ENDPOINT="collector:4318" .*http:/],
    [{ ...endpoint, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, /^OTEL_EXPORTER_OTLP_PROTOCOL="grpc" .*http\/protobuf/],
    [
      { ...endpoint, OTEL_EXPORTER_OTLP_CERTIFICATE: '/none/ca.crt' },
      /^OTEL_EXPORTER_OTLP_CERTIFICATE="\/none\/ca.crt" .*a file that can be read: ENOENT/,
    ],
    [{ ...endpoint, OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY: '/' }, /^OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY="\/" .*EISDIR/],
    [{ ...endpoint, OTEL_TRACES_SAMPLER: 'jaeger_remote' }, /^OTEL_TRACES_SAMPLER="jaeger_remote" .*traceidratio/],
    [
      { ...endpoint, OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '2' },
      /^OTEL_TRACES_SAMPLER_ARG="2" .*from 0 to 1/,
    ],
  ];
  for (const [environment, message] of rows)
    test(Object.entries(environment).at(-1)?.join('=') ?? '', () => {
      assert.throws(() => tracesConfig(environment), { name: 'TracesConfigError', message });
    });
});
