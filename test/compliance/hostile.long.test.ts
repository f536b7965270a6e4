import assert from 'node:assert/strict';
import { MemPrivileges, openIa, type Lmr } from 'dapl';
import { gidFromIp } from 'dapl/spi';
import { SeededRandom } from 'dapl/providers/mock';
import { Stranger } from '../port/stranger.js';
import { heldBytes } from '../support/heap.js';
import { forge, isWriteOnly, nextWrite, qpnOf, withHeader } from './hostile-packets.js';
import {
  assertAll,
  assertSameBytes,
  connect,
  fillPattern,
  Peer,
  textOf,
} from '../../plugins/testing/suite/peer.js';
import { tappedSoftroce, type Tap } from './tapped-softroce.js';
import { loopback } from '../support/loopback.js';
import { until } from '../../plugins/testing/port/harness.js';

const ACTIVE = loopback(2, 11);
const PASSIVE = loopback(2, 12);
const STRANGER = loopback(2, 13);
const UDP_PORT = 4791;
const GUARD = 4096;
const GRANTED = 8192;
const ROUNDS = 20;
const BATCH = 50;
const GSI_QPN = 1;

/** Memory of which the middle is granted; the guards around it must never change. */
class Guarded {
  readonly memory = new Uint8Array(2 * GUARD + GRANTED).fill(0xee);
  readonly lmr: Lmr;

  constructor(peer: Peer) {
    const middle = this.memory.subarray(GUARD, GUARD + GRANTED);
    this.lmr = peer.ia.createLmr(middle, { pz: peer.pz, privileges: MemPrivileges.ALL });
  }

  check(): void {
    assertAll(this.memory.subarray(0, GUARD), 0xee);
    assertAll(this.memory.subarray(GUARD + GRANTED), 0xee);
  }
}

/** A connection whose data is checked, round by round, until told to stop. */
class Transfer {
  rounds = 0;
  private stopped = false;
  private readonly block: number;

  constructor(
    private readonly from: Peer,
    private readonly to: Peer,
  ) {
    this.block = from.lmr.lengthBytes;
  }

  async run(): Promise<void> {
    const { from, to, block } = this;
    while (!this.stopped) {
      fillPattern(from.lmr.bytes, ++this.rounds);
      to.ep.postRecv([], this.rounds);
      from.ep.postRdmaWrite(from.lmr.segment(0, block), this.rounds, to.remote(), 1);
      from.ep.postSend([], this.rounds);
      await Promise.all([from.next(), to.next()]).then((events) => {
        for (const event of events) assert.equal(textOf(event), `dto ${this.rounds} SUCCESS`);
      });
      assertSameBytes(to.lmr.bytes, from.lmr.bytes);
    }
  }

  stop(): void {
    this.stopped = true;
  }
}

interface Scene {
  readonly taps: readonly [active: Tap, passive: Tap];
  /** A stranger, and somebody at the peer's address. */
  readonly strangers: readonly Stranger[];
  connectPeers(): Promise<{ active: Peer; passive: Peer; free: () => Promise<void> }>;
  close(): Promise<void>;
}

/** @param agreements false: the peer is of another make, and held to no port */
async function open(port: 'native' | 'dgram', agreements: boolean): Promise<Scene> {
  const active = tappedSoftroce({ addresses: [ACTIVE], port, parameters: { agreements } });
  const passive = tappedSoftroce({ addresses: [PASSIVE], port });
  const ias = [await openIa(active.plugin), await openIa(passive.plugin)] as const;
  const to = gidFromIp(PASSIVE);
  const strangers = [
    await Stranger.bind(STRANGER, to, UDP_PORT),
    await Stranger.bind(ACTIVE, to, UDP_PORT),
  ];
  return {
    taps: [active, passive],
    strangers,
    async connectPeers() {
      const peers = { active: new Peer(ias[0]), passive: new Peer(ias[1]) };
      const pair = { active: ias[0], passive: ias[1], passiveAddress: PASSIVE };
      await connect({ pair: { ...pair, close: async () => undefined }, ...peers });
      const free = async (): Promise<void> => {
        for (const { ep, lmr, evd, pz } of [peers.active, peers.passive]) {
          ep.free();
          lmr.free();
          await evd.free();
          pz.free();
        }
      };
      return { ...peers, free };
    },
    async close() {
      for (const stranger of strangers) stranger.close();
      await Promise.all(ias.map((ia) => ia.close()));
    },
  };
}

/** Everything that the device has dropped, at the port or above it, and refused. */
function refused({ port, device }: Tap): number {
  const { malformed, badIcrc } = port.counters;
  const { dropped, naksSent, rnrNaksSent, duplicateRequests } = device.counters;
  return malformed + badIcrc + dropped + naksSent + rnrNaksSent + duplicateRequests;
}

/** A victim: makes packets to capture and to change, and may break. */
async function victim(scene: Scene): Promise<{ write: Uint8Array; free: () => Promise<void> }> {
  const [, tap] = scene.taps;
  const { active, passive, free } = await scene.connectPeers();
  const qpns = new Set([GSI_QPN, passive.ep.qpn]);
  tap.filter = (packet) => qpns.has(qpnOf(packet));
  const granted = new Guarded(passive);
  for (let i = 0; i < 8; i++) {
    const remote = passive.remote(0, granted.lmr);
    passive.ep.postRecv(passive.lmr.segment(), 100);
    active.ep.postSend(active.lmr.segment(0, 40), 1);
    active.ep.postRdmaRead(active.lmr.segment(0, 300), 2, remote.seek(8));
    active.ep.postRdmaWrite(active.lmr.segment(0, 64), 3, remote.seek(0));
    await active.until('dto 3 SUCCESS');
  }
  tap.filter = () => false;
  const write = tap.seen.findLast(isWriteOnly);
  assert.ok(write !== undefined, 'a write has been captured');
  const check = async (): Promise<void> => {
    granted.check();
    await new Promise((resolve) => setImmediate(resolve));
    passive.ep.disconnect();
    passive.drain();
    passive.ep.reset();
    granted.lmr.free();
    await free();
  };
  return { write, free: check };
}

for (const [port, total] of [
  ['native', 100_000],
  ['dgram', 20_000],
] as const) {
  describe(`Hostile datagrams, softroce over the ${port} port`, () => {
    let scene: Scene;

    beforeEach(async () => {
      scene = await open(port, false);
    });

    afterEach(() => scene.close());

    it(`${total} random and mutated ones disturb no other connection`, async () => {
      const random = new SeededRandom(7);
      const [, tap] = scene.taps;
      const { active, passive } = await scene.connectPeers();
      const transfer = new Transfer(active, passive);
      const running = transfer.run();
      let held = 0;
      const before = refused(tap);
      for (let round = 0; round < ROUNDS; round++) {
        // The first rounds fill what stays for a while: connections in timewait, compiled code.
        if (round === 5) held = await heldBytes();
        const { free } = await victim(scene);
        for (let sent = 0; sent < total / ROUNDS; sent += BATCH) {
          await Promise.all(
            Array.from({ length: BATCH }, (_, i) => {
              const stranger = scene.strangers[i % 2] as Stranger;
              const { bytes, sealed } = forge(random, tap.seen);
              return stranger.send(sealed ? bytes : stranger.seal(bytes));
            }),
          );
          await new Promise((resolve) => setImmediate(resolve));
        }
        await free();
      }
      const grown = (await heldBytes()) - held;
      transfer.stop();
      await running;
      assert.ok(transfer.rounds > ROUNDS, `${transfer.rounds} rounds of the transfer`);
      const counted = refused(tap) - before;
      assert.ok(counted > total * 0.9, `${counted} of ${total} were dropped or refused`);
      assert.ok(grown < 6 << 20, `${grown} bytes more are held`);
    });

    it('drops and counts each under its reason', async () => {
      const [, tap] = scene.taps;
      const { strangers } = scene;
      const { write, free } = await victim(scene);
      const classes: Readonly<Record<string, (own: Stranger) => Uint8Array>> = {
        malformed: () => new Uint8Array(7),
        badIcrc: () => new Uint8Array(64).fill(0x5a),
        unknownOpcode: (own) => own.seal(withHeader(write, 0, [0x3f])),
        unknownQpn: (own) => own.seal(withHeader(write, 5, [0xab, 0xcd, 0xef])),
        truncated: (own) => own.seal(write.subarray(0, 16)),
        wrongSource: () => (strangers[0] as Stranger).seal(write),
      };
      for (const [reason, make] of Object.entries(classes)) {
        const own = strangers[reason === 'wrongSource' ? 0 : 1] as Stranger;
        const count = (): number => {
          const counters: Readonly<Record<string, number>> = {
            ...tap.device.counters.drops,
            malformed: tap.port.counters.malformed,
            badIcrc: tap.port.counters.badIcrc,
          };
          return counters[reason] ?? NaN;
        };
        const before = count();
        for (let i = 0; i < 20; i++) await own.send(make(own));
        await until(() => count() - before >= 20, reason);
        assert.equal(count() - before, 20, reason);
      }
      await free();
    });

    const wrongs = {
      'past the end of the region': { addressDelta: BigInt(GRANTED - 63) },
      'before the region': { addressDelta: -1n },
      'with a wrong rkey': { rkeyDelta: 1 },
    } as const;
    for (const [what, change] of Object.entries(wrongs)) {
      it(`in the peer's name and with the right PSN, a write ${what} is NAKed`, async () => {
        const [, tap] = scene.taps;
        const { write, free } = await victim(scene);
        const before = tap.device.counters.naksSent;
        const [, peer] = scene.strangers;
        await peer?.send(peer.seal(nextWrite(write, change)));
        await until(() => tap.device.counters.naksSent > before, 'the NAK');
        assert.equal(tap.device.counters.naksSent - before, 1);
        await free();
      });
    }

    it('in the name of a peer of ours, from another port than its own, is dropped', async () => {
      await scene.close();
      scene = await open(port, true);
      const [, tap] = scene.taps;
      const { write, free } = await victim(scene);
      const { drops } = tap.device.counters;
      const before = { naks: tap.device.counters.naksSent, wrongPort: drops.wrongPort };
      const [, peer] = scene.strangers;
      await peer?.send(peer.seal(nextWrite(write, { rkeyDelta: 1 })));
      await until(() => drops.wrongPort > before.wrongPort, 'the drop');
      assert.equal(drops.wrongPort - before.wrongPort, 1);
      assert.equal(tap.device.counters.naksSent, before.naks);
      await free();
    });
  });
}
