/** The control connection of a client, for both sides: how it is made and what it receives. */
import type { Connection, ConnectionOptions } from 'dapl/flow';

import { sentenceOf } from '../program.js';
import { CONTROL_BYTES } from './messages.js';

/** The client sends two messages before it is answered. */
export const CONTROL: ConnectionOptions = {
  receives: { buffers: 2, bufferBytes: CONTROL_BYTES },
};

/** The next message. @throws Error if the connection ends first, or for another length */
export async function nextControl(conn: Connection, what: string): Promise<Buffer> {
  const { bytes } = await conn.receive().catch((cause: unknown) => {
    throw new Error(`${what}: ${sentenceOf(cause)}`, { cause });
  });
  if (bytes.length !== CONTROL_BYTES) {
    throw new Error(`${what}: ${bytes.length} bytes, not ${CONTROL_BYTES}`);
  }
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}
