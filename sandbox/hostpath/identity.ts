import type { HostpathDriver } from './hostpath-driver.ts';
import type { StringMap } from './messages.ts';

/** The driver's own version; not that of any product. */
const vendorVersion = '1.0.0';

/** GetPluginInfo. */
export function getPluginInfo(driver: HostpathDriver): { name: string; vendor_version: string; manifest: StringMap } {
  return { name: driver.driverName, vendor_version: vendorVersion, manifest: {} };
}

/** GetPluginCapabilities. */
export function getPluginCapabilities(driver: HostpathDriver): { capabilities: object[] } {
  const capabilities = [...driver.capabilities.plugin].map((type) =>
    type === 'ONLINE' ? { volume_expansion: { type } } : { service: { type } },
  );
  return { capabilities };
}

/** Probe: a driver that responds is ready; `faults.json` can say otherwise. */
export function probe(): { ready: { value: boolean } } {
  return { ready: { value: true } };
}

/** ControllerGetCapabilities. */
export function controllerGetCapabilities(driver: HostpathDriver): { capabilities: { rpc: { type: string } }[] } {
  return { capabilities: [...driver.capabilities.controller].map((type) => ({ rpc: { type } })) };
}
