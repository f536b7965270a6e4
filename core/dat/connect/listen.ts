/** Puts a service point on a given or private event dispatcher. */
import { type Evd, EvdFlags } from '../../evd/index.js';
import type { AdapterState } from '../common/adapter-state.js';
import type { Service } from '../endpoint/connect-options.js';
import type { ServicePoint, ServicePointInit } from './service-point.js';
import type { CmModule } from '../../spi/index.js';

const REQUESTS_QLEN = 64;

export function listen<T extends ServicePoint>(
  core: AdapterState,
  service: Service,
  given: Evd | undefined,
  make: (init: ServicePointInit) => T,
): T {
  const isPrivate = given === undefined;
  const evd = given ?? core.newEvd(REQUESTS_QLEN, EvdFlags.CR);
  try {
    return core.adopt(make({ service, evd, isPrivate }));
  } catch (error) {
    if (isPrivate) core.freePrivateEvd(evd);
    throw error;
  }
}

// The listeners of all adapters of a device, which share its CM. Used to hand a request from one
// service point to another.

const byModule = new WeakMap<CmModule, Map<Service, ServicePoint>>();

/** By connection qualifier, or service id. */
export function listenersOf(cm: CmModule): Map<Service, ServicePoint> {
  const listeners = byModule.get(cm) ?? new Map<Service, ServicePoint>();
  byModule.set(cm, listeners);
  return listeners;
}
