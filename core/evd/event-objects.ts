/** The DAT objects that events name. An event holds the object itself, never a handle. */
import type { Cr } from '../dat/cr.js';
import type { Ep } from '../dat/ep.js';
import type { UdEp } from '../dat/ep-ud.js';
import type { Ia } from '../dat/ia.js';
import type { ServicePoint } from '../dat/service-point.js';
import type { Rmr } from '../dat/rmr.js';
import type { Srq } from '../dat/srq.js';
import type { XrcDomain } from '../dat/xrc-domain.js';
import type { XrcSrq } from '../dat/xrc-srq.js';
import type { Cno } from './cno.js';
import type { EvdFeed } from './evd-feed.js';

export type EventEndpoint = Ep;
/** Endpoints for datagrams: they have no connection, hence a type of their own. */
export type EventDatagramEndpoint = UdEp;
export type EventServicePoint = ServicePoint;
export type EventConnectionRequest = Cr;
export type EventXrcDomain = XrcDomain;
export type EventXrcSrq = XrcSrq;
export type EventMemoryWindow = Rmr;
/** What an asynchronous error is about. */
export type EventSubject = Ia | Ep | UdEp | Srq | EvdFeed | Cno;
