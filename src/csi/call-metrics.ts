import { histogram, type MetricRegistry } from '../base/metrics.ts';

const buckets = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600];

/** One finished CSI call. */
export interface MeasuredCall {
  /** Full method, such as `/csi.v1.Controller/CreateVolume`. */
  method: string;
  /** Go's name of the gRPC code. */
  code: string;
  seconds: number;
  /** Undefined before the driver has told its name. */
  driverName: string | undefined;
}

/** Counts CSI calls in the family that the CSI sidecars share; returns what to call after each. */
export function csiCallMetrics(registry: MetricRegistry): (call: MeasuredCall) => void {
  const seconds = histogram({
    registry,
    name: 'csi_sidecar_operations_seconds',
    help: 'Duration of CSI calls, by gRPC status code',
    stability: 'ALPHA',
    labels: ['driver_name', 'method_name', 'grpc_status_code'],
    buckets,
  });
  return ({ method, code, seconds: took, driverName = 'unknown-driver' }) =>
    seconds.observe({ driver_name: driverName, method_name: method, grpc_status_code: code }, took);
}
