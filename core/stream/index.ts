/** The DAT API as streams. */
export type { EventStream, NotificationStream } from './event-stream.js';
export { Inbox } from './inbox.js';
export { PresentValue } from './present-value.js';
export type { Observable } from 'rxjs';
