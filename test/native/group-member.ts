/**
 * A process beside the one of group-sockets.test.ts:
 *
 *   group-member.js hold <name>               takes descriptors at an abstract name, until killed
 *   group-member.js bind <address> <udpPort>  says what binding into the group there gives
 */
import { gidFromIp } from '../../core/spi/index.js';
import { nativeAddon } from './addon.js';

const [, , mode, where = '', udpPort] = process.argv;

function hold(): void {
  const socket = nativeAddon().connectUnix(where);
  socket.watch(() => {
    const came = socket.take();
    if (came) process.stdout.write(`${came.descriptors.length}\n`);
  });
  setInterval(() => socket, 1_000_000);
}

function bind(): void {
  try {
    nativeAddon().bindGroupSocket(gidFromIp(where), 0, Number(udpPort));
    process.stdout.write('bound\n');
  } catch (error) {
    process.stdout.write(`${(error as NodeJS.ErrnoException).code ?? ''}\n`);
  }
}

if (mode === 'hold') hold();
else bind();
