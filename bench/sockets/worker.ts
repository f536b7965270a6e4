/** A process of the benchmark of sockets: one side of every cell of a kind. */
import type { Call } from '../compare/end.js';
import { serveCalls } from '../compare/serve.js';
import { isRdmaKind, NodeSockets, RdmaSockets, type SocketKind } from './kinds.js';
import { SocketsEnd } from './sockets-end.js';

const [kind = '', local = '', remote = ''] = process.argv.slice(2);

function open(): Promise<SocketKind> | SocketKind {
  if (isRdmaKind(kind)) return RdmaSockets.open(kind, local, remote);
  return new NodeSockets(kind === 'node-tcp' ? 'tcp' : 'unix', local, remote);
}

async function perform(end: SocketsEnd, request: Call): Promise<unknown> {
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

await serveCalls<Call>(async () => {
  const end = new SocketsEnd(await open());
  return (request) => perform(end, request);
});
