/**
 * The DAT objects that events name. An event holds the object itself, never a handle. Their classes
 * stand above the events, which know them by these names alone; core/evd and core/dat say what they
 * are.
 */

/** Completed by core/evd and core/dat, by declaration merging. */
export interface EventObjects {
  /** The consumer's own value in a software event. */
  readonly payload: unknown;
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
/** An event dispatcher, as a CNO names the one that has notified it. */
export type EventNotifier = EventObjects['evd'];
export type EventPayload = EventObjects['payload'];
/** The object that an asynchronous error is about. */
export type EventSubject = EventObjects['ia' | 'ep' | 'udEp' | 'srq' | 'evd' | 'cno'];
