/**
 * The listeners of all adapters of a device, which share its CM. A request is handed from one
 * service point to another by this.
 */
import type { CmModule } from '../../spi/index.js';
import type { ServicePoint } from './service-point.js';

const byModule = new WeakMap<CmModule, Map<number, ServicePoint>>();

/** The listener on a connection qualifier. */
export function servicePointAt(cm: CmModule, connQual: number): ServicePoint | undefined {
  return byModule.get(cm)?.get(connQual);
}

export function beginListening(cm: CmModule, point: ServicePoint): void {
  const points = byModule.get(cm) ?? new Map<number, ServicePoint>();
  byModule.set(cm, points.set(point.connQual, point));
}

export function endListening(cm: CmModule, point: ServicePoint): void {
  byModule.get(cm)?.delete(point.connQual);
}
