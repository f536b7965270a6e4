/**
 * What a process of another user could try with the socket of an XRC domain's host, of which it
 * knows the name; it does what each line of its input says:
 *
 *     listen NAME    takes the name, before a host does
 *     call NAME      asks the host to open the domain; answers what it says, `end` for no more
 */
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { loadNativeAddon } from '../../providers/softroce/port/native-addon.js';
import { encode } from '../../providers/softroce/xrc-host/messages.js';

const BACKLOG = 4;
const LOOK_MS = 5;
const addon = loadNativeAddon()!;

async function call(name: string): Promise<string> {
  const socket = addon.connectUnix(name);
  try {
    socket.send(encode({ op: 'open', mode: 'create', id: 1 }), []);
  } catch (error) {
    if ((error as { code?: string }).code === 'EPIPE') return 'end';
    throw error;
  }
  for (;;) {
    const message = socket.receive();
    if (message === null) return 'end';
    if (message !== undefined) return new TextDecoder().decode(message.bytes);
    await sleep(LOOK_MS);
  }
}

const listeners: unknown[] = [];
for await (const line of createInterface(process.stdin)) {
  const [command, name = ''] = line.split(' ');
  if (command === 'call') {
    console.log(await call(name));
  } else {
    listeners.push(addon.listenUnix(name, BACKLOG));
    console.log('listening');
  }
}
