/**
 * The listeners of all adapters of a device, which share its CM. A request is handed from one
 * service point to another by this.
 */
import type { CmModule } from '../../spi/index.js';
import type { ServicePoint } from './service-point.js';

const byModule = new WeakMap<CmModule, Map<number, ServicePoint>>();

/** By connection qualifier. */
export function listenersOf(cm: CmModule): Map<number, ServicePoint> {
  const listeners = byModule.get(cm) ?? new Map<number, ServicePoint>();
  byModule.set(cm, listeners);
  return listeners;
}
