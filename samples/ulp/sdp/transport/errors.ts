/** Errors of a connection, with the codes of Node. */
import { streamErrors } from '../../socket/over-dat/index.js';
import { SdpWireError } from '../wire/index.js';

export const { errorOf, errorOfEnd } = streamErrors(
  (error) => (error instanceof SdpWireError ? 'EPROTO' : undefined),
  // The peer aborted while this side read from its offer.
  { REMOTE_ACCESS: 'ECONNRESET' },
);
