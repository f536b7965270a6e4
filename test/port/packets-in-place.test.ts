/** Payload that leaves in place: for whom, and what becomes of it when it changes on its way. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { LOCAL_MTU_BYTES, gidFromIp } from '../../core/spi/index.js';
import { openNativePort } from '../../providers/softroce/port/native-port.js';
import type { SocketPort } from '../../providers/softroce/port/port-options.js';
import { leaveOut, leaveOutUnnamedUser } from '../support/left-out.js';
import { nothing } from '../../plugins/testing/port/bench-pair.js';
import { header, pattern, sendAll } from '../../plugins/testing/port/harness.js';
import { loopback, testPort } from '../support/loopback.js';

const UDP_PORT = testPort(36);
const [LOCAL, REMOTE] = [loopback(0, 61), loopback(0, 62)];
const READ_RESPONSE_MIDDLE = 0x0e;
const SEND_MIDDLE = 0x01;
const BTH_BYTES = 12;
/** Neither root nor anybody who has a name. */
const STRANGER = 54_321;
const UNMAPPED = 65_534;

/** Tells of each datagram whether its payload has changed to zeros; it is stopped in between. */
const RECEIVER = `
  const type = process.argv[1].includes(':') ? 'udp6' : 'udp4';
  const options = type === 'udp6' ? { type, ipv6Only: true } : type;
  const socket = require('node:dgram').createSocket(options);
  socket.on('message', (bytes) => {
    const payload = bytes.subarray(${String(BTH_BYTES)}, bytes.length - 4);
    console.log(payload.some((byte) => byte !== 0) ? 'as sent' : 'changed');
  });
  socket.bind(${String(UDP_PORT)}, process.argv[1], () => console.log('bound'));
`;

class Receiver {
  private readonly lines: AsyncIterator<string>;

  private constructor(private readonly child: ChildProcess) {
    assert.ok(child.stdout);
    this.lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  }

  static async start(ip: string, uid?: number): Promise<Receiver> {
    const child = spawn(process.execPath, ['-e', RECEIVER, ip], {
      cwd: '/',
      stdio: ['ignore', 'pipe', 'inherit'],
      ...(uid !== undefined && { uid, gid: uid }),
    });
    const receiver = new Receiver(child);
    assert.equal(await receiver.next(), 'bound');
    return receiver;
  }

  async next(): Promise<string> {
    const { value } = (await this.lines.next()) as { value: string };
    return value;
  }

  stop(): void {
    this.child.kill('SIGSTOP');
  }

  go(): void {
    this.child.kill('SIGCONT');
  }

  async end(): Promise<void> {
    this.child.kill('SIGKILL');
    await once(this.child, 'exit');
  }
}

/** What a receiver finds that takes a packet in only after its memory has changed. */
async function found(uid?: number, opcode = SEND_MIDDLE, senderUid = 0): Promise<string> {
  const port = openNativePort({ addresses: [LOCAL], udpPort: UDP_PORT });
  const receiver = await Receiver.start(REMOTE, uid).catch(async (error: unknown) => {
    await port.close();
    throw error;
  });
  try {
    port.watch(nothing);
    const send = sender(port, REMOTE, opcode);
    receiver.stop();
    if (senderUid !== 0) process.seteuid?.(senderUid);
    await send();
    if (senderUid !== 0) process.seteuid?.(0);
    receiver.go();
    return await receiver.next();
  } finally {
    await receiver.end();
    await port.close();
  }
}

/** Sends a packet, and writes to its memory. */
function sender(port: SocketPort, to: string, opcode: number): () => Promise<void> {
  const memory = pattern(LOCAL_MTU_BYTES);
  const region = port.addRegion(memory.buffer, 0, memory.length);
  const path = port.addPath(gidFromIp(to), 0);
  const bytes = header(1);
  bytes[0] = opcode;
  const segments = [{ region, offset: 0, length: LOCAL_MTU_BYTES }];
  return async () => {
    await sendAll(port, [{ path, header: bytes, segments }]);
    memory.fill(0);
  };
}

function needsTwoUsers(test: Parameters<typeof leaveOut>[0]): void {
  if (process.geteuid?.() === 0) return;
  leaveOut(
    test,
    'only root can be two users',
    'as root: npx mocha dist/test/port/packets-in-place.test.js',
  );
}

describe('native port, payload in place', () => {
  for (const [name, opcode] of Object.entries({ SEND_MIDDLE, READ_RESPONSE_MIDDLE })) {
    it(`is taken from its memory when the peer reads it: ${name}`, async function () {
      leaveOutUnnamedUser(this);
      assert.equal(await found(undefined, opcode), 'changed');
    });
  }

  it('is so over IPv6, too', async function () {
    leaveOutUnnamedUser(this);
    const port = openNativePort({ addresses: ['::1'], udpPort: UDP_PORT });
    try {
      port.watch(nothing);
      await sender(port, '::1', SEND_MIDDLE)();
      assert.equal(port.receive(), 0);
      assert.equal(port.counters.badIcrc, 1);
    } finally {
      await port.close();
    }
  });

  it('is copied for a socket of another user, who sees nothing of later', async function () {
    needsTwoUsers(this);
    assert.equal(await found(STRANGER), 'as sent');
  });

  it('is copied for a user whom the system shows for all that it cannot name', async function () {
    needsTwoUsers(this);
    assert.equal(
      await found(STRANGER, SEND_MIDDLE, STRANGER),
      'changed',
      'anybody else trusts its own',
    );
    assert.equal(await found(UNMAPPED, SEND_MIDDLE, UNMAPPED), 'as sent');
  });

  it('is copied where another user has a socket that takes all addresses', async function () {
    needsTwoUsers(this);
    const other = await Receiver.start('::', STRANGER);
    try {
      assert.equal(await found(), 'as sent');
    } finally {
      await other.end();
    }
  });
});
