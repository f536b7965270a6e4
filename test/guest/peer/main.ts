/**
 * Our end of the cases that no sample fits: a program of its own, as a case may kill it.
 *
 *     connect <ip> <port> <count>      prints how each of the connects ended
 *     reject <ip> <port> <text>        rejects one request, with the text as private data
 *     idle <ip>                        opens the adapter; nobody listens
 *     ucmatose-server <ip> <connections> <messages> <bytes>
 *     ucmatose-client <ip> <connections> <messages> <bytes>
 *     rping-server <ip> <port>         serves one rping to its end
 *     rping-in-sequence <ip> <count> [port]   one connection after the other, one ping on each
 *     rping-until-end <ip> <bytes>     pings until the connection ends, and prints how it did
 *     memory-client <ip> <bytes>...    reads and writes the memory that memory-peer serves
 *     memory-server <ip> <bytes>       serves memory to memory-peer
 *     transfer-client <ip> <bytes> <rounds> <ack timeout> <retry count>
 *     transfer-server <ip> <bytes> <rounds> <ack timeout> <retry count>
 *     connect-all <ip> <count> [each | <leave after ms>]   connections without data, to cm-peer
 *     connect-in-sequence <ip> <count>
 *     connect-text <ip> <port>         prints the private data of the answer
 *     connect-again <ip>               again when the peer says that the connection is stale
 *     hold <ip> <count> [each | <leave after ms>]
 *     accept-in-sequence <ip> <count>
 *     watch-connect <ip> [keep-alive ms]   one connection without data until SIGUSR2, to
 *     watch-accept <ip> [keep-alive ms]
 *     flood <ip>                       writes until the connection ends, and prints its last event
 *
 * In front of the verb, --exact-icrc: the ICRC is checked with the identification as it was;
 * --twin: node GUID and queue pair numbers are those of every other twin; --shared: other programs
 * have the address too; --verbs: over the verbs provider, in a guest.
 */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';

import { type Cr, type Ia, openIa } from 'dapl';
import { FlowError } from 'dapl/flow';
import { softroce } from 'dapl/providers/softroce';
import { verbs } from 'dapl/providers/verbs';

import { patience } from '../../support/patience.js';
import { SystemRandom } from '../../../providers/host/index.js';
import { runClient } from '../../../samples/rping/client.js';
import type { Options } from '../../../samples/rping/options.js';
import { RPING_PORT, SIZE_BYTES } from '../../../samples/rping/protocol.js';
import { runServer } from '../../../samples/rping/server.js';
import { CORNER_CLIENTS, CORNER_SERVERS } from './corners.js';
import { Exchange, type ExchangeOptions, textOf } from './exchange.js';
import { driveMemory, floodMemory, serveMemory } from './memory.js';
import { driveTransfer, serveTransfer, type TransferOptions } from './transfer.js';

const UCMATOSE_PORT = 7471;
const MEMORY_PORT = 7500;
const TRANSFER_PORT = 7700;
const FOR_EVER_MS = 1 << 30;

type Verb = (ia: Ia, address: string, args: readonly string[]) => Promise<void>;

const CLIENTS: Readonly<Record<string, Verb>> = {
  connect,
  flood: (ia, address) => floodMemory(ia, address, MEMORY_PORT),
  'memory-client': (ia, address, sizes) => driveMemory(ia, address, MEMORY_PORT, sizes.map(Number)),
  ...CORNER_CLIENTS,
  'transfer-client': (ia, address, args) =>
    driveTransfer(ia, address, TRANSFER_PORT, transferOptions(args)),
  'ucmatose-client': ucmatoseClient,
  'rping-in-sequence': rpingInSequence,
  'rping-until-end': rpingUntilEnd,
};

const SERVERS: Readonly<Record<string, Verb>> = {
  idle,
  'memory-server': (ia, _, [length]) => serveMemory(ia, MEMORY_PORT, Number(length)),
  reject,
  'rping-server': (ia, address, [port]) =>
    runServer(ia, {
      ...pings(address, 0, SIZE_BYTES.max),
      role: 'server',
      port: Number(port),
      verbose: true,
    }),
  ...CORNER_SERVERS,
  'transfer-server': (ia, _, args) => serveTransfer(ia, TRANSFER_PORT, transferOptions(args)),
  'ucmatose-server': ucmatoseServer,
};

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

async function connect(ia: Ia, address: string, args: readonly string[]): Promise<void> {
  const connections = ia.createEvd({ qlen: 64 });
  const connQual = Number(args[0]);
  const count = Number(args[1]);
  for (let index = 0; index < count; index++) {
    const ep = ia.createEndpoint({ pz: ia.createPz(), connectEvd: connections });
    ep.connect({ address, connQual, timeoutMs: patience(10_000) });
  }
  for (let left = count; left > 0; left--) {
    const { event } = await connections.wait({ timeoutMs: patience(20_000) });
    if (event.type === 'connection') print(textOf(event));
  }
}

async function reject(ia: Ia, _: string, args: readonly string[]): Promise<void> {
  const [cr] = await requests(ia, Number(args[0]), 1);
  cr?.reject({ privateData: Buffer.from(args[1] ?? '') });
  print('rejected');
}

async function idle(): Promise<void> {
  print('listening');
  setTimeout(() => undefined, FOR_EVER_MS);
  await new Promise<never>(() => undefined);
}

async function ucmatoseServer(ia: Ia, _: string, args: readonly string[]): Promise<void> {
  const options = exchangeOptions(args);
  const exchange = new Exchange(ia, options);
  const crs = await requests(ia, UCMATOSE_PORT, options.connections, (cr, index) => {
    exchange.accept(index, cr);
  });
  await exchange.established();
  await exchange.send();
  await exchange.receive();
  exchange.assertEchoed();
  exchange.disconnect();
  await exchange.disconnected();
  print(`served ${crs.length}`);
}

async function ucmatoseClient(ia: Ia, address: string, args: readonly string[]): Promise<void> {
  const options = exchangeOptions(args);
  const exchange = new Exchange(ia, options);
  exchange.connect(address, UCMATOSE_PORT);
  await exchange.established();
  await exchange.receive();
  await exchange.send();
  await exchange.disconnected();
  print(`connected ${options.connections}`);
}

async function rpingInSequence(ia: Ia, address: string, args: readonly string[]): Promise<void> {
  const [count = 0, port = RPING_PORT] = args.map(Number);
  const options = { ...pings(address, 1, 1000), port };
  for (let index = 0; index < count; index++) await runClient(ia, options);
  print(`connected ${count}`);
}

async function rpingUntilEnd(ia: Ia, address: string, args: readonly string[]): Promise<void> {
  const start = performance.now();
  print('pinging');
  try {
    await runClient(ia, pings(address, 0, Number(args[0])));
  } catch (error) {
    if (!FlowError.isFlowError(error)) throw error;
    const { message, flightRecord } = error;
    const afterMs = (performance.now() - start).toFixed(0);
    print([`after ${afterMs} ms: ${message}`, ...flightRecord].join('\n  '));
  }
}

function pings(address: string, count: number, sizeBytes: number): Options {
  return {
    role: 'client',
    address,
    source: undefined,
    port: RPING_PORT,
    count,
    sizeBytes,
    verbose: false,
    validate: true,
  };
}

function exchangeOptions([connections, messages, size]: readonly string[]): ExchangeOptions {
  return {
    connections: Number(connections),
    messages: Number(messages),
    sizeBytes: Number(size),
  };
}

function transferOptions(args: readonly string[]): TransferOptions {
  const [lengthBytes = 0, rounds = 0, ackTimeout = 0, retryCount = 0] = args.map(Number);
  return { lengthBytes, rounds, ackTimeout, retryCount };
}

/** The first `count` connection requests to a port. */
async function requests(
  ia: Ia,
  connQual: number,
  count: number,
  onRequest: (cr: Cr, index: number) => void = () => undefined,
): Promise<Cr[]> {
  const evd = ia.createEvd({ qlen: 2 * count });
  const psp = ia.createPsp({ connQual, evd });
  print('listening');
  const crs: Cr[] = [];
  while (crs.length < count) {
    const { event } = await evd.wait();
    if (event.type !== 'connection-request') throw new Error(`a ${event.type} event at the psp`);
    onRequest(event.cr, crs.length);
    crs.push(event.cr);
  }
  psp.free();
  return crs;
}

/** The address that the system would send from. */
async function sourceTowards(address: string): Promise<string> {
  const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4');
  socket.connect(1, address);
  await once(socket, 'connect');
  const source = socket.address().address;
  socket.close();
  return source;
}

/** Opens the device with numbers that a process after this one gets again. */
async function asTwin<T>(open: () => Promise<T>): Promise<T> {
  const u32 = Object.getOwnPropertyDescriptor(SystemRandom.prototype, 'u32') ?? {};
  let state = 1;
  SystemRandom.prototype.u32 = () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0);
  try {
    return await open();
  } finally {
    Object.defineProperty(SystemRandom.prototype, 'u32', u32);
  }
}

const words = process.argv.slice(2);
const flags = words.filter((word) => word.startsWith('--'));
const [name = '', address = '', ...args] = words.slice(flags.length);
const verb = SERVERS[name] ?? CLIENTS[name];
if (verb === undefined) throw new Error(`unknown verb ${name}`);
const own = name in SERVERS ? address : await sourceTowards(address);
const icrcCheck = flags.includes('--exact-icrc') ? 'exact' : 'recovered';
const provider = flags.includes('--verbs')
  ? verbs({ address: own })
  : softroce({ addresses: [own], icrcCheck, shared: flags.includes('--shared') });
const open = (): Promise<Ia> => openIa(provider);
const ia = await (flags.includes('--twin') ? asTwin(open) : open());
try {
  await verb(ia, address, args);
} catch (error) {
  process.stderr.write(`peer: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
} finally {
  await ia.close();
}
