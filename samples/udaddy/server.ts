/** The passive side: one endpoint serves all clients, and replies when everything has come. */
import type { Ia } from 'dapl';
import { type Datagram, datagrams } from 'dapl/flow';

import type { Options } from './options.js';
import { replyTo } from './protocol.js';
import { receiveOne } from './receive.js';

export async function runServer(ia: Ia, options: Options): Promise<void> {
  const { port, connections, messages, sizeBytes } = options;
  const total = connections * messages;
  await using box = await datagrams(ia, { receives: { buffers: total, bufferBytes: sizeBytes } });
  const service = box.serve({ port });
  process.stdout.write(`listening on ${ia.address}, port ${port}\n`);
  const lastOf = new Map<string, Datagram>();
  for (let count = 0; count < total; count++) {
    const datagram = await receiveOne(box, sizeBytes, count === 0 ? Infinity : undefined);
    const { address, qpn } = datagram.source;
    if (datagram.immediate !== qpn) {
      throw new Error(`${address} says it is queue pair ${datagram.immediate}, not ${qpn}`);
    }
    lastOf.set(`${address} ${qpn}`, datagram);
  }
  service.free();
  for (const { source, bytes } of lastOf.values()) {
    const reply = replyTo(bytes);
    for (let sent = 0; sent < messages; sent++) {
      await box.send(reply, source, { immediate: box.qpn });
    }
  }
  process.stdout.write(`replied to ${lastOf.size} endpoints, ${total} messages\n`);
}
