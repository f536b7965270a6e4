/** A process of the benchmark of many endpoints: does what it is told by messages. */
import type { Answer, Call, Memory } from './protocol.js';
import { Side } from './side.js';

const [local = '', remote = '', most = '1', role = ''] = process.argv.slice(2);

let serving: Promise<void> | undefined;
let over = false;

function answer(value: Answer['value'], error?: unknown): void {
  const { user, system } = process.cpuUsage();
  const message: Answer = {
    cpuSeconds: (user + system) / 1e6,
    ...(value !== undefined && { value }),
    ...(error !== undefined && { error: error instanceof Error ? error.message : 'no reason' }),
  };
  process.send?.(message);
}

/** @throws Error unless the process was started with --expose-gc */
function memory(): Memory {
  if (!globalThis.gc) throw new Error('the collector is not exposed');
  for (let i = 0; i < 3; i++) globalThis.gc();
  const { heapUsed, arrayBuffers, external, rss } = process.memoryUsage();
  return { heap: heapUsed, arrayBuffers, external: external - arrayBuffers, resident: rss };
}

async function perform(side: Side, request: Call): Promise<Answer['value']> {
  switch (request.call) {
    case 'create':
      return side.create(request.shape, request.count);
    case 'listen':
      side.listen();
      return undefined;
    case 'connect':
      return side.connect();
    case 'regions':
      side.register(request.count);
      return undefined;
    case 'memory':
      return memory();
    case 'send':
      return send(side, request);
    case 'disconnect':
      return side.disconnect();
    case 'disconnected':
      await side.disconnected();
      return undefined;
    case 'free':
      return side.free();
    case 'close':
      await side.close();
      process.disconnect();
      return undefined;
  }
}

/** The side that listens serves until it is told so again. */
async function send(side: Side, call: Extract<Call, { call: 'send' }>): Promise<Answer['value']> {
  if (role === 'active') return side.send(call.spread, call.inFlight, call.seconds);
  over = serving !== undefined;
  if (over) await serving;
  serving = over ? undefined : side.serve(() => over);
  return undefined;
}

try {
  const side = await Side.open(local, remote, Number(most));
  process.on('message', (request: Call) => {
    perform(side, request).then(
      (value) => process.connected && answer(value),
      (error: unknown) => answer(undefined, error),
    );
  });
  // The benchmark has gone: so do we, whatever is under way.
  process.on('disconnect', () => process.exit(0));
  answer(undefined);
} catch (error) {
  answer(undefined, error);
}
