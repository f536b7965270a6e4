import assert from 'node:assert/strict';
import {
  gidFromIp,
  type PollingMode,
  silentLogger,
  WcOpcode,
  WrFlags,
  WrOpcode,
} from '../../../core/spi/index.js';
import { LIMITS } from '../../../providers/hca/pacing/index.js';
import { softroceNode } from '../../../providers/softroce/instance.js';
import { drain, postReceive, postSend } from '../../support/hca-pair.js';
import { WatchedNode } from '../../support/watched-node.js';
import { WatchedPort } from '../../support/watched-port.js';

const MESSAGES = 600;
const RECEIVES = 8;
const SEGMENT = { offset: 0, length: 8 };
const REPLY = { opcode: WrOpcode.SEND, segments: [SEGMENT], flags: WrFlags.SIGNALED };

/** The node, and a peer that answers each message. */
class Conversation extends WatchedNode {
  private idleLooks = 0;
  /** Messages of the peer's stream that are not acknowledged. */
  private inFlight = 0;

  /**
   * @param looks in vain before each answer has come
   * @param receives that the node has posted
   */
  constructor(
    polling: PollingMode,
    private readonly looks: number,
    receives = RECEIVES,
  ) {
    super({ memoryBytes: 4096, maxReceives: 2 * receives });
    this.cq.setPolling(polling);
    // What `adaptive` learns is not asked here.
    const { pacer } = (this.node as unknown as { loop: { pacer: object } }).loop;
    Object.assign(pacer, { gain: { pays: true, pollUs: 200, onCompletions: () => undefined } });
    for (let i = 0; i < receives; i++) {
      postReceive(this.memory, this.qp, [SEGMENT]);
      postReceive(this.peer, this.peerQp, [SEGMENT]);
    }
    this.port.peerWorks = () => this.answer();
  }

  /** Sends the first message, and one for each answer; the turns of the event loop meanwhile. */
  async run(next: () => Promise<void>): Promise<number> {
    let turns = 0;
    let over = false;
    const turn = (): void => {
      turns += 1;
      if (!over) setImmediate(turn);
    };
    setImmediate(turn);
    this.node.processHold.retain();
    postSend(this.memory, this.qp, REPLY);
    for (let got = 0; got < MESSAGES;) {
      await next();
      for (const { opcode } of drain(this.cq)) {
        if (opcode !== WcOpcode.RECV) continue;
        got += 1;
        postReceive(this.memory, this.qp, [SEGMENT]);
        postSend(this.memory, this.qp, REPLY);
      }
    }
    over = true;
    this.node.processHold.release();
    return turns;
  }

  /** Takes in a stream of the peer, which has `burst` messages in flight whenever it can. */
  async takeStream(burst: number, next: () => Promise<void>): Promise<void> {
    this.port.peerWorks = () => this.stream(burst);
    this.node.processHold.retain();
    let over = false;
    // What the system does for a socket; the peer is at work meanwhile, too.
    const watch = (): void => {
      if (over) return;
      this.stream(burst);
      if (this.port.pending > 0) this.port.handlers?.onReadable();
      setImmediate(watch);
    };
    watch();
    for (let got = 0; got < MESSAGES;) {
      await next();
      const came = drain(this.cq).length;
      got += came;
      // A consumer who awaits has the events, and takes a while.
      for (let i = 0; i < 10; i++) await Promise.resolve();
      for (let i = 0; i < came; i++) postReceive(this.memory, this.qp, [SEGMENT]);
    }
    over = true;
    this.port.peerWorks = () => undefined;
    this.node.processHold.release();
  }

  /** Takes one burst, and answers each message after an await; how often the port has sent. */
  async answerOneByOne(burst: number, next: () => Promise<void>): Promise<number> {
    const { port, peer } = this;
    port.peerWorks = () => undefined;
    this.node.processHold.retain();
    for (let i = 0; i < burst; i++) postSend(peer, this.peerQp, REPLY);
    const told = next();
    peer.driver.pump();
    port.handlers!.onReadable();
    await told;
    let calls = 0;
    const send = port.send.bind(port);
    port.send = (from, to) => {
      calls += 1;
      return send(from, to);
    };
    const came = drain(this.cq).length;
    for (let i = 0; i < came; i++) {
      // What a loop of `await receive()` comes to.
      for (let hop = 0; hop < 4; hop++) await Promise.resolve();
      postSend(this.memory, this.qp, REPLY);
    }
    await new Promise(setImmediate);
    peer.driver.pump();
    assert.equal(drain(peer.receiveCq).length, burst);
    this.node.processHold.release();
    return calls;
  }

  private stream(burst: number): void {
    const { peer } = this;
    peer.driver.pump();
    this.inFlight -= drain(peer.sendCq).length;
    for (; this.inFlight < burst; this.inFlight++) postSend(peer, this.peerQp, REPLY);
    peer.driver.pump();
  }

  private answer(): void {
    const { peer } = this;
    if (peer.port.pending === 0 || this.idleLooks++ < this.looks) return;
    this.idleLooks = 0;
    peer.driver.pump();
    const came = drain(peer.receiveCq).length;
    drain(peer.sendCq);
    for (let i = 0; i < came; i++) {
      postReceive(peer, this.peerQp, [SEGMENT]);
      postSend(peer, this.peerQp, REPLY);
    }
    if (came > 0) peer.driver.pump();
  }
}

describe('a softroce node whose consumer awaits', () => {
  /** A promise that the notification settles. */
  const notified = (conversation: Conversation) => (): Promise<void> =>
    new Promise((resolve) => {
      conversation.onNotify = resolve;
      conversation.cq.arm(false);
    });

  it('needs a turn of the event loop for each 60 us, not for each answer (adaptive)', async () => {
    const conversation = new Conversation('adaptive', 3);
    const startUs = conversation.port.clockUs[0]!;
    const turns = await conversation.run(notified(conversation));
    const us = conversation.port.clockUs[0]! - startUs;
    assert.ok(turns < MESSAGES / 4, `${turns} turns for ${MESSAGES} messages`);
    assert.ok(turns > us / 80, `${turns} turns in ${us} us`);
  });

  it('is told in microtasks that others have before the next look at the port', async () => {
    const conversation = new Conversation('adaptive', 3);
    let late = 0;
    const wait = notified(conversation);
    const turns = await conversation.run(async () => {
      await wait();
      const looks = conversation.port.clockUs[0]!;
      for (let i = 0; i < 20; i++) await Promise.resolve();
      if (conversation.port.clockUs[0] !== looks) late += 1;
    });
    assert.equal(late, 0);
    assert.ok(turns < MESSAGES / 4, `${turns} turns for ${MESSAGES} messages`);
  });

  it('has a turn of the event loop between two messages otherwise', async () => {
    const conversation = new Conversation('event', 3);
    assert.ok((await conversation.run(notified(conversation))) > MESSAGES / 2);
  });

  for (const polling of ['event', 'adaptive'] as const) {
    it(`leaves the loop its turns where each answer is there at once (${polling})`, async () => {
      const conversation = new Conversation(polling, 0);
      const turns = await conversation.run(notified(conversation));
      assert.ok(turns > MESSAGES / 80, `${turns} turns for ${MESSAGES} messages`);
    });
  }

  for (const polling of ['event', 'adaptive'] as const) {
    it(`sends answers to a burst together, each posted in its own task (${polling})`, async () => {
      const burst = 8;
      const conversation = new Conversation(polling, 0, burst);
      assert.equal(await conversation.answerOneByOne(burst, notified(conversation)), 1);
    });
  }

  for (const polling of ['event', 'adaptive'] as const) {
    it(`posts receives again before a further burst is acknowledged (${polling})`, async () => {
      const burst = 20;
      const conversation = new Conversation(polling, 0, 2 * burst);
      await conversation.takeStream(burst, notified(conversation));
      assert.equal(conversation.node.device.hca.counters.rnrNaksSent, 0);
    });
  }
});

describe('a softroce node whose consumer spins', () => {
  it('gives its core up when there has been nothing for a while', () => {
    const { port } = new WatchedNode({ memoryBytes: 4096 });
    const rests: number[] = [];
    const resting = new WatchedPort(gidFromIp('10.0.0.3'));
    resting.peer = resting;
    const spinning = softroceNode({
      name: 'spinning',
      port: Object.assign(resting, { rest: (us: number) => void rests.push(us) }),
      logger: silentLogger,
      parameters: {},
    });
    // Other devices of this process may have a clock that is ahead.
    const looks = 10 * LIMITS.SPIN_US.value + Math.abs(resting.clockUs[0]! - port.clockUs[0]!);
    for (let i = 0; i < looks && rests.length === 0; i++) spinning.device.progress();
    assert.deepEqual(rests, [LIMITS.REST_US.value]);
  });
});
