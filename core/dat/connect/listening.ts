/**
 * The listeners of all adapters of a device, which share its CM. Used to hand a request from one
 * service point to another.
 */
import type { CmModule } from '../../spi/index.js';
import type { Service } from '../endpoint/connect-options.js';
import type { ServicePoint } from './service-point.js';

const byModule = new WeakMap<CmModule, Map<Service, ServicePoint>>();

/** By connection qualifier, or service id. */
export function listenersOf(cm: CmModule): Map<Service, ServicePoint> {
  const listeners = byModule.get(cm) ?? new Map<Service, ServicePoint>();
  byModule.set(cm, listeners);
  return listeners;
}
