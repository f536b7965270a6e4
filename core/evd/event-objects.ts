/** The DAT objects that events name. An event holds the object itself, never a handle. */
import type { Cr } from '../dat/cr.js';
import type { Ep } from '../dat/ep.js';
import type { Ia } from '../dat/ia.js';
import type { Psp } from '../dat/psp.js';
import type { Rmr } from '../dat/rmr.js';
import type { Srq } from '../dat/srq.js';
import type { Cno } from './cno.js';
import type { EvdFeed } from './evd-feed.js';

export type EventEndpoint = Ep;
export type EventServicePoint = Psp;
export type EventConnectionRequest = Cr;
export type EventMemoryWindow = Rmr;
/** What an asynchronous error is about. */
export type EventSubject = Ia | Ep | Srq | EvdFeed | Cno;
