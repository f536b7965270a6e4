/** Which of our own addresses leads to another one: the system's routing table knows. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { isIP } from 'node:net';

/**
 * The address that the system would send from. Nothing is sent to find out.
 * @throws Error, in a sentence, when the text is no address or there is no way to it
 */
export async function sourceAddressTowards(address: string): Promise<string> {
  const family = isIP(address);
  if (family === 0) throw new Error(`${JSON.stringify(address)} is not an IP address`);
  const socket = createSocket(family === 6 ? 'udp6' : 'udp4');
  try {
    socket.connect(1, address);
    await once(socket, 'connect');
    return socket.address().address;
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause);
    throw new Error(`${address} cannot be reached: no way there (${code})`, { cause });
  } finally {
    socket.close();
  }
}
