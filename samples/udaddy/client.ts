/** The active side: resolves the service for each endpoint, sends, and compares the replies. */
import type { Ia } from 'dapl';
import { type Datagrams, datagrams } from 'dapl/flow';

import type { Options } from './options.js';
import { isReplyTo, messageOf } from './protocol.js';
import { receiveOne } from './receive.js';

export async function runClient(ia: Ia, address: string, options: Options): Promise<void> {
  const { port, connections, messages, sizeBytes } = options;
  const receives = { buffers: messages, bufferBytes: sizeBytes };
  const boxes = await Promise.all(
    Array.from({ length: connections }, () => datagrams(ia, { receives })),
  );
  const handles = await Promise.all(boxes.map((box) => box.resolve({ address, port })));
  for (const [index, box] of boxes.entries()) {
    const message = messageOf(index, sizeBytes);
    for (let sent = 0; sent < messages; sent++) {
      await box.send(message, handles[index]!, { immediate: box.qpn });
    }
  }
  for (const [index, box] of boxes.entries()) {
    const message = messageOf(index, sizeBytes);
    for (let reply = 0; reply < messages; reply++) await receiveReply(box, message);
  }
  process.stdout.write(`${connections * messages} replies came\n`);
}

async function receiveReply(box: Datagrams, message: Uint8Array): Promise<void> {
  const { bytes, source } = await receiveOne(box, message.length);
  if (isReplyTo(message, bytes)) return;
  throw new Error(`the reply of ${source.address} is not what was sent`);
}
