/** Relays between a client and a server of TCP: one of Node, and `dapl forward`. */
import { connect, createServer } from 'node:net';

/** Endpoints of `dapl forward`: the one to listen on, and the one to connect to. */
export interface Relay {
  readonly listen: string;
  readonly to: string;
  /** The relay's own address. */
  readonly from: string;
}

export function nodeRelay({ listen, to }: Relay): Promise<void> {
  const [from, target] = [listen, to].map((end) => {
    const [, host = '', port = ''] = end.split(':');
    return { host, port: Number(port) };
  });
  const server = createServer({ noDelay: true }, (socket) => {
    const other = connect({ ...target!, noDelay: true });
    socket.pipe(other).pipe(socket);
    for (const each of [socket, other]) each.on('error', () => undefined);
  });
  return new Promise((resolve, reject) => {
    server.on('error', reject).listen(from, resolve);
  });
}

/** The command itself, in this process, which is the relay's own. */
export function forwardRelay({ listen, to, from }: Relay): Promise<void> {
  const ends = ['--listen', listen, '--to', to, '--from', from];
  process.argv = [process.execPath, 'dapl', 'forward', ...ends];
  return new Promise((resolve, reject) => {
    const said = process.stderr.write.bind(process.stderr);
    process.stderr.write = (text: string | Uint8Array): boolean => {
      if (String(text).startsWith('listening')) resolve();
      else reject(new Error(`dapl forward: ${String(text).trim()}`));
      return said('');
    };
    import('../../plugins/cli/main.js').catch(reject);
  });
}
