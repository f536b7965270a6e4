// 100,000 PDUs by seed, in every state of a connection: mutilated ones, ones out of order, keys,
// tags and offsets outside. Whatever comes, the session ends as the protocol has it or goes on; the
// disk and another session are not touched.
import assert from 'node:assert/strict';

import { SeededRandom } from '../../../../../../plugins/faults/grammar/seeded-random.js';
import type { ConnectionState } from '../../../../../../samples/ulp/iser/session/target-side/index.js';
import {
  emitText,
  initiatorFormats,
  KEYS,
  RESERVED_TAG,
  serialDistance,
  type TextPair,
} from './formats.js';
import { DISCOVERY_KEYS, NORMAL_KEYS, Peer, pduOf, Scene, settle } from './scene.js';

const PDUS = 100_000;
const PDUS_OF_A_CONNECTION = 20;
const SEED = Number(process.env['ISER_SEED'] ?? 1);

type Stage = (peer: Peer) => void | Promise<void>;
const STAGES: Readonly<Record<string, readonly [ConnectionState, Stage]>> = {
  'before login': ['XPT_UP', () => undefined],
  'in login': [
    'IN_LOGIN',
    (peer) => void peer.login(NORMAL_KEYS, { currentStage: 1, transit: false }),
  ],
  'in the security stage': [
    'IN_LOGIN',
    (peer) => void peer.login(NORMAL_KEYS.slice(0, 4), { currentStage: 0, transit: false }),
  ],
  'in full feature phase': ['LOGGED_IN', (peer) => peer.logIn().then(() => undefined)],
  'with commands in progress': [
    'LOGGED_IN',
    async (peer) => {
      await peer.logIn();
      for (let tag = 1; tag <= 3; tag++) {
        peer.command(tag, { write: true, expectedDataTransferLength: 4096 });
      }
    },
  ],
  'in discovery': [
    'LOGGED_IN',
    async (peer) => {
      peer.login(DISCOVERY_KEYS);
      await settle();
    },
  ],
  'asked to log out': [
    'LOGOUT_REQUESTED',
    async (peer) => {
      await peer.logIn();
      peer.connection.requestLogout(10);
    },
  ],
  'in logout': [
    'IN_LOGOUT',
    async (peer) => {
      await peer.logIn();
      peer.scene.disk.endsAborted = false;
      peer.command(1);
      peer.send('logoutRequest', { immediate: true, initiatorTaskTag: 9, cmdSn: peer.cmdSn });
      await settle();
    },
  ],
};

const TYPES = Object.keys(initiatorFormats) as (keyof typeof initiatorFormats)[];

/** What a hostile initiator makes up. */
class Attacker {
  constructor(private readonly random: SeededRandom) {}

  below(limit: number): number {
    return this.random.u32() % limit;
  }

  private oneOf<T>(values: readonly T[]): T {
    return values[this.below(values.length)] as T;
  }

  private number(near: number): number {
    const interesting = [0, 1, near, near + 1, near - 1, near + 64, RESERVED_TAG, 0x7fffffff];
    return (this.below(3) === 0 ? this.random.u32() : this.oneOf(interesting)) >>> 0;
  }

  pdu(peer: Peer): Uint8Array {
    const type = this.oneOf(TYPES);
    const bytes = pduOf(type, this.values(peer), this.data());
    switch (this.below(4)) {
      case 0:
        // One bit and more of the header.
        for (let flips = this.below(4); flips >= 0; flips--) {
          const at = this.below(48);
          bytes[at] = (bytes[at] ?? 0) ^ (1 << this.below(8));
        }
        return bytes;
      case 1:
        return bytes.subarray(0, this.below(bytes.length + 1));
      default:
        return bytes;
    }
  }

  private values({ cmdSn }: Peer): object {
    return {
      immediate: this.below(2) === 0,
      cmdSn: this.number(cmdSn),
      initiatorTaskTag: this.number(2),
      isid: Uint8Array.of(0, 2, 0x3d, 0, 0, this.below(2)),
      ...this.some({
        targetTransferTag: this.number(1),
        expectedDataTransferLength: this.number(4096),
        referencedTaskTag: this.number(1),
        refCmdSn: this.number(cmdSn),
        function: this.below(128),
        bufferOffset: this.number(512),
        dataSn: this.number(0),
        attribute: this.below(8),
        currentStage: this.below(4),
        nextStage: this.below(4),
        tsih: this.below(3),
        cid: this.below(2),
        versionMin: this.below(2),
        reason: this.below(4),
        transit: this.below(2) === 0,
        continue: this.below(2) === 0,
        read: this.below(2) === 0,
        write: this.below(2) === 0,
        totalAhsLength: this.below(4),
      }),
      final: this.below(8) !== 0,
    };
  }

  /** Some of these: a field that a format does not have is set on its view, and does nothing. */
  private some(values: Record<string, unknown>): object {
    return Object.fromEntries(Object.entries(values).filter(() => this.below(3) === 0));
  }

  private data(): Uint8Array {
    switch (this.below(4)) {
      case 0:
        return new Uint8Array(0);
      case 1:
        return Uint8Array.from({ length: this.below(300) }, () => this.below(256));
      default:
        return this.text();
    }
  }

  private text(): Uint8Array {
    const keys = [...Object.keys(KEYS), 'CHAP_A', 'CHAP_R', 'X-org.example'];
    const values = ['Yes', 'No', '0', '512', '16777216', '-1', 'None', 'CRC32C', 'All', ''];
    const pairs = Array.from({ length: this.below(6) }, (): TextPair => [
      this.oneOf(keys),
      this.oneOf(values),
    ]);
    const all = this.below(4) === 0 ? [...NORMAL_KEYS, ...pairs] : pairs;
    const bytes = emitText(all);
    return this.below(8) === 0 ? bytes.subarray(0, this.below(bytes.length + 1)) : bytes;
  }
}

/** What holds of a connection whatever has come. */
function check(peer: Peer, sentBefore: number): void {
  let statSn = peer.sent[sentBefore - 1]?.header.statSn;
  for (const { type, header } of peer.sent.slice(sentBefore)) {
    assert.ok(serialDistance(header.maxCmdSn, header.expCmdSn) >= -1, 'the window');
    assert.ok(serialDistance(header.maxCmdSn, header.expCmdSn) < 4, 'the depth');
    if (statSn !== undefined) assert.equal(header.statSn, (statSn + 1) >>> 0, `StatSN of ${type}`);
    statSn = header.statSn;
  }
  const tags = peer.scene.disk.executing.map(
    ({ command }) => (command as unknown as { initiatorTaskTag: number }).initiatorTaskTag,
  );
  assert.equal(new Set(tags).size, tags.length, 'a tag is used once');
}

describe('iSER target: hostile initiators', () => {
  for (const [name, [state, stage]] of Object.entries(STAGES)) {
    it(`${name}, seed ${SEED}`, async () => {
      const attacker = new Attacker(new SeededRandom(SEED));
      const scene = new Scene();
      const neighbour = new Peer(scene);
      neighbour.login(
        NORMAL_KEYS.map(([key, value]) => [key, key === 'InitiatorName' ? `${value}2` : value]),
      );
      await settle();
      const ends = new Set<ConnectionState>();
      let connections = 0;
      for (let left = PDUS / Object.keys(STAGES).length; left > 0; connections++) {
        left -= await attack(attacker, scene, state, stage, ends);
        assert.equal(neighbour.connection.state, 'LOGGED_IN', 'another session goes on');
        assert.equal(neighbour.sent.length, 1);
      }
      // What comes in logout is ignored; else some of it ends the session, and some does not.
      assert.ok(state === 'IN_LOGOUT' || ends.has('FREE'), [...ends].join());
      assert.ok(connections > 100);
    });
  }

  /** @returns how many PDUs it took until the session had ended, or all that there are */
  async function attack(
    attacker: Attacker,
    scene: Scene,
    state: ConnectionState,
    stage: Stage,
    ends: Set<ConnectionState>,
  ): Promise<number> {
    const peer = new Peer(scene);
    await stage(peer);
    assert.equal(peer.connection.state, state);
    let sent = peer.sent.length;
    let count = 0;
    while (count < PDUS_OF_A_CONNECTION && !peer.wire.isTerminated) {
      count++;
      peer.connection.receive(attacker.pdu(peer));
      if (attacker.below(4) === 0) scene.disk.executing[0]?.end();
      await settle();
      check(peer, sent);
      sent = peer.sent.length;
      peer.cmdSn = peer.wire.numbers?.expCmdSn ?? peer.cmdSn;
    }
    ends.add(peer.connection.state);
    if (peer.wire.isTerminated) {
      peer.connection.receive(attacker.pdu(peer));
      assert.equal(peer.sent.length, sent, 'nothing is sent after the end');
    }
    assert.deepEqual(scene.failures, []);
    scene.faults.length = 0;
    scene.disk.endsAborted = true;
    peer.connection.transportEnded('the test ends');
    for (const each of [...scene.disk.executing]) each.end({ isAborted: true });
    await peer.connection.ended;
    assert.equal(peer.connection.state, 'FREE');
    scene.disk.nexuses.length = 0;
    assert.equal(scene.node.connectionCount, 1);
    return count;
  }
});
