/** The types of the objects that events name. */
import type { Cr } from './connect/cr.js';
import type { Ep } from './endpoint/ep.js';
import type { UdEp } from './datagram/endpoint.js';
import type { Ia } from './ia/ia.js';
import type { Rmr } from './window/rmr.js';
import type { ServicePoint } from './connect/service-point.js';
import type { Srq } from './srq/srq.js';
import type { XrcDomain } from './xrc/domain.js';
import type { XrcSrq } from './xrc/srq.js';

declare module '../evd/events/event-objects.js' {
  interface EventObjects {
    readonly ia: Ia;
    readonly ep: Ep;
    readonly udEp: UdEp;
    readonly servicePoint: ServicePoint;
    readonly cr: Cr;
    readonly rmr: Rmr;
    readonly srq: Srq;
    readonly xrcDomain: XrcDomain;
    readonly xrcSrq: XrcSrq;
  }
}
