/** Parts that byte-stream protocols over DAT (rsockets, SDP) share. */
export { type AdapterSource, sourceOf } from './adapter-source.js';
export { streamErrors } from './errors.js';
export { type Opening, opened, type YoungStream } from './opening.js';
export { type Caller, type ServiceOptions, StreamService } from './service.js';
