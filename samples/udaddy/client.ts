/** The active side: resolves the service for each endpoint, sends, and compares the replies. */
import type { Ia } from 'dapl';

import { Mailbox } from './mailbox.js';
import type { Options } from './options.js';
import { fillMessage, isReplyTo } from './protocol.js';

export async function runClient(ia: Ia, server: string, options: Options): Promise<void> {
  const { port, connections, messages, sizeBytes } = options;
  const mailboxes = Array.from(
    { length: connections },
    () => new Mailbox(ia, { sizeBytes, receives: messages, sends: messages }),
  );
  const handles = await Promise.all(
    mailboxes.map(({ ep }) => ep.resolve({ address: server, connQual: port })),
  );
  for (const [index, mailbox] of mailboxes.entries()) {
    const to = handles[index];
    if (to === undefined) continue;
    fillMessage(mailbox.message.bytes, index);
    await mailbox.send(mailbox.message, to, messages);
  }
  for (const mailbox of mailboxes) {
    for (let reply = 0; reply < messages; reply++) await receiveReply(mailbox, sizeBytes);
  }
  process.stdout.write(`${connections * messages} replies came\n`);
}

async function receiveReply(mailbox: Mailbox, sizeBytes: number): Promise<void> {
  const { buffer, source } = await mailbox.receive();
  const reply = buffer.bytes.subarray(buffer.lengthBytes - sizeBytes);
  if (isReplyTo(mailbox.message.bytes, reply)) return;
  throw new Error(`the reply of ${source.address} is not what was sent`);
}
