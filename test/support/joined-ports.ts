/** Ports of this process that share memory: what a meeting of two devices comes to. */
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { PEER_AGREEMENT, softwareGuid } from '../../core/spi/internal/index.js';
import type { UnixSocket, UnixSockets } from '../../providers/host/unix-sockets.js';
import { loadNativeAddon } from '../../providers/softroce/port/native-addon.js';
import type { SocketPort } from '../../providers/softroce/port/port-options.js';
import type { ChannelPort } from '../../providers/softroce/shm/channel-port.js';

let names = 0;

/** Two ends of a socket that hands descriptors over: what arrives is another one of the same. */
export function socketPair(): [UnixSocket, UnixSocket] {
  const sockets = loadNativeAddon() as (UnixSockets & object) | undefined;
  assert.ok(sockets, 'the addon is not there');
  const name = `dapl-test/${String(process.pid)}/${String(names++)}`;
  const listener = sockets.listenUnix(name, 1);
  const near = sockets.connectUnix(name);
  const far = listener.accept();
  listener.close();
  assert.ok(far);
  return [near, far];
}

/** Copies of descriptors, for whom takes them. */
export function copies(descriptors: readonly number[]): readonly number[] {
  const [near, far] = socketPair();
  try {
    near.send(Uint8Array.of(1), descriptors);
    const message = far.receive();
    assert.ok(message);
    return message.descriptors;
  } finally {
    near.close();
    far.close();
  }
}

export function channelsOf(port: SocketPort): ChannelPort {
  assert.ok(port.channels, 'the port has no channels');
  return port.channels;
}

/** Lets two ports meet as devices do, by sockets of this host. */
export async function meet(a: SocketPort, b: SocketPort, udpPort: number): Promise<void> {
  const [guidA, guidB] = [a, b].map(() => softwareGuid(PEER_AGREEMENT.CHANNEL, randomInt(2 ** 32)));
  assert.ok(a.listen?.(guidA!) === true && b.listen?.(guidB!) === true);
  const met = await new Promise((resolve) =>
    a.meet?.({ guid: guidB!, gid: b.gids[0]!, udpPort }, resolve),
  );
  assert.equal(met, true, 'they have not met');
}

/**
 * Joins two ports. A port reaches others at its own UDP port, so each is told that the other one
 * has the same, which two at one address cannot have.
 * @returns the number of the channel at each
 */
export function joinPorts(
  a: SocketPort,
  b: SocketPort,
  portOfA: number,
  portOfB = portOfA,
): [number, number] {
  const [nearer, farther] = [channelsOf(a).offer(), channelsOf(b).offer()];
  const [memoryA = -1, wakeA = -1] = copies([nearer.memoryFd, nearer.wakeFd]);
  const [memoryB = -1, wakeB = -1] = copies([farther.memoryFd, farther.wakeFd]);
  channelsOf(b).attach(farther.channel, {
    ...{ ...nearer, memoryFd: memoryA, wakeFd: wakeA },
    ...{ gids: a.gids, udpPort: portOfB, slot: undefined },
  });
  channelsOf(a).attach(nearer.channel, {
    ...{ ...farther, memoryFd: memoryB, wakeFd: wakeB },
    ...{ gids: b.gids, udpPort: portOfA, slot: undefined },
  });
  return [nearer.channel, farther.channel];
}
