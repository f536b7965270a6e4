/** What byte-stream protocols over DAT share: rsockets, SDP. */
export { type AdapterSource, sourceOf } from './adapter-source.js';
export { streamErrors } from './errors.js';
export { type Opening, opened, type YoungStream } from './opening.js';
export { type Caller, type ServiceOptions, StreamService } from './service.js';
