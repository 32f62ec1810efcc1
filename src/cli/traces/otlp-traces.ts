/** Exports traces by OTLP. Loaded only when traces are on: a file of its own in the bundle. */
import { randomUUID } from 'node:crypto';
import os from 'node:os';
import {
  type Context,
  type Link,
  ROOT_CONTEXT,
  type Span as OtelSpan,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import {
  defaultResource,
  detectResources,
  resourceAttributesEnvDetector,
  resourceFromAttributes,
  serviceNameEnvDetector,
} from '@opentelemetry/resources';
import {
  BatchSpanProcessor,
  RandomIdGenerator,
  type ReadableSpan,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { Logger } from '../../base/logger.ts';
import type { Span, SpanAttributes, Tracer } from '../../base/tracing.ts';

/** Traces as asked for. */
export interface TracesConfig {
  /** Share of claims that are traced, from 0 to 1. */
  readonly ratio: number;
}

interface OtlpTracesOptions {
  config: TracesConfig;
  version: string;
  logger: Logger;
  /** Ends the wait for the last export before `flushMs` is over. Default: nothing does. */
  end?: AbortSignal;
  /** How long the end waits for the last export, in milliseconds. Default 3000. */
  flushMs?: number;
}

/** The tracer, and the end of it. */
export interface OtlpTraces extends AsyncDisposable {
  readonly tracer: Tracer;
}

/** Spans that wait for the exporter; further ones are dropped. */
const maxQueueSize = 4096;
/** Max duration of an export with its retries, in milliseconds; `OTEL_EXPORTER_OTLP_TIMEOUT` can only shorten it. */
const exportTimeoutMs = 10_000;
const flushDefaultMs = 3000;
/** A receiver that is away is logged once in this time, in milliseconds. */
const reportPauseMs = 300_000;
const maxErrorLength = 500;

/** Endpoint, headers, certificates and time-outs come from the `OTEL_EXPORTER_OTLP_*` variables of the process. */
export function startOtlpTraces(options: OtlpTracesOptions): OtlpTraces {
  const { config, version, logger, end, flushMs = flushDefaultMs } = options;
  const ids = new ChosenIds();
  const exporter = new ReportingExporter(new OTLPTraceExporter(), logger);
  const provider = new TracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes({ 'service.name': 'csi-provisioner', 'service.version': version, ...instance() }))
      .merge(detectResources({ detectors: [resourceAttributesEnvDetector, serviceNameEnvDetector] })),
    sampler: new TraceIdRatioBasedSampler(config.ratio),
    idGenerator: ids,
    spanProcessors: [new BatchSpanProcessor({ exporter, maxQueueSize, exportTimeoutMillis: exportTimeoutMs })],
  });
  const otel = provider.getTracer('csi-provisioner', version);
  const contexts = new WeakMap<Span, SpanContext>();
  const begin = (name: string, options: SpanOptions, context: Context, shared: SpanAttributes): Span => {
    const span = otel.startSpan(name, { ...options, attributes: { ...shared, ...options.attributes } }, context);
    const own = wrapped(span, (childName, childOptions) =>
      begin(childName, childOptions, trace.setSpan(context, span), shared),
    );
    contexts.set(own, span.spanContext());
    return own;
  };
  return {
    tracer: {
      begin: (name, { id, startMs, attributes, after }) => {
        const former = after && contexts.get(after);
        ids.next = traceIdOf(id);
        const links = former === undefined ? [] : [{ context: former }];
        return begin(name, { startTime: startMs, links }, ROOT_CONTEXT, attributes);
      },
    },
    [Symbol.asyncDispose]: async () => {
      const { promise: late, resolve } = Promise.withResolvers<undefined>();
      const giveUp = (): void => resolve(undefined);
      const timer = setTimeout(giveUp, flushMs);
      end?.addEventListener('abort', giveUp, { once: true });
      if (end?.aborted === true) giveUp();
      await Promise.race([provider.shutdown().catch(() => undefined), late]);
      end?.removeEventListener('abort', giveUp);
      clearTimeout(timer);
    },
  };
}

/** Which process it is (OpenTelemetry semantic conventions, "Service" and "Kubernetes"). `OTEL_RESOURCE_ATTRIBUTES` can replace them. */
function instance(): Record<string, string> {
  const host = os.hostname();
  const inPod = process.env['KUBERNETES_SERVICE_HOST'] !== undefined;
  return { 'service.instance.id': randomUUID(), 'host.name': host, ...(inPod && { 'k8s.pod.name': host }) };
}

interface SpanOptions {
  startTime?: number;
  attributes?: SpanAttributes;
  links?: Link[];
  kind?: SpanKind;
}

function wrapped(span: OtelSpan, begin: (name: string, options: SpanOptions) => Span): Span {
  const { traceId, spanId, traceFlags } = span.spanContext();
  return {
    traceparent: `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`,
    child: (name, { attributes = {}, isCall = false, startMs } = {}) =>
      begin(name, {
        attributes,
        kind: isCall ? SpanKind.CLIENT : SpanKind.INTERNAL,
        ...(startMs !== undefined && { startTime: startMs }),
      }),
    set: (attributes) => void span.setAttributes(attributes),
    end: (error, endMs) => {
      if (!span.isRecording()) return;
      if (error !== undefined) {
        const message = error instanceof Error ? error.message : 'failed';
        span.setStatus({ code: SpanStatusCode.ERROR, message: message.slice(0, maxErrorLength) });
      }
      span.end(endMs);
    },
  };
}

/** The 16 bytes of a UID; a trace id of chance for a UID that is none. */
function traceIdOf(uid: string): string | undefined {
  const id = uid.replaceAll('-', '').toLowerCase();
  return /^[0-9a-f]{32}$/.test(id) && !/^0+$/.test(id) ? id : undefined;
}

/** Ids of chance, but for the trace that is begun next. */
class ChosenIds extends RandomIdGenerator {
  next: string | undefined;

  constructor() {
    super();
    const generate = this.generateTraceId.bind(this);
    this.generateTraceId = () => {
      const chosen = this.next;
      this.next = undefined;
      return chosen ?? generate();
    };
  }
}

/** An exporter whose failures are logged, rarely: spans are lost then, and nothing else. */
class ReportingExporter implements SpanExporter {
  readonly #exporter: SpanExporter;
  readonly #logger: Logger;
  #reportedMs = -Infinity;

  constructor(exporter: SpanExporter, logger: Logger) {
    this.#exporter = exporter;
    this.#logger = logger;
  }

  export(spans: ReadableSpan[], done: Parameters<SpanExporter['export']>[1]): void {
    this.#exporter.export(spans, (result) => {
      if (result.error !== undefined) this.#report(result.error);
      done(result);
    });
  }

  shutdown(): Promise<void> {
    return this.#exporter.shutdown();
  }

  #report(error: Error): void {
    const nowMs = performance.now();
    if (nowMs - this.#reportedMs < reportPauseMs) return;
    this.#reportedMs = nowMs;
    this.#logger.warn({ err: error }, 'Traces could not be exported and are lost');
  }
}
