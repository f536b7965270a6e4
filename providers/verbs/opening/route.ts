/** The address that the system would send from: its routing table, asked without sending. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { isIP } from 'node:net';
import type { Route } from './choose-device.js';

/** @param address an IP address in text, perhaps with a zone (`fe80::1%eth0`) */
export async function routeTo(address: string): Promise<Route> {
  const family = isIP(address);
  if (family === 0) return { problem: 'it is not an IP address' };
  const socket = createSocket(family === 6 ? 'udp6' : 'udp4');
  try {
    socket.connect(1, address);
    await once(socket, 'connect');
    return { source: socket.address().address.replace(/%.*$/, '') };
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause);
    return { problem: `there is no way there (${code})` };
  } finally {
    socket.close();
  }
}
