/**
 * The DAT objects that events name. An event holds the object itself, never a handle. Their classes
 * stand above the event dispatchers, so the dispatchers know them by these names alone, and
 * core/dat says what they are.
 */
import type { Cno } from './cno/cno.js';
import type { EvdFeed } from './evd-feed.js';

/** Filled in by core/dat, by declaration merging. */
export interface EventObjects {
  readonly evd: EvdFeed;
  readonly cno: Cno;
}

/** For what an adapter makes, too: an import of its class would make a circle of everything. */
export type EventAdapter = EventObjects['ia'];
export type EventEndpoint = EventObjects['ep'];
/** Endpoints for datagrams: they have no connection, hence a type of their own. */
export type EventDatagramEndpoint = EventObjects['udEp'];
export type EventServicePoint = EventObjects['servicePoint'];
export type EventConnectionRequest = EventObjects['cr'];
export type EventXrcDomain = EventObjects['xrcDomain'];
export type EventXrcSrq = EventObjects['xrcSrq'];
export type EventMemoryWindow = EventObjects['rmr'];
/** What an asynchronous error is about. */
export type EventSubject = EventObjects['ia' | 'ep' | 'udEp' | 'srq' | 'evd' | 'cno'];
