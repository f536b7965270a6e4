/** The DAT objects that events name. An event holds the object itself, never a handle. */
export type EventEndpoint = object;
export type EventServicePoint = object;
export type EventConnectionRequest = object;
export type EventMemoryWindow = object;
/** IA, EP, EVD, SRQ, LMR, RMR or PZ. */
export type EventSubject = object;
