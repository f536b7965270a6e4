/**
 * Loopback addresses and UDP ports that no other run of tests on this machine has at the time, be
 * it of another user or of another clone: each run has a block of its own, 127.BLOCK.0.0/16, for as
 * long as its process lives. Programs and threads that it starts have the same one.
 */
import { createSocket, type Socket } from 'node:dgram';
import { env, pid } from 'node:process';

/** The number of the block, for programs that a test starts. */
const VARIABLE = 'DAPL_TEST_BLOCK';
/** 127.0 is everybody's (127.0.0.1, and what docs and samples print), 127.255 has the broadcast. */
const BLOCKS = 254;
/** A socket on the block's last address but one says that it is taken: the kernel lets it go. */
const TAKEN_PORT = 19_999;
const FIRST_UDP_PORT = 20_000;
const UDP_PORTS = 48;

/** The address of a host in one of the block's 256 networks. */
export function loopback(network: number, host: number): string {
  return `${networkOf(network)}.${byte(host)}`;
}

/** The first three numbers of the addresses of a network, as programs take them. */
export function networkOf(network: number): string {
  return `127.${BLOCK}.${byte(network)}`;
}

/**
 * A UDP port that other runs do not use: for where they might meet all the same, as on ::1. It is
 * none that the system gives away (ip_local_port_range begins above, unless someone has moved it).
 * @param index from 0 to 47
 */
export function testPort(index: number): number {
  if (!Number.isInteger(index) || index < 0 || index >= UDP_PORTS) {
    throw new RangeError(`port ${index} of a run; it has ${UDP_PORTS}, from 0`);
  }
  return FIRST_UDP_PORT + BLOCK * UDP_PORTS + index;
}

/** What a program says, with the addresses as those of block 0: what patterns of tests are of. */
export function inBlock0(text: string): string {
  return text.replaceAll(`127.${BLOCK}.`, '127.0.');
}

function byte(number: number): number {
  if (Number.isInteger(number) && number >= 0 && number <= 255) return number;
  throw new RangeError(`${number} is no part of an IPv4 address`);
}

const holders: Socket[] = [];

/** The first free block from one on that is seldom the one of the run before. */
export function takeBlock(first: number): number {
  for (let tried = 0; tried < BLOCKS; tried++) {
    const block = 1 + ((first + tried) % BLOCKS);
    const socket = holderOf(block);
    if (socket === undefined) continue;
    holders.push(socket);
    return block;
  }
  throw new Error(`all ${BLOCKS} blocks of loopback addresses are taken by runs of tests`);
}

/** @returns undefined when another run has the block */
function holderOf(block: number): Socket | undefined {
  // With an address that is looked up at once, the socket is bound at once.
  const socket = createSocket({
    type: 'udp4',
    lookup: (address, _options, found) => found(null, address, 4),
  });
  let failure: NodeJS.ErrnoException | undefined;
  socket.on('error', (error) => (failure = error));
  socket.bind({ port: TAKEN_PORT, address: `127.${block}.255.254`, exclusive: true });
  if (failure === undefined && socket.address().port === TAKEN_PORT) return socket.unref();
  socket.close();
  if (failure === undefined || failure.code === 'EADDRINUSE') return undefined;
  throw failure;
}

function ownBlock(): number {
  const given = Number(env[VARIABLE]);
  if (Number.isInteger(given) && given >= 1 && given <= BLOCKS) return given;
  const block = takeBlock(pid);
  env[VARIABLE] = String(block);
  return block;
}

const BLOCK = ownBlock();
