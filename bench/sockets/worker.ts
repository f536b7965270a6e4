/** A process of the benchmark of sockets: one side of every cell of a kind. */
import type { Answer, Call } from '../compare/end.js';
import { isRdmaKind, NodeSockets, RdmaSockets, type SocketKind } from './kinds.js';
import { SocketsEnd } from './sockets-end.js';

const [kind = '', local = '', remote = ''] = process.argv.slice(2);

function open(): Promise<SocketKind> | SocketKind {
  if (isRdmaKind(kind)) return RdmaSockets.open(kind, local, remote);
  return new NodeSockets(kind === 'node-tcp' ? 'tcp' : 'unix', local, remote);
}

function answer(value: Answer['value'], error?: unknown): void {
  const { user, system } = process.cpuUsage();
  const message: Answer = {
    cpuSeconds: (user + system) / 1e6,
    ...(value !== undefined && { value }),
    ...(error !== undefined && { error: error instanceof Error ? error.message : 'no reason' }),
  };
  // The benchmark may have gone meanwhile.
  process.send?.(message, undefined, undefined, () => undefined);
}

async function perform(end: SocketsEnd, request: Call): Promise<Answer['value']> {
  switch (request.call) {
    case 'listen':
      return end.listen(request.cell);
    case 'run':
      return end.run(request.cell, request.target, request.seconds);
    case 'counters':
      return end.counters();
    case 'stop':
      await end.stop();
      return undefined;
    case 'close':
      await end.close();
      process.disconnect();
      return undefined;
    default:
      return undefined;
  }
}

try {
  const end = new SocketsEnd(await open());
  process.on('message', (request: Call) => {
    perform(end, request).then(
      (value) => process.connected && answer(value),
      (error: unknown) => answer(undefined, error),
    );
  });
  process.on('disconnect', () => process.exit(0));
  answer(undefined);
} catch (error) {
  answer(undefined, error);
}
