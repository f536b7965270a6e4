/** Parts that byte-stream protocols over DAT (rsockets, SDP) share. */
export { streamErrors } from './errors.js';
export { type AdapterSource, type Opening, opened, sourceOf, type YoungStream } from './opening.js';
export { type Caller, type ServiceOptions, StreamService } from './service.js';
