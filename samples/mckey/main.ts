/**
 * mckey in TypeScript: librdmacm's exchange of datagrams by multicast. Either end may be the C
 * program: `mckey -m 239.1.2.3 -b 10.0.0.1` receives what `node dist/samples/mckey/main.js -s -m
 * 239.1.2.3 -b 10.0.0.2` sends.
 */
import { type Ia, localAddressToward, UdEp } from 'dapl';
import { datagrams, type Datagrams } from 'dapl/flow';
import { runProgram } from '../program.js';
import { type Options, parseOptions } from './options.js';

const options = parseOptions(process.argv);

await runProgram('mckey', async (open) => {
  const { group, bind, isSender, provider } = options;
  const ia = await open(bind ?? (await localAddressToward(group)), provider);
  await (isSender ? tell(ia, options) : hear(ia, options));
});

/**
 * The sender: every endpoint sends its datagrams to the group, and learns nothing about members.
 */
async function tell(ia: Ia, options: Options): Promise<void> {
  const { group, sendOnly, connections, messages, sizeBytes } = options;
  // The Q_Key is the endpoint's own, which is by default that of rdma_cm's groups.
  const to = { address: group, qpn: UdEp.MULTICAST_QPN };
  const message = Uint8Array.from({ length: sizeBytes }, (_, at) => at);
  const members = await Promise.all(Array.from({ length: connections }, () => datagrams(ia)));
  if (!sendOnly) for (const { ep } of members) ep.joinMulticast(group);
  for (const member of members) {
    for (let sent = 0; sent < messages; sent++) {
      await member.send(message, to, { immediate: member.qpn });
    }
  }
  process.stdout.write(`${connections * messages} datagrams left for ${group}\n`);
}

/** The receiver: every endpoint receives from the group until it has the requested number. */
async function hear(ia: Ia, options: Options): Promise<void> {
  const { group, connections, messages, sizeBytes } = options;
  // Several senders may send to the group: leave room for some of their datagrams, too.
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
