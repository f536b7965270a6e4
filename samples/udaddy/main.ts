/**
 * udaddy in TypeScript: librdmacm's exchange of datagrams over the DAT API. Either end may be the C
 * program: `udaddy -s 10.0.0.1` against `node dist/samples/udaddy/main.js -b 10.0.0.1`.
 */
import { type Ia, localAddressToward } from 'dapl';
import { type Datagram, type Datagrams, datagrams } from 'dapl/flow';
import { runProgram } from '../program.js';
import { type Options, parseOptions } from './options.js';
import { isReplyTo, messageOf, replyTo } from './protocol.js';
import { receiveOne } from './receive.js';

const options = parseOptions(process.argv);

await runProgram('udaddy', async (open) => {
  const { server, bind, provider } = options;
  const ia = await open(bind ?? (await localAddressToward(server ?? '')), provider);
  await (server === undefined ? runServer(ia, options) : runClient(ia, server, options));
});

/** The active side: resolves the service for each endpoint, sends, and compares the replies. */
async function runClient(ia: Ia, address: string, options: Options): Promise<void> {
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

/**
 * The passive side: one endpoint serves all clients, and replies when all messages have arrived.
 */
async function runServer(ia: Ia, options: Options): Promise<void> {
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
