// A peer that breaks the protocol at every message: its connection ends with EPROTO, which names
// what was wrong, and nothing else does.
import assert from 'node:assert/strict';
import { setImmediate } from 'node:timers/promises';
import { rsocket, type RsocketStream } from '../../../../../samples/ulp/rsocket/index.js';
import {
  Control,
  encodeConnectionData,
  immediateOf,
  Operation,
} from '../../../../../samples/ulp/rsocket/wire/index.js';
import { RawPeer } from './raw-peer.js';
import {
  leftOf,
  listening,
  NOTHING_LEFT,
  PORT,
  Seen,
  SERVER,
  type World,
  worldOf,
} from './stream-scene.js';

const RECEIVE_BYTES = 8192;
const HALF = RECEIVE_BYTES / 2;
const CREDITS = 16;
const OPTIONS = { receiveBytes: RECEIVE_BYTES, credits: CREDITS, iomapSlots: 2 };

interface Hostility {
  readonly attack: (peer: RawPeer) => void;
  readonly error: RegExp;
  /** The server writes first, so that it uses what the peer has told. */
  readonly serverWrites?: boolean;
}

const OUT_OF_NOWHERE = { address: 0x1000n, key: 0xdead, length: HALF };

const HOSTILITIES: Readonly<Record<string, Hostility>> = {
  ...Object.fromEntries(
    [1, 2, 3, 5].map((operation): [string, Hostility] => [
      `the reserved operation ${operation}`,
      {
        attack: (peer) => peer.tell(immediateOf(operation, 0)),
        error: new RegExp(`operation is ${operation}, must be 0, 4, 6 or 7`),
      },
    ]),
  ),
  'data of no bytes': {
    attack: (peer) => peer.sendData(0),
    error: /data bytes is 0, must be 1 to 4096/,
  },
  'data that was not written': {
    attack: (peer) => peer.sendData(10, 20),
    error: /written bytes is 10, must be 20/,
  },
  'more bytes than are claimed': {
    attack: (peer) => peer.sendData(20, 10),
    error: /written bytes is 20, must be 10/,
  },
  'data across the halves': {
    attack: (peer) => {
      peer.sendData(HALF - 1);
      peer.sendData(2);
    },
    error: /data bytes is 2, must be 1 to 1$/,
  },
  'data in place of what was not read': {
    attack: (peer) => {
      peer.sendData(HALF);
      peer.sendData(HALF);
      peer.sendData(1);
    },
    error: /data bytes is 1, must be none/,
  },
  'more messages than credits': {
    attack: (peer) => {
      for (let n = 0; n <= CREDITS; n++) peer.sendData(1);
    },
    error: /messages is one more, must be 16 that wait/,
  },
  'data behind SHUTDOWN': {
    attack: (peer) => {
      peer.tell(immediateOf(Operation.CONTROL, Control.SHUTDOWN));
      peer.sendData(1);
    },
    error: /data bytes is 1, must be none behind SHUTDOWN/,
  },
  'half an entry': {
    attack: (peer) => peer.target(1, peer.secondHalf, 32, 8),
    error: /written bytes is 8, must be 16/,
  },
  'an entry of no bytes': {
    attack: (peer) => peer.target(1, { ...peer.secondHalf, length: 0 }, 32),
    error: /entry length is 0/,
  },
  'an entry beyond the last address': {
    attack: (peer) => peer.target(1, { ...peer.secondHalf, address: 2n ** 64n - 1n }, 32),
    error: /entry length is 4096, must be at most 1 bytes/,
  },
  'an entry in place of one that is not used up': {
    attack: (peer) => {
      peer.target(1, peer.secondHalf, 32);
      peer.target(0, peer.data.buffer, 32);
    },
    error: /entry is in slot 0, must be in a slot that is used up/,
  },
  'more credits than were announced': {
    attack: (peer) => peer.tell(immediateOf(Operation.TARGET, 33)),
    error: /sequence limit is 33, must be 32 to 32/,
  },
  'credits that are taken back': {
    attack: (peer) => peer.tell(immediateOf(Operation.TARGET, 31)),
    error: /sequence limit is 31, must be 32 to 32/,
  },
  'an area that was not announced': {
    attack: (peer) => peer.iomap(2, OUT_OF_NOWHERE),
    error: /LOCAL_ACCESS|iomap slot is 2, must be 0 to 1|granted/,
  },
  'half an area': {
    attack: (peer) => peer.iomap(1, OUT_OF_NOWHERE, 12),
    error: /written bytes is 12, must be 24/,
  },
  'an area beyond the last address': {
    attack: (peer) => peer.iomap(1, { address: 2n ** 64n - 1n, key: 1, length: 2 }),
    error: /iomap length is 2, must be at most 1 bytes/,
  },
  'an unknown control': {
    attack: (peer) => peer.tell(immediateOf(Operation.CONTROL, 3)),
    error: /control is 3, must be 0, 1 or 2/,
  },
  'a control with bytes': {
    attack: (peer) => peer.tell(immediateOf(Operation.CONTROL, Control.SHUTDOWN), 4),
    error: /written bytes is 4, must be 0/,
  },
  'a send of no bytes': {
    attack: (peer) => peer.send(0),
    error: /message is RECEIVE, must be RECV_IMMED/,
  },
  'a send with immediate data': {
    attack: (peer) => peer.send(0, 5),
    error: /message is RECV_MSG_IMMED, must be RECV_IMMED/,
  },
  'a send with bytes': { attack: (peer) => peer.send(8), error: /too small/ },
  'a write with another key': {
    attack: (peer) => peer.write(8, peer.theirs.buffer.address, 0xdead, 8),
    error: /EPROTO/,
  },
  'a write past the buffer': {
    attack: (peer) => {
      const { address, key } = peer.theirs.buffer;
      peer.write(8, address + BigInt(RECEIVE_BYTES - 4), key, 8);
    },
    error: /EPROTO/,
  },
  'a buffer that is not its own': {
    attack: (peer) => peer.target(1, OUT_OF_NOWHERE, 32),
    error: /EPROTO/,
    serverWrites: true,
  },
};

describe('rsocket: a hostile peer', () => {
  let world: World;
  let witness: { readonly near: Seen; readonly far: Seen };
  let accepted: (stream: RsocketStream) => void = () => undefined;
  let listener: { close(): Promise<void> };

  const nextStream = (): Promise<RsocketStream> =>
    new Promise((resolve) => {
      accepted = resolve;
    });

  beforeEach(async () => {
    world = await worldOf();
    const options = { ...OPTIONS, after: world.after };
    listener = await listening(rsocket(world.server, options), (stream) => accepted(stream));
    const coming = nextStream();
    const client = rsocket(world.client, options);
    const near = new Seen(await client.connect({ address: SERVER, port: PORT }));
    witness = { near, far: new Seen(await coming) };
  });

  /** The other connection carries on, and nothing is left. */
  afterEach(async () => {
    const { near, far } = witness;
    await near.write(Uint8Array.of(1, 2, 3));
    await far.until(() => far.received.length === 3);
    near.stream.close();
    assert.equal(await near.end(), undefined);
    far.stream.close();
    assert.equal(await far.end(), undefined);
    await listener.close();
    await setImmediate();
    assert.equal(leftOf(world.server), NOTHING_LEFT);
    assert.equal(leftOf(world.client), NOTHING_LEFT);
    await world.close();
  });

  for (const [name, { attack, error, serverWrites = false }] of Object.entries(HOSTILITIES)) {
    it(name, async () => {
      const peer = new RawPeer(world.client);
      const coming = nextStream();
      await peer.connect();
      const seen = new Seen(await coming, false);
      attack(peer);
      const writing = serverWrites
        ? seen.write(new Uint8Array(3 * HALF)).catch(() => undefined)
        : Promise.resolve();
      const ended = await seen.end();
      await writing;
      assert.equal(ended?.code, 'EPROTO', String(ended));
      assert.match(String(ended), error);
      await peer.end();
      peer.leave();
    });
  }

  it('data behind DISCONNECT is ignored', async () => {
    const peer = new RawPeer(world.client);
    const coming = nextStream();
    await peer.connect();
    const seen = new Seen(await coming);
    peer.sendData(3);
    peer.tell(immediateOf(Operation.CONTROL, Control.DISCONNECT));
    peer.sendData(5);
    await seen.until(() => seen.stream.hasEnded);
    assert.equal(seen.received.length, 3);
    seen.stream.close();
    assert.equal(await seen.end(), undefined);
    peer.leave();
  });

  it('what came before is still read', async () => {
    const peer = new RawPeer(world.client);
    const coming = nextStream();
    await peer.connect();
    const seen = new Seen(await coming, false);
    peer.sendData(3);
    peer.tell(immediateOf(5, 0));
    await seen.end();
    seen.readAll();
    assert.equal(seen.received.length, 3);
    assert.equal(seen.stream.hasEnded, false);
    peer.leave();
  });

  it('a request that is no rsocket is refused', async () => {
    const good = new RawPeer(world.client);
    const version = Uint8Array.from(encodeConnectionData(good.data));
    version[0] = 2;
    for (const privateData of [new Uint8Array(0), new Uint8Array(40), version]) {
      const peer = new RawPeer(world.client);
      await assert.rejects(peer.connect(privateData), /PEER_REJECTED/);
      peer.leave();
    }
    good.leave();
  });

  it('an answer of another version is refused', async () => {
    const pz = world.server.createPz();
    const ep = world.server.createEndpoint({ pz });
    const psp = world.server.createPsp({ connQual: 4000 });
    psp.requests$.subscribe(({ cr }) => cr.accept(ep, { privateData: Uint8Array.of(9) }));
    const connecting = rsocket(world.client).connect({ address: SERVER, port: 4000 });
    await assert.rejects(connecting, { code: 'EPROTONOSUPPORT', syscall: 'connect', port: 4000 });
    psp.free();
    ep.free();
    pz.free();
  });

  it('a reader that never reads takes no more memory', async () => {
    const { near, far } = witness;
    far.reads = false;
    const huge = near.write(new Uint8Array(50 * RECEIVE_BYTES));
    await world.sleep(2_000_000);
    assert.ok(near.stream.takenBytes <= RECEIVE_BYTES, `${near.stream.takenBytes} bytes`);
    far.reads = true;
    far.readAll();
    await huge;
    await far.until(() => far.received.length === 50 * RECEIVE_BYTES);
    far.received.length = 0;
  });
});
