/** Finds the local address that the system's routing table uses towards a peer. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { checkIp } from '../../core/dat/common/ip-address.js';
import { DatError } from '../../core/index.js';

const OPERATION = 'localAddressToward';

/**
 * The local address that the system would use to reach a peer: open an adapter on it if a machine
 * has several. No packet is sent.
 * @param peer IP address in text
 * @throws DatError (rejects) DAT_INVALID_PARAMETER; DAT_INVALID_ADDRESS_MALFORMED for text that is
 * no IP address, DAT_INVALID_ADDRESS_UNREACHABLE if there is no route
 */
export async function localAddressToward(peer: string): Promise<string> {
  checkIp(OPERATION, peer);
  const socket = createSocket(peer.includes(':') ? 'udp6' : 'udp4');
  try {
    socket.connect(1, peer);
    await once(socket, 'connect');
    return socket.address().address;
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause);
    throw new DatError('DAT_INVALID_ADDRESS', {
      subtype: 'DAT_INVALID_ADDRESS_UNREACHABLE',
      operation: OPERATION,
      message: `${peer} cannot be reached: no route (${code})`,
      hint: 'the routing table of this machine has no route to it',
      value: peer,
      cause,
    });
  } finally {
    socket.close();
  }
}
