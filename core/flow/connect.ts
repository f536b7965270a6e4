/** `connect`: the active side. */
import { Ia } from '../dat/ia/ia.js';
import { checkValue, instanceOf } from '../spi/checks/index.js';
import { Connection } from './connection.js';
import { refusalOf } from './flow-error.js';
import { checkConnect, type ConnectOptions, planOf } from './options.js';

const IA = instanceOf(Ia, 'an Ia, from openIa()');

/**
 * Connects to a listener.
 * @param options where to, and what the connection is made with
 * @throws FlowError, as a rejection: DAT_CONN_REFUSED, DAT_CONN_REJECTED (with what the peer said),
 * DAT_CONN_UNREACHABLE, DAT_CONN_TIMED_OUT; DAT_TIMEOUT_EXPIRED, DAT_INTERRUPTED_CALL, which leave
 * nothing behind; DAT_INVALID_PARAMETER, DAT_LENGTH_ERROR, DAT_INVALID_ADDRESS; as
 * `ia.createEndpoint` and `ia.allocate`
 */
export const connect = async (ia: Ia, options: ConnectOptions): Promise<Connection> => {
  const operation = 'connect';
  checkValue('ia', ia, IA, refusalOf(operation));
  checkConnect(operation, options);
  return new Connection(ia, operation, planOf(operation, ia, options)).dial(options);
};
