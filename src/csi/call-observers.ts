import { histogram, type MetricRegistry } from '../base/metrics.ts';
import { activeSpan } from '../base/tracing.ts';
import { replacedPlugin } from './migration/in-tree-plugins.ts';
import type { CallObserver } from './unary-call.ts';

const name = 'csi_sidecar_operations_seconds';

/** One finished CSI call. */
interface MeasuredCall {
  /** Full method, such as `/csi.v1.Controller/CreateVolume`. */
  method: string;
  /** Go's name of the gRPC code. */
  code: string;
  seconds: number;
  /** Undefined before the driver's name is known. */
  driverName: string | undefined;
  /** The call served a volume of an in-tree plugin. */
  migrated: boolean;
}

/**
 * Counts CSI calls in the family that the CSI sidecars share; returns what to call after each. Drivers that replaced an
 * in-tree plugin have one label more, so that what was counted before the driver's name was known is dropped for them.
 */
export function csiCallMetrics(registry: MetricRegistry): (call: MeasuredCall) => void {
  let observe = plainFamily(registry);
  let settled = false;
  return (call) => {
    if (!settled && call.driverName !== undefined) {
      settled = true;
      if (replacedPlugin(call.driverName) !== undefined) {
        registry.removeSingleMetric(name);
        observe = familyWithMigrated(registry);
      }
    }
    observe(call);
  };
}

const family = {
  name,
  help: 'Duration of CSI calls, by gRPC status code',
  stability: 'ALPHA',
  buckets: [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600],
} as const;

const labels = ['driver_name', 'method_name', 'grpc_status_code'] as const;

function labelsOf({ method, code, driverName = 'unknown-driver' }: MeasuredCall) {
  return { driver_name: driverName, method_name: method, grpc_status_code: code };
}

function plainFamily(registry: MetricRegistry): (call: MeasuredCall) => void {
  const seconds = histogram({ ...family, registry, labels });
  return (call) => seconds.observe(labelsOf(call), call.seconds);
}

function familyWithMigrated(registry: MetricRegistry): (call: MeasuredCall) => void {
  const seconds = histogram({ ...family, registry, labels: [...labels, 'migrated'] });
  return (call) => seconds.observe({ ...labelsOf(call), migrated: String(call.migrated) }, call.seconds);
}

/** Makes each call to the driver a part of the active trace, and passes the trace on to the driver (W3C, "Trace Context"). */
export const traceCall: CallObserver = ({ method }) => {
  const span = activeSpan()?.child(method.slice(1), {
    isCall: true,
    attributes: { 'rpc.system': 'grpc', 'rpc.method': method.slice(1) },
  });
  if (span === undefined) return undefined;
  return {
    metadata: { traceparent: span.traceparent },
    ended: (code) => {
      span.set({ 'rpc.response.status_code': code });
      span.end(code === 'OK' ? undefined : new Error(code)); // the text of the status is in the error of the attempt
    },
  };
};
