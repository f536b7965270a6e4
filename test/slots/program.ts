/**
 * A program that shares an address with others, and does what each line of its input says:
 *
 *     open ADDRESS PORT WORDS the device; `alone`: not shared, `shm`: with channels,
 *                             `exact`: with the exact ICRC check
 *     listen PORT             echoes what comes, on every connection
 *     connect ADDRESS PORT    a connection that stays; answers its number
 *     echo NUMBER COUNT BYTES sends so many messages, and takes each back; BYTES may be absent
 *     ended NUMBER            waits for the connection's end
 *     flow NUMBER             sends and takes back on the connection without an end
 *     flowed                  how many have come back by then
 *     rest                    ends that
 *     visit ADDRESS PORT      a connection for a few messages
 *     die STEP NTH WHEN       is killed then (deadly-addon.ts); before it opens
 *     slow MS                 lets others be broker for so long; before it opens
 *     counters                of the device
 *     descriptors             how many the process has open
 *     presides                whether it is broker
 *     usage                   descriptors and memory of the process, as JSON (usage.ts)
 *     table                   what the shared table says, as JSON (usage.ts)
 *     scribble                overwrites the shared table
 *     close                   the device
 */
import { createInterface } from 'node:readline';
import { readdirSync } from 'node:fs';
import { type Connection, connect, listen } from '../../core/flow/index.js';
import { type Ia, openIa } from '../../core/index.js';
import { softroce } from '../../providers/softroce/index.js';
import { DeadlyAddon, deathOf } from './deadly-addon.js';
import { tableOf, usageOf } from './usage.js';

/** On a busy machine a program may not run for a second: that is no end of a connection. */
const RETRIES = { transport: { ackTimeout: 17, retryCount: 7, rnrRetryCount: 7 } };
const FLOW_EACH_MS = 2;
let ia: Ia | undefined;
const connections: Connection[] = [];
let deadly: DeadlyAddon | undefined;
let flowed: number | string = 0;
let isResting = false;

async function echoAll(connection: Connection): Promise<void> {
  try {
    for await (const message of connection) await connection.send(message.bytes);
  } catch {
    // The peer's process has been killed: that is what the test is about.
  }
}

async function serve(port: number): Promise<void> {
  const listener = await listen(ia!, { port, keepAliveMs: 0, attributes: RETRIES });
  void (async (): Promise<void> => {
    for await (const connection of listener) void echoAll(connection);
  })().catch(() => undefined);
}

async function echo(connection: Connection, count: number, lengthBytes = 0): Promise<string> {
  for (let i = 0; i < count; i++) {
    const bytes = Buffer.from(`${process.pid} ${i}`.padEnd(lengthBytes, '.'));
    await connection.send(bytes);
    const message = await connection.receive();
    if (Buffer.compare(Buffer.from(message.bytes), bytes) !== 0) return `message ${i} differs`;
  }
  return 'echoed';
}

async function flow(connection: Connection): Promise<void> {
  isResting = false;
  for (let count = 1; !isResting; count++) {
    const said = await echo(connection, 1).catch((error: Error) => error.message);
    flowed = said === 'echoed' ? count : said;
    if (said !== 'echoed') return;
    await new Promise((resolve) => setTimeout(resolve, FLOW_EACH_MS));
  }
}

function dial(address: string, port: string): Promise<Connection> {
  return connect(ia!, {
    address,
    port: Number(port),
    timeoutMs: 60_000,
    keepAliveMs: 0,
    attributes: RETRIES,
  });
}

async function visit(address: string, port: string): Promise<string> {
  const connection = await dial(address, port);
  const said = await echo(connection, 3);
  await connection.close();
  return said;
}

async function ended(connection: Connection): Promise<string> {
  try {
    while ((await connection.receive()) !== undefined);
    return 'closed';
  } catch (error) {
    return (error as { code: string }).code;
  }
}

async function answer(line: string): Promise<string | number> {
  const [command, first = '', second = '', ...options] = line.split(' ');
  switch (command) {
    case 'open':
      ia = await openIa(
        softroce({
          addresses: first.split(','),
          udpPort: Number(second),
          shared: !options.includes('alone'),
          shm: options.includes('shm'),
          ...(options.includes('exact') && { icrcCheck: 'exact' as const }),
        }),
      );
      return 'open';
    case 'listen':
      await serve(Number(first));
      return 'listening';
    case 'connect':
      return connections.push(await dial(first, second));
    case 'echo':
      return echo(connections[Number(first) - 1]!, Number(second), Number(options[0] ?? 0));
    case 'ended':
      return ended(connections[Number(first) - 1]!);
    case 'flow':
      void flow(connections[Number(first) - 1]!);
      return 'flows';
    case 'rest':
      isResting = true;
      return 'rests';
    case 'flowed':
      return flowed;
    case 'visit':
      return visit(first, second);
    case 'die':
      deadly = new DeadlyAddon(deathOf([first, second, ...options]));
      return 'will';
    case 'slow':
      deadly = new DeadlyAddon();
      deadly.beSlow(Number(first));
      return 'is';
    case 'counters':
      return JSON.stringify(ia!.deviceCounters());
    case 'descriptors':
      return readdirSync('/proc/self/fd').length;
    case 'presides':
      return String(deadly!.isBroker);
    case 'usage':
      return JSON.stringify(await usageOf());
    case 'table':
      return JSON.stringify(tableOf(deadly!.table!));
    case 'scribble':
      new Uint8Array(deadly!.table!).fill(0xa5);
      return 'scribbled';
    case 'close':
      await ia?.close();
      return 'closed';
    default:
      return process.pid;
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
