/** The DAT API lived in as streams. */
export { type EventStream, eventStream } from './event-stream.js';
