/**
 * The DAT objects that events name. An event holds the object itself, never a handle. Events know
 * the classes only by these names; core/evd and core/dat supply the types.
 */

/** Completed by core/evd and core/dat, by declaration merging. */
export interface EventObjects {
  /** The consumer's own value in a software event. */
  readonly payload: unknown;
}

/** Used by an adapter's objects, too: importing its class would create a circular import. */
export type EventAdapter = EventObjects['ia'];
export type EventEndpoint = EventObjects['ep'];
/** Datagram endpoints have no connection, so they have a type of their own. */
export type EventDatagramEndpoint = EventObjects['udEp'];
export type EventServicePoint = EventObjects['servicePoint'];
export type EventConnectionRequest = EventObjects['cr'];
export type EventXrcDomain = EventObjects['xrcDomain'];
export type EventXrcSrq = EventObjects['xrcSrq'];
export type EventMemoryWindow = EventObjects['rmr'];
/** An event dispatcher, as a CNO reports it. */
export type EventNotifier = EventObjects['evd'];
export type EventPayload = EventObjects['payload'];
/** The object that an asynchronous error is about. */
export type EventSubject = EventObjects['ia' | 'ep' | 'udEp' | 'srq' | 'evd' | 'cno'];
