/** The DAT objects that events name. An event holds the object itself, never a handle. */
import type { Cr } from '../dat/cr.js';
import type { Ep } from '../dat/ep.js';
import type { Ia } from '../dat/ia.js';
import type { Psp } from '../dat/psp.js';
import type { Srq } from '../dat/srq.js';
import type { XrcDomain } from '../dat/xrc-domain.js';
import type { XrcSrq } from '../dat/xrc-srq.js';
import type { EvdFeed } from './evd-feed.js';

export type EventEndpoint = Ep;
export type EventServicePoint = Psp;
export type EventConnectionRequest = Cr;
/** Memory windows have no class of their own yet: whatever posts the event knows it. */
export type EventMemoryWindow = object;
export type EventXrcDomain = XrcDomain;
export type EventXrcSrq = XrcSrq;
/** What an asynchronous error is about. */
export type EventSubject = Ia | Ep | Srq | EvdFeed;
