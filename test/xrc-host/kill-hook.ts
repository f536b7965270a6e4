/**
 * Loaded into programs (`node --import`) that are to be killed at a message between an opener and
 * the host of an XRC domain. `XRC_KILL_DIRECTORY` has a file `host` or `opener` with the number of
 * the message, from when the file is there, and whether before or after it: `5 after`.
 */
import { readFileSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { UnixListener, UnixSocket } from '../../providers/host/index.js';
import { loadNativeAddon } from '../../providers/softroce/port/native-addon.js';

const { XRC_KILL_DIRECTORY: directory = '', XRC_KILL_ROLE: asked = '' } = process.env;
const role = process.argv[1]?.endsWith('xrc-host-program.js') ? 'host' : asked;
const order = join(directory, role);
let message = 0;

function meet(when: 'before' | 'after'): void {
  if (role === '') return;
  let number: string | undefined;
  let due: string | undefined;
  try {
    [number, due] = readFileSync(order, 'utf8').split(' ');
  } catch {
    message = 0;
    return;
  }
  if (when === 'before') message++;
  if (message < Number(number) || when !== due) return;
  unlinkSync(order);
  process.kill(process.pid, 'SIGKILL');
}

function counted(socket: UnixSocket): UnixSocket {
  const taken = <T>(one: T): T => {
    if (one !== undefined && one !== null) meet('before');
    if (one !== undefined && one !== null) meet('after');
    return one;
  };
  return {
    send(bytes, descriptors) {
      meet('before');
      const isSent = socket.send(bytes, descriptors);
      meet('after');
      return isSent;
    },
    receive: () => taken(socket.receive()),
    take: () => taken(socket.take()),
    identity: () => socket.identity(),
    watch: (onReadable) => socket.watch(onReadable),
    close: () => socket.close(),
  };
}

const addon = loadNativeAddon()!;
const isHost = (name: string): boolean => name.includes('/xrc/');
const own = { ...addon };
Object.assign(addon, {
  connectUnix: (name: string): UnixSocket => {
    const socket = own.connectUnix(name);
    return isHost(name) ? counted(socket) : socket;
  },
  listenUnix: (name: string, backlog: number): UnixListener => {
    const listener = own.listenUnix(name, backlog);
    if (!isHost(name)) return listener;
    return {
      accept: () => {
        const socket = listener.accept();
        return socket && counted(socket);
      },
      watch: (onReadable) => listener.watch(onReadable),
      close: () => listener.close(),
    };
  },
});
