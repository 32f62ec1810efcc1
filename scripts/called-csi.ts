import protobuf from 'protobufjs';
import { csiCalls } from '../src/csi/csi-calls.ts';
import { loadCsi } from '../src/csi/csi-proto.ts';
import { csiDescriptor } from '../src/csi/csi-proto-source.ts';

/**
 * As `csiDescriptor`, with nothing but the calls that a provisioner makes and the messages in them: the sidecar reads it at
 * each start, and most of CSI is about nodes, snapshots and volume groups.
 */
export function calledCsiDescriptor(): protobuf.INamespace {
  const root = protobuf.Root.fromJSON(csiDescriptor()).resolveAll();
  const kept = new Set<protobuf.ReflectionObject>();
  const called = calledMethods();
  for (const service of (root.lookup('csi.v1') as protobuf.Namespace).nestedArray) {
    if (!(service instanceof protobuf.Service)) continue;
    for (const method of service.methodsArray) {
      if (!called.has(method.name)) service.remove(method);
      else keep(kept, service, method.resolvedRequestType, method.resolvedResponseType);
    }
  }
  removeOthers(root, kept);
  return root.toJSON();
}

/** `CreateVolume` and so on. */
function calledMethods(): ReadonlySet<string> {
  const unused = {} as Parameters<typeof csiCalls>[1]; // no call is made
  const names = Object.keys(csiCalls(loadCsi(), unused));
  return new Set(names.map((name) => name.charAt(0).toUpperCase() + name.slice(1)));
}

/** Adds objects, the types of their fields, and what they are in. */
function keep(kept: Set<protobuf.ReflectionObject>, ...objects: (protobuf.ReflectionObject | null)[]): void {
  for (const object of objects) {
    if (object === null || kept.has(object)) continue;
    kept.add(object);
    keep(kept, object.parent);
    if (object instanceof protobuf.Type) keep(kept, ...object.fieldsArray.map((field) => field.resolvedType));
  }
}

function removeOthers(namespace: protobuf.NamespaceBase, kept: ReadonlySet<protobuf.ReflectionObject>): void {
  for (const nested of namespace.nestedArray) {
    if (!kept.has(nested)) namespace.remove(nested);
    else if (nested instanceof protobuf.Namespace) removeOthers(nested, kept);
  }
}
