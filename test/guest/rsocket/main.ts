/**
 * Our end of the cases of rsockets, a program of its own: softroce on <ip>.
 *
 *     rstream-server <ip> <bytes> <transfers> <rounds>
 *     rstream-client <ip> <peer> <bytes> <transfers> <rounds>
 *     riostream-server, riostream-client: the same
 *     rcopy-server <ip>                      prints name and SHA-256 of one file
 *     rcopy-client <ip> <peer> <bytes> <path>   prints the SHA-256 of what it copied
 *     http-server <ip> <port>                GET /<bytes>, POST
 *     http-client <ip> <peer> <port> <path> <parallel>   prints the SHA-256 of each body
 *     sink <ip> <port> [bytes]               prints the SHA-256 of so many, or of all that come
 *     source <ip> <peer> <port> <bytes>      sends, waits for the peer's end, and prints how it was
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import * as http from 'node:http';

import { openIa } from 'dapl';
import { softroce } from 'dapl/providers/softroce';

import {
  rsocket,
  type RsocketProtocol,
  type RsocketStream,
} from '../../../samples/ulp/rsocket/index.js';
import {
  createConnection,
  createServer,
  RdmaAgent,
  type RdmaSocket,
} from '../../../samples/ulp/socket/index.js';
import { patternOf } from './pattern.js';
import { copyTo, RCOPY_PORT, serveRcopy } from './rcopy.js';
import { leave, readBytes } from './reader.js';
import { runRiostream } from './riostream.js';
import { RSTREAM_PORT, runRstream } from './rstream.js';

const BACKLOG = 64;

interface End {
  readonly protocol: RsocketProtocol;
  readonly args: readonly string[];
}

type Verb = (end: End) => Promise<void>;

const VERBS: Readonly<Record<string, Verb>> = {
  'rstream-server': async (end) => {
    const socket = await acceptOne(end, RSTREAM_PORT);
    await runRstream(socket, sizesOf(end.args), false);
    print('done');
  },
  'rstream-client': async (end) => {
    const [peer, ...sizes] = end.args;
    const socket = await dial(end, peer, RSTREAM_PORT);
    await runRstream(socket, sizesOf(sizes), true);
    print('done');
  },
  'riostream-server': async (end) => {
    const stream = await acceptStream(end, RSTREAM_PORT);
    await runRiostream(stream, sizesOf(end.args), false);
    print('done');
  },
  'riostream-client': async ({ protocol, args: [peer, ...sizes] }) => {
    const stream = await protocol.connect({ address: peer ?? '', port: RSTREAM_PORT });
    await runRiostream(stream, sizesOf(sizes), true);
    print('done');
  },
  'rcopy-server': async (end) => print(await serveRcopy(await acceptOne(end, RCOPY_PORT))),
  'rcopy-client': async (end) => {
    const [peer, bytes, path = ''] = end.args;
    const file = patternOf(Number(bytes));
    await copyTo(await dial(end, peer, RCOPY_PORT), file, path);
    print(createHash('sha256').update(file).digest('hex'));
  },
  'http-server': serveHttp,
  'http-client': fetchAll,
  sink: async (end) => {
    const [port, count] = end.args;
    const socket = await acceptOne(end, Number(port));
    const source = count === undefined ? socket : [await readBytes(socket, Number(count))];
    const { bytes, digest } = await digestOf(source);
    await leave(socket);
    print(`${bytes} bytes, ${digest}`);
  },
  source: async (end) => {
    const [peer, port, bytes] = end.args;
    const socket = await dial(end, peer, Number(port));
    socket.end(patternOf(Number(bytes)));
    try {
      // A peer may end its writing first: that must not destroy what is being sent.
      await digestOf(socket.iterator({ destroyOnReturn: false }));
      if (!socket.closed) await once(socket, 'close');
      print('done');
    } catch (error) {
      print((error as Error).message);
    }
  },
};

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function sizesOf(args: readonly string[]): {
  readonly sizeBytes: number;
  readonly transfers: number;
  readonly rounds: number;
} {
  const [sizeBytes = 0, transfers = 0, rounds = 0] = args.map(Number);
  return { sizeBytes, transfers, rounds };
}

async function acceptOne({ protocol }: End, port: number): Promise<RdmaSocket> {
  const server = createServer({ protocol });
  server.listen(port);
  await once(server, 'listening');
  print('listening');
  const [socket] = (await once(server, 'connection')) as [RdmaSocket];
  server.close();
  return socket;
}

function acceptStream({ protocol }: End, port: number): Promise<RsocketStream> {
  return new Promise((resolve, reject) => {
    const listening = protocol.listen({
      ...{ port, backlog: BACKLOG },
      admit: () => true,
      onStream: (stream) => {
        void listening.then((listener) => listener.close());
        resolve(stream);
      },
      onError: reject,
    });
    listening.then(() => print('listening'), reject);
  });
}

async function dial({ protocol }: End, host = '', port: number): Promise<RdmaSocket> {
  const socket = createConnection({ protocol, host, port });
  await once(socket, 'connect');
  return socket;
}

async function digestOf(
  stream: AsyncIterable<Buffer> | Iterable<Buffer>,
): Promise<{ bytes: number; digest: string }> {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const piece of stream) {
    hash.update(piece);
    bytes += piece.length;
  }
  return { bytes, digest: hash.digest('hex') };
}

async function serveHttp({ protocol, args: [port] }: End): Promise<void> {
  const web = http.createServer((request, response) => {
    const bytes = Number(request.url?.slice(1) ?? 0);
    request.resume().on('end', () => {
      response.writeHead(200, { 'content-length': bytes });
      response.end(patternOf(bytes));
    });
  });
  const server = createServer({ protocol }, (socket) => web.emit('connection', socket));
  server.listen(Number(port));
  await once(server, 'listening');
  print('listening');
  await once(process, 'SIGTERM');
  web.closeAllConnections();
  server.close();
}

async function fetchAll({ protocol, args }: End): Promise<void> {
  const [host, port, path, parallel] = args;
  const agent = new RdmaAgent(protocol);
  const fetchOne = async (): Promise<void> => {
    const request = http.get({ agent, host, port, path });
    const [response] = (await once(request, 'response')) as [http.IncomingMessage];
    const { bytes, digest } = await digestOf(response);
    print(`${response.statusCode} ${bytes} bytes, ${digest}`);
  };
  await Promise.all(Array.from({ length: Number(parallel) }, fetchOne));
  agent.destroy();
}

const [verb = '', address = '', ...args] = process.argv.slice(2);
const run = VERBS[verb];
if (run === undefined) throw new Error(`unknown verb ${verb}: ${Object.keys(VERBS).join(', ')}`);
const ia = await openIa(softroce({ addresses: [address] }));
try {
  const protocol = rsocket(ia, { iomapSlots: verb.startsWith('rio') ? 1 : 0 });
  await run({ protocol, args });
} finally {
  await ia.close();
}
