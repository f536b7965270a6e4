/**
 * A program that shares an address with others, and does what each line of its input says:
 *
 *     open ADDRESS PORT WORDS the device; `alone`: not shared, `shm`: with channels
 *     listen PORT             echoes what comes, on every connection
 *     connect ADDRESS PORT    a connection that stays; answers its number
 *     echo NUMBER COUNT       sends so many messages, and takes each back
 *     ended NUMBER            waits for the connection's end
 *     counters                of the device
 *     descriptors             how many the process has open
 *     close                   the device
 */
import { createInterface } from 'node:readline';
import { readdirSync } from 'node:fs';
import { type Connection, connect, listen } from '../../core/flow/index.js';
import { type Ia, openIa } from '../../core/index.js';
import { softroce } from '../../providers/softroce/index.js';

const RETRIES = { transport: { ackTimeout: 14, retryCount: 7, rnrRetryCount: 7 } };
let ia: Ia | undefined;
const connections: Connection[] = [];

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

async function echo(connection: Connection, count: number): Promise<string> {
  for (let i = 0; i < count; i++) {
    const bytes = Buffer.from(`${process.pid} ${i}`);
    await connection.send(bytes);
    const message = await connection.receive();
    if (Buffer.compare(Buffer.from(message.bytes), bytes) !== 0) return `message ${i} differs`;
  }
  return 'echoed';
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
        }),
      );
      return 'open';
    case 'listen':
      await serve(Number(first));
      return 'listening';
    case 'connect':
      return connections.push(
        await connect(ia!, {
          address: first,
          port: Number(second),
          timeoutMs: 60_000,
          keepAliveMs: 0,
          attributes: RETRIES,
        }),
      );
    case 'echo':
      return echo(connections[Number(first) - 1]!, Number(second));
    case 'ended':
      return ended(connections[Number(first) - 1]!);
    case 'counters':
      return JSON.stringify(ia!.deviceCounters());
    case 'descriptors':
      return readdirSync('/proc/self/fd').length;
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
