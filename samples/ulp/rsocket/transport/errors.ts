/** Errors of a connection, with the codes of Node. */
import { streamErrors } from '../../socket/over-dat/index.js';
import { RsocketProtocolError } from '../wire/index.js';

export const { errorOf, errorOfEnd } = streamErrors((error) => {
  if (!(error instanceof RsocketProtocolError)) return undefined;
  return error.field === 'version' ? 'EPROTONOSUPPORT' : 'EPROTO';
});
