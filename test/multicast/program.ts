/**
 * A program in multicast groups, which does what each line of its input says, and answers:
 *
 *     open ADDRESS PORT WORDS the device and an endpoint; `shared`, `dgram`
 *     join GROUP WORDS        the endpoint joins; `no-loopback`, `send-only`
 *     fill FIRST COUNT        it joins FIRST and those that follow
 *     leave GROUP
 *     tell GROUP NUMBER       a datagram with the number
 *     hear COUNT              waits for so many datagrams: their numbers, and who has sent them
 *     close                   the device
 */
import { createInterface } from 'node:readline';
import { type Datagrams, datagrams } from '../../core/flow/index.js';
import { type Ia, openIa, UdEp } from '../../core/index.js';
import type { MulticastOptions } from '../../core/spi/index.js';
import { softroce } from '../../providers/softroce/index.js';

const RECEIVES = { buffers: 256, bufferBytes: 64 };
let ia: Ia | undefined;
let member: Datagrams | undefined;

async function open(address: string, udpPort: number, words: readonly string[]): Promise<string> {
  const shared = words.includes('shared');
  const port = words.includes('dgram') ? 'dgram' : 'native';
  ia = await openIa(softroce({ addresses: [address], udpPort, shared, port }));
  member = await datagrams(ia, { receives: RECEIVES });
  return 'open';
}

function optionsOf(words: readonly string[]): MulticastOptions {
  return { loopback: !words.includes('no-loopback'), sendOnly: words.includes('send-only') };
}

/** Joins until one fails. */
function fill(first: string, count: number): string {
  const [, head = '', low = 0] = /^(.*\.)(\d+)$/.exec(first) ?? [];
  for (let i = 0; i < count; i++) member!.ep.joinMulticast(`${head}${Number(low) + i}`);
  return `joined ${count}`;
}

async function tell(group: string, number: number): Promise<string> {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, number);
  await member!.send(bytes, { address: group, qpn: UdEp.MULTICAST_QPN });
  return 'told';
}

async function hear(count: number): Promise<string> {
  const numbers = [];
  const senders = new Set<string>();
  for (let i = 0; i < count; i++) {
    const datagram = await member!.receive();
    const { buffer, byteOffset } = datagram.bytes;
    numbers.push(new DataView(buffer, byteOffset).getUint32(0));
    senders.add(datagram.source.address);
  }
  return `${numbers.join(' ')} from ${[...senders].sort().join(' ')}`;
}

async function answer(line: string): Promise<string> {
  const [command, first = '', second = '', ...words] = line.split(' ');
  switch (command) {
    case 'open':
      return open(first, Number(second), words);
    case 'join':
      member!.ep.joinMulticast(first, optionsOf([second, ...words]));
      return 'joined';
    case 'fill':
      return fill(first, Number(second));
    case 'leave':
      member!.ep.leaveMulticast(first);
      return 'left';
    case 'tell':
      return tell(first, Number(second));
    case 'hear':
      return hear(Number(first));
    case 'close':
      await ia?.close();
      return 'closed';
    default:
      throw new Error(`no command: ${line}`);
  }
}

createInterface(process.stdin).on('line', (line) => {
  answer(line).then(
    (said) => console.log(said),
    (error: unknown) => {
      const { code = '', message, hint = '' } = error as Record<string, string>;
      console.log(`${code}: ${message?.split('\n')[0] ?? ''} ${hint}`);
    },
  );
});
