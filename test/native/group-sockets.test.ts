/** Sockets of a group on the real kernel: places, steering, what is dropped, and who may join. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Worker } from 'node:worker_threads';
import { gidFromIp } from '../../core/spi/index.js';
import { openNativePort } from '../../providers/softroce/port/native-port.js';
import { slotOf, steeringProgram } from '../../providers/shared-address/steering.js';
import { pattern } from '../../plugins/testing/port/harness.js';
import { leaveOut } from '../support/left-out.js';
import { loopback, testPort } from '../support/loopback.js';
import { patience, paused } from '../support/patience.js';
import { nativeAddon } from './addon.js';

const UDP_PORT = testPort(42);
const OTHER_USER = 54_321;
const sibling = (name: string): string => join(import.meta.dirname, name);

/** Sockets and memory: Node.js itself loses files of programs that a thread was just reading. */
function openDescriptors(): number {
  return readdirSync('/proc/self/fd').filter((each) => {
    try {
      return /^(socket:|\/memfd:)/.test(readlinkSync(`/proc/self/fd/${each}`));
    } catch {
      return false;
    }
  }).length;
}

/** Those of a socket, or of a thread, go with one of the next turns of the loop. */
async function closedTo(count: number): Promise<void> {
  const endMs = performance.now() + patience(30_000);
  for (; openDescriptors() > count; await paused(1)) {
    assert.ok(performance.now() < endMs, 'descriptors are left open');
  }
}

/** ldb [5]; ret A: the top byte of the destination QPN. */
const BY_QPN = Uint32Array.of(0x30, 0, 0, 5, 0x16, 0, 0, 0);

const programFor = (home: number): Uint32Array => Uint32Array.from(steeringProgram(home).flat());
const PLACES = 8;

/** A packet, whole or cut short, whose every way to a slot leads to one of the PLACES. */
function somePacket(random: Uint8Array): Uint8Array {
  const dice = (at: number, sides: number): number => (random[at] ?? 0) % sides;
  const packet = random.slice(0, dice(0, 3) > 0 ? 64 : dice(1, 65));
  const set = (at: number, value: number): void => {
    if (at < packet.length) packet[at] = value;
  };
  for (const at of [5, 28, 44, 48]) set(at, dice(at, PLACES));
  if (dice(2, 4) === 0) return packet;
  // To QP1, mostly: of the CM or of another class, request or response, with or without ids.
  set(5, 0);
  set(6, 0);
  set(7, dice(3, 8) === 0 ? 2 : 1);
  set(21, dice(4, 4) === 0 ? random[6]! : 7);
  set(23, dice(8, 2) === 0 ? 0x83 : 3);
  set(36, 0);
  set(37, 0x10 + dice(9, 12));
  if (dice(10, 4) === 0) for (let at = 48; at < 52; at++) set(at, 0);
  return packet;
}

let names = 0;
const newName = (): string => `dapl-test/group/${process.pid}/${names++}`;

/** A group as its first process has it: a socket in each place, and a stranger who sends. */
class Group {
  readonly sockets: number[] = [];
  private readonly sender: ReturnType<typeof createSocket>;

  constructor(
    readonly address: string,
    places: number,
  ) {
    for (let i = 0; i < places; i++) this.sockets.push(this.bind());
    nativeAddon().attachSteering(this.sockets[0] ?? -1, BY_QPN);
    this.sender = createSocket(address.includes(':') ? 'udp6' : 'udp4');
  }

  bind(): number {
    return nativeAddon().bindGroupSocket(gidFromIp(this.address), 0, UDP_PORT);
  }

  async send(slot: number): Promise<void> {
    const packet = new Uint8Array(16);
    packet[5] = slot;
    await this.sendPacket(packet);
  }

  async sendPacket(packet: Uint8Array): Promise<void> {
    await new Promise((sent) => this.sender.send(packet, UDP_PORT, this.address, sent));
  }

  /** Where packets to each place have come, which are taken away. */
  async whereTheyCome(): Promise<number[]> {
    const found: number[] = [];
    for (let slot = 0; slot < this.sockets.length; slot++) {
      await this.send(slot);
      found.push(this.sockets.findIndex((socket) => nativeAddon().drain(socket) > 0));
    }
    return found;
  }

  close(): void {
    for (const socket of this.sockets) nativeAddon().closeDescriptor(socket);
    this.sender.close();
  }
}

async function withGroup(
  address: string,
  places: number,
  body: (group: Group) => Promise<void>,
): Promise<void> {
  const before = openDescriptors();
  const group = new Group(address, places);
  try {
    await body(group);
  } finally {
    group.close();
  }
  await closedTo(before);
}

const families = [
  ['IPv4', loopback(0, 80)],
  ['IPv6', '::1'],
] as const;

for (const [family, address] of families) {
  describe(`a group of sockets, ${family}`, () => {
    it('has places in the order of binding, which the program chooses from', async () => {
      await withGroup(address, 5, async (group) => {
        assert.deepEqual(await group.whereTheyCome(), [0, 1, 2, 3, 4]);
      });
    });

    it('moves its last socket into the place of one that is closed, without a copy', async () => {
      await withGroup(address, 4, async (group) => {
        nativeAddon().closeDescriptor(group.sockets[1] ?? -1);
        group.sockets[1] = group.sockets.pop() ?? -1;
        assert.deepEqual(await group.whereTheyCome(), [0, 1, 2]);
      });
    });

    it('keeps every place through 2,000 opens and closes, while copies are there', async () => {
      await withGroup(address, 8, async (group) => {
        let state = 1;
        const members: (number | undefined)[] = group.sockets.map(() => undefined);
        for (let i = 0; i < 2_000; i++) {
          state = (state * 48_271) % 0x7fff_ffff;
          const slot = state % members.length;
          const socket = members[slot];
          members[slot] = socket === undefined ? group.sockets[slot] : undefined;
          if (socket === undefined) {
            // What was the first process's is the member's now, and the copy the first one's.
            group.sockets[slot] = nativeAddon().duplicate(group.sockets[slot] ?? -1);
          } else {
            nativeAddon().closeDescriptor(socket);
          }
        }
        assert.deepEqual(await group.whereTheyCome(), [0, 1, 2, 3, 4, 5, 6, 7]);
        for (const member of members) {
          if (member !== undefined) nativeAddon().closeDescriptor(member);
        }
        assert.deepEqual(await group.whereTheyCome(), [0, 1, 2, 3, 4, 5, 6, 7]);
      });
    });

    it('drops what comes to a socket, and no more what comes after that', async () => {
      await withGroup(address, 3, async (group) => {
        const [, one = -1] = group.sockets;
        await group.send(1);
        await group.send(1);
        assert.equal(nativeAddon().drain(one), 2);
        nativeAddon().dropAll(one);
        nativeAddon().dropAll(one);
        assert.deepEqual(await group.whereTheyCome(), [0, -1, 2]);
        nativeAddon().takeAll(one);
        nativeAddon().takeAll(one);
        assert.deepEqual(await group.whereTheyCome(), [0, 1, 2]);
      });
    });

    it('is steered by what was attached last, from any of its sockets', async () => {
      await withGroup(address, 3, async (group) => {
        const toTwo = Uint32Array.of(0x06, 0, 0, 2);
        nativeAddon().attachSteering(group.sockets[1] ?? -1, toTwo);
        assert.deepEqual(await group.whereTheyCome(), [2, 2, 2]);
      });
    });

    it('steers as slotOf says, whatever comes', async () => {
      await withGroup(address, PLACES, async (group) => {
        const random = new Uint8Array(pattern(65_536, 61).buffer);
        const reached = new Map<number, number>();
        for (const home of [0, 5]) {
          nativeAddon().attachSteering(group.sockets[1] ?? -1, programFor(home));
          for (let i = 0; i < 1_500; i++) {
            const packet = somePacket(random.subarray(i * 17));
            const slot = slotOf(packet, home);
            assert.ok(slot < PLACES);
            await group.sendPacket(packet);
            const found = group.sockets.findIndex((socket) => nativeAddon().drain(socket) > 0);
            assert.equal(found, slot, Buffer.from(packet).toString('hex'));
            reached.set(slot, (reached.get(slot) ?? 0) + 1);
          }
        }
        assert.equal(reached.size, PLACES, 'every place has had some');
      });
    });

    it('keeps the places of a process that is killed', async () => {
      await withGroup(address, 4, async (group) => {
        const name = newName();
        const listener = nativeAddon().listenUnix(name, 1);
        const member = spawn(process.execPath, [sibling('group-member.js'), 'hold', name]);
        const heard = lineOf(member);
        await new Promise<void>((called) => listener.watch(called));
        const socket = listener.accept();
        assert.ok(socket);
        const [, one = -1, two = -1] = group.sockets;
        assert.ok(socket.send(Uint8Array.of(1), [one, two]));
        assert.equal(await heard, '2');
        assert.deepEqual(await group.whereTheyCome(), [0, 1, 2, 3]);
        member.kill('SIGKILL');
        await once(member, 'exit');
        assert.deepEqual(await group.whereTheyCome(), [0, 1, 2, 3]);
        socket.close();
        listener.close();
      });
    });

    it('is for sockets that all share, of one user', async () => {
      const alone = { addresses: [address], udpPort: UDP_PORT };
      const user = process.geteuid?.();
      await withGroup(address, 1, (group) => {
        assert.throws(() => openNativePort(alone), { code: 'EADDRINUSE' });
        const gid = gidFromIp(group.address);
        assert.deepEqual(nativeAddon().socketUsers(gid, UDP_PORT), [user]);
        assert.deepEqual(nativeAddon().socketUsers(gid, testPort(43)), []);
        return Promise.resolve();
      });
      const port = openNativePort(alone);
      assert.throws(() => nativeAddon().bindGroupSocket(gidFromIp(address), 0, UDP_PORT), {
        code: 'EADDRINUSE',
      });
      await port.close();
    });

    it('refuses another user, and says whose it is', async function () {
      if (process.geteuid?.() !== 0) {
        const remedy = 'as root: npx mocha dist/test/native/group-sockets.test.js';
        leaveOut(this, 'only root can be two users', remedy);
      }
      await withGroup(address, 1, async () => {
        assert.equal(await bindAs(OTHER_USER, address), 'EADDRINUSE');
      });
      assert.equal(await bindAs(OTHER_USER, address), 'bound');
    });
  });

  describe(`a native port on sockets of a group, ${family}`, () => {
    it('has copies of them, and ends without them', async () => {
      await withGroup(address, 3, async (group) => {
        const [, one = -1] = group.sockets;
        const addresses = [address];
        const options = { addresses, udpPort: UDP_PORT, group: { slot: 1, descriptors: [one] } };
        const port = openNativePort(options);
        await group.send(1);
        port.receive();
        assert.equal(port.counters.malformed + port.counters.badIcrc, 1);
        await port.close();
        assert.deepEqual(await group.whereTheyCome(), [0, 1, 2]);
      });
    });

    it('refuses what is no socket of its address', async () => {
      await withGroup(address, 1, (group) => {
        const { descriptor } = nativeAddon().createSharedTable('dapl-test', 4096);
        const open = (udpPort: number, socket: number) => () =>
          openNativePort({
            addresses: [address],
            udpPort,
            group: { slot: 1, descriptors: [socket] },
          });
        const [first = -1] = group.sockets;
        assert.throws(open(testPort(43), first), { code: 'EINVAL', message: /was given for it/ });
        assert.throws(open(UDP_PORT, descriptor), { code: 'EINVAL', message: /was given for it/ });
        nativeAddon().closeDescriptor(descriptor);
        return Promise.resolve();
      });
    });
  });
}

describe('descriptors and shared tables', () => {
  it('are refused where they are none, and where the program is none', async () => {
    const addon = nativeAddon();
    for (const call of ['dropAll', 'takeAll', 'drain', 'duplicate'] as const) {
      for (const none of [-1, 1_000_000]) {
        assert.throws(() => addon[call](none), { code: 'EBADF' });
      }
    }
    assert.throws(() => addon.attachSteering(-1, BY_QPN), { code: 'EBADF' });
    addon.closeDescriptor(-1);
    // Not one that was given out: it stays open.
    addon.closeDescriptor(0);
    await withGroup(loopback(0, 81), 1, (group) => {
      const [socket = -1] = group.sockets;
      const programs = [[], [0x16], [0x30, 0, 0, 5], [0x10000, 0, 0, 0], [0x05, 0, 0, 9]];
      for (const program of programs) {
        const words = Uint32Array.from(program);
        assert.throws(() => addon.attachSteering(socket, words), { code: 'EINVAL' });
      }
      assert.throws(() => addon.attachSteering(socket, new Uint32Array(4 * 4097)), {
        code: 'EINVAL',
      });
      return Promise.resolve();
    });
  });

  it('are one memory for all that map it, of exactly the size that it has', () => {
    const addon = nativeAddon();
    const { memory, descriptor } = addon.createSharedTable('dapl-test', 5000);
    const other = addon.mapSharedTable(addon.duplicate(descriptor), 5000);
    const [here, there] = [memory, other].map((each) => new Int32Array(each));
    assert.ok(here && there);
    assert.equal(here.length, 1250);
    Atomics.store(here, 7, 42);
    assert.equal(Atomics.load(there, 7), 42);
    for (const length of [4999, 5001, 0, -1, NaN]) {
      assert.throws(() => addon.mapSharedTable(descriptor, length), { code: 'EINVAL' });
    }
    assert.throws(() => addon.mapSharedTable(0, 5000), { code: 'EINVAL' });
    assert.throws(() => addon.createSharedTable('dapl-test', 0), { code: 'EINVAL' });
    addon.closeDescriptor(descriptor);
    assert.equal(Atomics.add(there, 7, 1), 42);
    assert.equal(here[7], 43);
  });

  it('of a thread are closed when it is ended', async () => {
    await withGroup(loopback(0, 82), 2, async (group) => {
      const name = newName();
      const listener = nativeAddon().listenUnix(name, 1);
      const before = openDescriptors();
      const [first = -1, second = -1] = group.sockets;
      const worker = new Worker(sibling('group-worker.js'), {
        workerData: { descriptor: first, name },
      });
      const told = once(worker, 'message');
      await new Promise<void>((called) => listener.watch(called));
      const socket = listener.accept();
      assert.ok(socket);
      socket.send(Uint8Array.of(1), [first, second]);
      assert.deepEqual(await told, ['has them']);
      // Two copies that were sent, one that was made, a table, both ends of the socket.
      assert.ok(openDescriptors() >= before + 6);
      await worker.terminate();
      socket.close();
      await closedTo(before);
      assert.deepEqual(await group.whereTheyCome(), [0, 1]);
      listener.close();
    });
  });
});

async function lineOf(child: ChildProcess): Promise<string> {
  assert.ok(child.stdout);
  for await (const line of createInterface(child.stdout)) return line;
  return '';
}

async function bindAs(uid: number, address: string): Promise<string> {
  const args = [sibling('group-member.js'), 'bind', address, String(UDP_PORT)];
  const child = spawn(process.execPath, args, { cwd: '/', uid, gid: uid });
  // Its socket is there until it has ended.
  const [line] = await Promise.all([lineOf(child), once(child, 'exit')]);
  return line;
}
