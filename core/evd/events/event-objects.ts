/**
 * The DAT objects that events name. An event holds the object itself, never a handle. Their classes
 * stand above the events, which know them by these names alone; core/evd and core/dat say what they
 * are.
 */

/** Filled in by core/evd and core/dat, by declaration merging. */
// eslint-disable-next-line @typescript-eslint/no-empty-object-type -- merged into from above
export interface EventObjects {}

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
export type EventNotifier = EventObjects['notifier'];
/** What an asynchronous error is about. */
export type EventSubject = EventObjects['ia' | 'ep' | 'udEp' | 'srq' | 'evd' | 'cno'];
