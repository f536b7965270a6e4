/** The passive side: one endpoint serves all clients, and replies when everything has come. */
import type { Ia } from 'dapl';

import { type Datagram, Mailbox } from './mailbox.js';
import type { Options } from './options.js';

export async function runServer(ia: Ia, options: Options): Promise<void> {
  const { port, connections, messages, sizeBytes } = options;
  const total = connections * messages;
  const mailbox = new Mailbox(ia, { sizeBytes, receives: total, sends: messages });
  const service = mailbox.ep.serve({ connQual: port });
  process.stdout.write(`listening on ${ia.address}, port ${port}\n`);
  const lastOf = new Map<string, Datagram>();
  for (let count = 0; count < total; count++) {
    const datagram = await mailbox.receive(count === 0 ? Infinity : undefined);
    const { address, qpn } = datagram.source;
    if (datagram.immediate !== qpn) {
      throw new Error(`${address} says it is queue pair ${datagram.immediate}, not ${qpn}`);
    }
    lastOf.set(`${address} ${qpn}`, datagram);
  }
  service.free();
  for (const { source, buffer } of lastOf.values()) {
    using to = mailbox.ep.createAddressHandle(source);
    await mailbox.send(buffer.lmr.segment(buffer.offsetBytes, sizeBytes), to, messages);
  }
  process.stdout.write(`replied to ${lastOf.size} endpoints, ${total} messages\n`);
}
