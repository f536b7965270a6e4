/** The receiver: every endpoint hears the group until so many datagrams have come to it. */
import type { Ia } from 'dapl';
import { type Datagrams, datagrams } from 'dapl/flow';

import type { Options } from './options.js';

export async function hear(ia: Ia, options: Options): Promise<void> {
  const { group, connections, messages, sizeBytes } = options;
  // What more than one sender tells comes to everyone: there is room for some of that too.
  const receives = { buffers: 2 * messages, bufferBytes: sizeBytes };
  const members = await Promise.all(
    Array.from({ length: connections }, () => datagrams(ia, { receives })),
  );
  for (const { ep } of members) ep.joinMulticast(group);
  process.stdout.write(`joined ${group} at ${ia.address}\n`);
  const heard = await Promise.all(members.map((member) => sendersOf(member, options)));
  const from = [...new Set(heard.flat())].sort().join(', ');
  process.stdout.write(`${connections * messages} datagrams came, of ${from}\n`);
}

async function sendersOf(member: Datagrams, options: Options): Promise<string[]> {
  const { messages, sizeBytes } = options;
  const senders = new Set<string>();
  for (let count = 0; count < messages; count++) {
    const { lengthBytes, immediate, source } = await member.receive();
    if (lengthBytes !== sizeBytes) {
      throw new Error(`a datagram of ${lengthBytes} bytes, not ${sizeBytes}: use -S`);
    }
    // A sender of mckey tells its queue pair number as immediate data.
    if (immediate !== source.qpn) {
      throw new Error(`${source.address} says it is queue pair ${immediate}, not ${source.qpn}`);
    }
    senders.add(source.address);
  }
  return [...senders];
}
