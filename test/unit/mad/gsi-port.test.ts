/** QP1 of a device: what is written for it, whose turn it is, and what becomes of its sends. */
import assert from 'node:assert/strict';
import {
  GSI_QKEY,
  GSI_QPN,
  QpState,
  RQE,
  SGE,
  SQE,
  WcStatus,
  WrFlags,
  WrOpcode,
} from '../../../core/spi/index.js';
import { OWN, OWN_TOO, PEER, PortScene } from '../../support/port-scene.js';

const ONES = 0xffffffff;
const RECEIVED_BYTES = 40 + 256;
const RECEIVE_SLOT_BYTES = 320;
const MADS_A_TURN = 16;

/** Words of an entry, by name. */
function wordsOf(
  ring: { words: Uint32Array; wordOf: (index: number) => number },
  index: number,
  names: Readonly<Record<string, number>>,
): Record<string, number | undefined> {
  const at = ring.wordOf(index);
  return Object.fromEntries(
    Object.entries(names).map(([name, word]) => [name, ring.words[at + word]]),
  );
}

describe('MAD: QP1', () => {
  it('goes from RESET to RTS with its receives posted, as the state diagram wants', () => {
    const { qp1 } = new PortScene();
    assert.deepEqual(qp1.modified, [
      { state: QpState.INIT, pkeyIndex: 0, qkey: GSI_QKEY },
      { state: QpState.RTR },
      { state: QpState.RTS, sendPsn: 0 },
    ]);
    assert.equal(qp1.receiveRing.length, 64);
  });

  it('has every word of a send entry written, whatever was there before', () => {
    const scene = new PortScene();
    const { sendRing } = scene.qp1;
    scene.post(1);
    sendRing.words.fill(ONES, sendRing.wordOf(1), sendRing.wordOf(2));
    scene.post(2);
    const address = scene.port.addresses.acquire(PEER, 0);
    const { LKEY, ...segment } = SGE;
    const names = { ...SQE, ...segmentNames(segment, SQE.SEGMENTS) };
    assert.deepEqual(wordsOf(sendRing, 1, names), {
      ...Object.fromEntries(Object.keys(SQE).map((name) => [name, 0])),
      CONTROL: WrOpcode.SEND | (WrFlags.SIGNALED << 8) | (1 << 16),
      COOKIE_LO: 1,
      ADDRESS_HANDLE: address.handle,
      REMOTE_QPN: 0x1234,
      REMOTE_QKEY: 0x8765,
      SEGMENTS: 256,
      'segment ADDRESS_LO': 256,
      'segment ADDRESS_HI': 0,
      'segment LENGTH': 256,
    });
    const lkey = sendRing.words[sendRing.wordOf(1) + SQE.SEGMENTS + LKEY] ?? 0;
    assert.equal(scene.device.regions.get(lkey)?.length, 4 * 256);
    assert.deepEqual(scene.carried, [1, 2]);
  });

  it('has every word of a receive entry written, when its MAD has been taken', () => {
    const scene = new PortScene();
    const { receiveRing } = scene.qp1;
    for (const id of [1, 2]) scene.arrive(id);
    receiveRing.words.fill(ONES, receiveRing.wordOf(64), receiveRing.wordOf(66));
    scene.settle();
    const { LKEY, ...segment } = SGE;
    const names = {
      NUM_SGE: RQE.NUM_SGE,
      FLAGS: RQE.FLAGS,
      COOKIE_LO: RQE.COOKIE_LO,
      COOKIE_HI: RQE.COOKIE_HI,
      ...segmentNames(segment, RQE.SEGMENTS),
    };
    assert.deepEqual(wordsOf(receiveRing, 65, names), {
      NUM_SGE: 1,
      FLAGS: 0,
      COOKIE_LO: 65,
      COOKIE_HI: 1,
      'segment ADDRESS_LO': RECEIVE_SLOT_BYTES,
      'segment ADDRESS_HI': 0,
      'segment LENGTH': RECEIVED_BYTES,
    });
    const lkey = receiveRing.words[receiveRing.wordOf(65) + RQE.SEGMENTS + LKEY] ?? 0;
    assert.equal(scene.device.regions.get(lkey)?.length, 64 * RECEIVE_SLOT_BYTES);
    assert.equal(receiveRing.length, 64);
  });

  it('says where a MAD has come from, and to which of our addresses', () => {
    const scene = new PortScene();
    scene.arrive(1);
    scene.arrive(2, OWN_TOO);
    scene.settle();
    const source = { gid: PEER, qpn: GSI_QPN, qkey: GSI_QKEY };
    assert.deepEqual(scene.received, [
      { id: 1, source: { ...source, localGidIndex: 0 } },
      { id: 2, source: { ...source, localGidIndex: 1 } },
    ]);
  });

  it('says from which UDP port, where the device knows', () => {
    const scene = new PortScene();
    scene.qp1.sourcePort = 49_152;
    scene.arrive(1);
    scene.settle();
    assert.equal(scene.received[0]?.source.udpPort, 49_152);
  });

  it('ends with all that it is made of, at once or when it is lost', () => {
    for (const lost of [false, true]) {
      const scene = new PortScene();
      scene.post(1);
      scene.settle();
      if (lost) scene.port.tear('the test');
      scene.port.close();
      assert.equal(scene.device.liveObjects, 0);
      assert.equal(scene.device.addressHandles.size, 0);
      scene.port.close();
      assert.equal(scene.device.liveObjects, 0);
      assert.equal(scene.port.isOpen, false);
    }
  });

  it('ends the rest when a part of it refuses, and says so unless it is lost anyway', () => {
    for (const lost of [false, true]) {
      const scene = new PortScene();
      scene.qp1.destroy = () => {
        throw new Error('destroyed already');
      };
      if (lost) scene.port.tear('the test');
      scene.warnings.length = 0;
      scene.port.close();
      assert.equal(scene.device.liveObjects, 1);
      assert.equal(scene.warnings.length, lost ? 0 : 1);
    }
  });
});

describe('MAD: turns at QP1', () => {
  it('are of 16 MADs each, with a look at the device in between', () => {
    const scene = new PortScene();
    for (let id = 0; id < 40; id++) scene.arrive(id);
    const turns: number[] = [];
    for (let turn = 0; turn < 4; turn++) {
      while (scene.world.hasTasks) scene.world.runTask();
      turns.push(scene.received.length);
      if (scene.world.activeTimers > 0) scene.world.expire(0);
    }
    assert.deepEqual(turns, [MADS_A_TURN, 2 * MADS_A_TURN, 40, 40]);
    assert.equal(scene.world.activeTimers, 0);
    assert.deepEqual(
      scene.received.map(({ id }) => id),
      Array.from({ length: 40 }, (_, id) => id),
    );
    assert.equal(scene.port.counters.received, 40);
    assert.equal(scene.qp1.receiveRing.length, 64);
  });

  it('ring for the receives that they have posted, once each, and never for none', () => {
    const scene = new PortScene();
    let rings = 0;
    scene.qp1.ringReceiveDoorbell = () => void rings++;
    scene.post(1);
    scene.settle();
    assert.equal(rings, 0);
    for (let id = 0; id < MADS_A_TURN + 1; id++) scene.arrive(id);
    scene.settle();
    assert.equal(rings, 2);
  });

  it('send what their handlers post by one ring, behind them', () => {
    const scene = new PortScene();
    const { qp1 } = scene;
    let rings = 0;
    const ring = qp1.ringSendDoorbell.bind(qp1);
    qp1.ringSendDoorbell = () => {
      rings++;
      ring();
    };
    scene.onMad = () => {
      scene.post(scene.received.length);
      assert.deepEqual(scene.carried, []);
    };
    for (const id of [7, 8, 9]) scene.arrive(id);
    scene.settle();
    assert.deepEqual(scene.carried, [1, 2, 3]);
    assert.equal(rings, 1);
    // Outside of a turn a send leaves at once.
    scene.post(4);
    assert.deepEqual(scene.carried, [1, 2, 3, 4]);
  });

  it('follow by themselves where something has come while they ran', () => {
    const scene = new PortScene();
    scene.onMad = () => {
      if (scene.received.length === 1) scene.arrive(2);
    };
    scene.arrive(1);
    scene.settle();
    assert.equal(scene.received.length, 2);
    // And QP1 is armed behind them.
    scene.arrive(3);
    scene.settle();
    assert.equal(scene.received.length, 3);
  });

  it('are no more when the port is lost or closed in the middle of one', () => {
    for (const end of ['tear', 'close'] as const) {
      const scene = new PortScene();
      scene.onMad = () => {
        if (end === 'tear') scene.qp1.modify({ state: QpState.ERR });
        scene.port[end]('the test');
      };
      for (let id = 0; id < 40; id++) scene.arrive(id);
      scene.settle();
      assert.equal(scene.received.length, 1, end);
      assert.equal(scene.qp1.receiveRing.length, end === 'tear' ? 0 : 24, end);
      assert.equal(scene.port.counters.restarts, 0, end);
      assert.equal(scene.world.activeTimers, 0, end);
    }
  });

  it('end with the port, where one was due', () => {
    for (const end of ['tear', 'close'] as const) {
      const scene = new PortScene();
      for (let id = 0; id < 40; id++) scene.arrive(id);
      scene.world.runTask();
      assert.equal(scene.world.activeTimers, 1);
      scene.port[end]('the test');
      assert.equal(scene.world.activeTimers, 0, end);
    }
  });

  it('pass over what is too short or has no addresses, count it, and post its receive anew', () => {
    const scene = new PortScene();
    scene.device.receive(new Uint8Array(255), PEER, OWN);
    scene.arrive(1);
    scene.arrive(2);
    const bytes = [...scene.device.regions.values()].find(
      ({ length }) => length === 64 * RECEIVE_SLOT_BYTES,
    );
    bytes?.fill(0, RECEIVE_SLOT_BYTES, RECEIVE_SLOT_BYTES + 40);
    scene.settle();
    const { malformed, received } = scene.port.counters;
    assert.deepEqual({ malformed, received }, { malformed: 2, received: 3 });
    assert.equal(scene.received.length, 1);
    assert.equal(scene.qp1.receiveRing.length, 64);
  });
});

describe('MAD: sends at QP1', () => {
  it('have room while fewer than its depth are posted and none waits', () => {
    const scene = new PortScene({ sendDepth: 2 });
    const { port, qp1 } = scene;
    qp1.holdCompletions = true;
    assert.ok(port.hasRoom);
    scene.post(1);
    assert.ok(port.hasRoom);
    scene.post(2);
    assert.equal(port.hasRoom, false);
    scene.post(3);
    qp1.releaseCompletions();
    scene.settle();
    assert.ok(port.hasRoom);
    assert.equal(port.counters.sent, 3);
    port.tear('the test');
    assert.equal(port.hasRoom, false);
  });

  it('wait behind those that wait already, though a place has become free', () => {
    const scene = new PortScene({ sendDepth: 1 });
    scene.qp1.holdCompletions = true;
    scene.port.post({ ...scene.request(1), onComplete: () => scene.post(3) });
    scene.post(2);
    scene.qp1.releaseCompletions();
    scene.settle();
    assert.deepEqual(scene.carried, [1, 2, 3]);
  });

  it('are taken back only while they wait for room', () => {
    const scene = new PortScene({ sendDepth: 1 });
    scene.qp1.holdCompletions = true;
    const [posted, waiting] = [scene.request(1), scene.request(2)];
    scene.port.post(posted);
    scene.port.post(waiting);
    assert.equal(scene.port.withdraw(posted), false);
    assert.equal(scene.port.withdraw(waiting), true);
    assert.equal(scene.port.withdraw(waiting), false);
    scene.qp1.releaseCompletions();
    scene.settle();
    assert.deepEqual(scene.log, ['SUCCESS 1']);
  });

  it('come back flushed from a lost port, each once, and not inside the call', () => {
    const scene = new PortScene({ sendDepth: 2 });
    scene.qp1.holdCompletions = true;
    scene.post(1, 2);
    const waiting = scene.request(3);
    scene.port.post(waiting);
    scene.port.tear('the test');
    scene.port.tear('once more');
    assert.equal(scene.port.withdraw(waiting), false);
    scene.post(4);
    assert.deepEqual(scene.log, ['torn']);
    scene.qp1.releaseCompletions();
    scene.settle();
    const flushed = [1, 2, 3, 4].map((id) => `WR_FLUSH_ERR ${id}`);
    assert.deepEqual(scene.log, ['torn', ...flushed]);
    assert.equal(scene.warnings.length, 1);
    assert.equal(scene.port.counters.sent, 0);
  });

  it('lose the port when QP1 takes no doorbell', () => {
    const scene = new PortScene();
    scene.qp1.ringSendDoorbell = () => {
      throw new Error('gone');
    };
    scene.post(1);
    assert.equal(scene.port.isOpen, false);
    scene.settle();
    assert.deepEqual(scene.log, ['torn', 'WR_FLUSH_ERR 1']);
  });

  it('fail alone: the counters say so, and those behind them go again in their order', () => {
    const scene = new PortScene({ sendDepth: 3 });
    const { qp1, port } = scene;
    qp1.holdCompletions = true;
    qp1.sendStatuses.push(WcStatus.SUCCESS, WcStatus.LOC_PROT_ERR);
    scene.post(1, 2, 3, 4);
    qp1.releaseCompletions();
    scene.settle();
    assert.deepEqual(scene.log, ['SUCCESS 1', 'LOC_PROT_ERR 2', 'SUCCESS 3', 'SUCCESS 4']);
    assert.deepEqual(scene.carried, [1, 3, 4]);
    const { sent, sendErrors, reposted, restarts } = port.counters;
    assert.deepEqual(
      { sent, sendErrors, reposted, restarts },
      { sent: 3, sendErrors: 1, reposted: 1, restarts: 0 },
    );
    assert.equal(qp1.state, QpState.RTS);
  });

  it('are followers once: a flush that comes later, of the same place, is for good', () => {
    const scene = new PortScene({ sendDepth: 2 });
    const { qp1, port } = scene;
    qp1.holdCompletions = true;
    qp1.sendStatuses.push(WcStatus.LOC_PROT_ERR);
    scene.post(1, 2);
    qp1.releaseCompletions();
    scene.settle();
    // Both places of the ring are used again.
    qp1.holdCompletions = true;
    port.flush();
    scene.post(3, 4);
    qp1.releaseCompletions();
    scene.settle();
    assert.deepEqual(scene.log.slice(2), ['WR_FLUSH_ERR 3', 'WR_FLUSH_ERR 4', 'torn']);
    assert.equal(port.counters.reposted, 1);
    assert.deepEqual(scene.carried, [2]);
  });

  it('come back flushed behind a failed one where their owner wants no more of them', () => {
    const scene = new PortScene();
    const { qp1, port } = scene;
    qp1.holdCompletions = true;
    qp1.sendStatuses.push(WcStatus.LOC_PROT_ERR);
    scene.post(1);
    port.post(scene.request(2, false));
    scene.post(3);
    qp1.releaseCompletions();
    scene.settle();
    assert.deepEqual(scene.log, ['LOC_PROT_ERR 1', 'WR_FLUSH_ERR 2', 'SUCCESS 3']);
    assert.equal(port.counters.reposted, 1);
  });
});

function segmentNames(
  segment: Readonly<Record<string, number>>,
  first: number,
): Record<string, number> {
  const named = Object.entries(segment).filter(([name]) => name !== 'WORDS');
  return Object.fromEntries(named.map(([name, word]) => [`segment ${name}`, first + word]));
}
