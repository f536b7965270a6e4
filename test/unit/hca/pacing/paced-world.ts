/**
 * A device on an event loop that is stepped by hand, its consumer and its peer: what the search of
 * the pacing walks through. All of the device is the real thing; the loop and the time are not.
 */
import {
  Access,
  type CompletionQueue,
  gidFromIp,
  QpType,
  type QueuePair,
  silentLogger,
  WcOpcode,
  WrOpcode,
} from '../../../../core/spi/index.js';
import { HcaDriver } from '../../../../providers/hca/index.js';
import { LoopPacer } from '../../../../providers/hca/pacing/index.js';
import { EventLoop } from '../../../../providers/host/index.js';
import { SeededRandom } from '../../../../providers/mock/index.js';
import {
  connect,
  drain,
  type HcaPair,
  type Memory,
  postReceive,
  postSend,
  Side,
} from '../../../support/hca-pair.js';
import { type Subject, textOf } from '../../../support/interleaving-search.js';
import { joinPorts, MemoryPort } from '../../../support/memory-port.js';
import { PaceRules, type Scenario } from './pace-rules.js';
import { SteppedLoop } from './stepped-loop.js';

const SEGMENT = [{ offset: 0, length: 8 }];
const SEND = { opcode: WrOpcode.SEND, segments: SEGMENT };
/** Of the first byte of a packet: SEND Only, and an ACK. */
const SEND_ONLY = 0x04;
const ACKNOWLEDGE = 0x11;
const QUEUE_ENTRIES = 64;
/** How long the port of a consumer with `adaptive` is polled after a packet: docs/evd.md. */
const ADAPTIVE_US = 200;
const POLLING_PAYS = { pays: true, pollUs: 200, onCompletions: (): void => undefined };
const NOTHING: ReadonlySet<string> = new Set();
/** Microtasks between the answers of a consumer that awaits, one message after the other. */
const HOPS = 3;

export class PacedWorld implements Subject {
  private readonly clock = { timeUs: 1000, now: (): number => this.clock.timeUs };
  private readonly calls = new SteppedLoop();
  private readonly rules: PaceRules;
  private readonly port = new MemoryPort(gidFromIp('10.0.0.1'), 4096, 1 << 16);
  private readonly peer: Side;
  private readonly driver: HcaDriver;
  private readonly loop: EventLoop;
  private readonly memory: Memory;
  private readonly cq: CompletionQueue;
  private readonly qp: QueuePair;
  private readonly peerQp: QueuePair;
  private messagesLeft: number;
  private volleyLeft: number;
  private ownLeft: number;
  private deferredLeft: number;
  private sendsDone = 0;
  private peerSendsDone = 0;
  private received = 0;
  private peerReceived = 0;
  private posted = 0;
  private messagesOut = 0;
  /** First bytes of packets on their way to the device, and of one look. */
  private readonly coming: number[] = [];
  private came: number[] = [];
  private lastPacketUs = -Infinity;
  private spins = false;
  private peerIsAtIt = false;

  constructor(private readonly scenario: Scenario) {
    this.rules = new PaceRules(scenario);
    this.messagesLeft = scenario.messages;
    this.volleyLeft = scenario.volley;
    this.ownLeft = scenario.own;
    this.deferredLeft = scenario.deferred;
    this.peer = new Side('10.0.0.2', this.clock, 3, { memoryBytes: 4096 });
    const { port, peer, clock } = this;
    joinPorts(port, peer.port);
    this.watchPort();
    this.driver = new HcaDriver({
      name: 'searched',
      port,
      clock,
      random: new SeededRandom(1),
      logger: silentLogger,
      requestPump: () => this.loop.request(),
    });
    const { device } = this.driver;
    const pacer = new LoopPacer(this.driver.pacer, POLLING_PAYS);
    this.loop = new EventLoop(clock, this.calls, this.driver, this.driver, pacer);
    port.watch(this.driver.portHandlers(this.loop.wake));
    const pd = device.createProtectionDomain();
    const base = 0x10000n;
    const region = pd.registerMemory(new Uint8Array(4096), Access.LOCAL_WRITE, base);
    this.memory = { base, region };
    const onEvent = (): void => undefined;
    const onNotify = (): void => this.onNotify();
    this.cq = device.createCompletionQueue({ minEntries: 4 * QUEUE_ENTRIES, onNotify, onEvent });
    this.cq.setPolling(scenario.polling);
    const sizes = { maxSendWr: QUEUE_ENTRIES, maxReceiveWr: QUEUE_ENTRIES };
    const segments = { maxSendSge: 1, maxReceiveSge: 1, maxInlineBytes: 0 };
    const queues = { pd, sendCq: this.cq, receiveCq: this.cq, ...sizes, ...segments };
    this.qp = device.createQueuePair({ type: QpType.RC, ...queues, context: 1, onEvent });
    this.peerQp = peer.createQp();
    const pair = { a: { port }, b: peer } as unknown as HcaPair;
    connect(pair, this.qp, this.peerQp, scenario.foreign ? {} : { peer: { lateAcks: true } });
    const receives = Math.min(this.qp.receiveRing!.entries, this.peerQp.receiveRing!.entries) - 1;
    for (let i = 0; i < receives; i++) {
      postReceive(this.memory, this.qp, SEGMENT);
      postReceive(peer, this.peerQp, SEGMENT);
    }
    if (scenario.consumer !== 'polls') this.cq.arm(false);
    this.untilRest();
  }

  steps(): readonly string[] {
    const { calls, port, peer, scenario } = this;
    const next = calls.next();
    if (next !== undefined) return [next];
    const shown = this.cq.ring.length > 0;
    return [
      ...(calls.immediate ? ['turn'] : []),
      ...(port.pending > 0 ? ['port is readable'] : []),
      ...(peer.port.pending > 0 ? ['peer takes in'] : []),
      ...(this.messagesLeft > 0 ? ['peer sends'] : []),
      ...(this.ownLeft > 0 ? ['consumer sends'] : []),
      ...(this.deferredLeft === scenario.deferred && this.deferredLeft > 0 ? ['defer'] : []),
      ...(scenario.consumer === 'polls' && shown ? ['consumer polls'] : []),
      ...(scenario.polling === 'spin' && port.pending > 0 ? ['consumer spins'] : []),
    ];
  }

  take(step: string): Promise<void> {
    this.step(step);
    return Promise.resolve();
  }

  fingerprint(): string {
    const { calls, port, peer, cq, driver, clock } = this;
    const [pacer, ahead] = [driver['pacer'], driver['ahead']];
    const loop = this.loop as unknown as LoopState;
    const { pollUntilUs, sliceUntilUs, pumpsThisTurn, toldSeveral } = loop.pacer;
    const { sendsWaiting, notifications } = driver.device.hca;
    const state = [
      { ...pacer, readStreams: 0, shown: pacer['shown']?.['unseen'] },
      [pumpsThisTurn, toldSeveral, clock.timeUs < pollUntilUs, clock.timeUs < sliceUntilUs],
      [loop.pumpQueued, loop.goesOn, ahead],
      [calls.microtasks.length, calls.ticks.length, calls.immediate !== undefined],
      [port.pending, peer.port.pending, cq.ring.length, sendsWaiting],
      [this.messagesLeft, this.volleyLeft, this.ownLeft, this.deferredLeft, this.sendsDone],
      [this.received, this.peerReceived, this.peerSendsDone, port.counters.sentPackets],
      [this.came.length, notifications.length, ...this.rules.state],
    ];
    return textOf(state, NOTHING);
  }

  /** No time passes but for looks: nothing may be left to a timer, or to a packet that repeats. */
  finish(): Promise<void> {
    for (this.untilRest(); this.messagesLeft > 0; this.untilRest()) this.step('peer sends');
    for (; this.ownLeft > 0; this.untilRest()) this.step('consumer sends');
    const { messages, volley, own, posts } = this.scenario;
    const wrong: string[] = [];
    const check = (what: string, is: number, wanted: number): void => {
      if (is !== wanted) wrong.push(`${is} of ${wanted} ${what}`);
    };
    check('messages are received', this.received, messages + volley);
    check('messages of the peer are acknowledged', this.peerSendsDone, messages + volley);
    check('requests have left', this.peerReceived, messages + volley + own * posts);
    check('requests are complete', this.sendsDone, messages + volley + own * posts);
    if (wrong.length > 0) throw new Error(wrong.join(', '));
    this.rules.onEnd(this.received);
    return Promise.resolve();
  }

  /** As a fair event loop has it, and a system that tells of packets. */
  private untilRest(): void {
    for (;;) {
      const [step] = this.steps().filter((each) => !/sends|defer/.test(each));
      if (step === undefined) return;
      this.step(step);
    }
  }

  private step(step: string): void {
    const { calls, rules, driver } = this;
    rules.onStep(step);
    switch (step) {
      case 'microtask':
      case 'tick':
      case 'turn':
        calls.run(step);
        break;
      case 'port is readable':
        this.port.handlers!.onReadable();
        break;
      case 'peer takes in':
        this.peerTakesIn();
        break;
      case 'peer sends':
        this.peerSends(this.scenario.burst);
        break;
      case 'consumer sends':
        this.ownLeft -= 1;
        for (let i = 0; i < this.scenario.posts; i++) this.post(false);
        break;
      case 'defer':
        this.defer();
        break;
      case 'consumer polls':
        this.fetch();
        break;
      case 'consumer spins':
        this.spins = true;
        driver.progress();
        this.spins = false;
        this.fetch();
        break;
    }
    if (rules.broken !== undefined) throw new Error(rules.broken);
    rules.onShown(this.cq.ring.length > 0);
    if (!calls.isQuiet) return;
    const { requestsWait, responsesWait } = driver.device.hca.scheduler;
    const isPolled = this.clock.timeUs < this.lastPacketUs + ADAPTIVE_US;
    rules.onQuiet(requestsWait, responsesWait, isPolled, calls.immediate !== undefined, step);
  }

  /** A handler that wants to be called again and again. */
  private defer(): void {
    if (this.deferredLeft-- > 0) this.driver.defer(() => this.defer());
  }

  private onNotify(): void {
    const packets = this.came.length;
    if (this.came.includes(SEND_ONLY)) this.rules.beforeHandlers(packets);
    if (this.scenario.consumer === 'awaits') this.calls.microtask(() => this.fetch())();
    else this.fetch();
  }

  private fetch(): void {
    const messages = this.takeCompletions();
    const lone = messages === 1 && this.came.length === 1 && this.came[0] === SEND_ONLY;
    this.came = [];
    if (this.scenario.consumer === 'awaits') this.answerOneByOne(messages, lone);
    else for (let i = 0; i < messages; i++) this.answer(lone);
    if (this.scenario.consumer === 'polls') return;
    this.cq.arm(false);
    if (this.cq.ring.length > 0) this.fetch();
  }

  private takeCompletions(): number {
    const receives = drain(this.cq).filter(({ opcode }) => {
      if (opcode !== WcOpcode.RECV) this.sendsDone += 1;
      return opcode === WcOpcode.RECV;
    });
    this.received += receives.length;
    return receives.length;
  }

  /** As a loop of `await receive()` does. */
  private answerOneByOne(messages: number, lone: boolean): void {
    if (messages === 0) return;
    this.answer(lone);
    let next = (): void => this.answerOneByOne(messages - 1, false);
    for (let hop = 0; hop < HOPS; hop++) next = this.calls.microtask(next);
    next();
  }

  private answer(lone: boolean): void {
    postReceive(this.memory, this.qp, SEGMENT);
    this.post(lone);
  }

  private post(lone: boolean): void {
    this.posted += 1;
    postSend(this.memory, this.qp, SEND);
    this.rules.onPosted(this.posted - this.messagesOut, lone);
  }

  private peerSends(messages: number): void {
    this.messagesLeft -= messages;
    for (let i = 0; i < messages; i++) postSend(this.peer, this.peerQp, SEND);
    this.peerTakesIn();
  }

  private peerTakesIn(): void {
    const { peer, peerQp } = this;
    this.peerIsAtIt = true;
    peer.driver.pump();
    for (let i = drain(peer.receiveCq).length; i > 0; i--) {
      this.peerReceived += 1;
      postReceive(peer, peerQp, SEGMENT);
      if (this.volleyLeft-- > 0) postSend(peer, peerQp, SEND);
    }
    this.volleyLeft = Math.max(0, this.volleyLeft);
    this.peerSendsDone += drain(peer.sendCq).length;
    peer.driver.pump();
    this.peerIsAtIt = false;
  }

  /** Tells the rules of looks and of what leaves; a peer of a volley works while we look. */
  private watchPort(): void {
    const { port, peer, coming } = this;
    const receive = port.receive.bind(port);
    port.receive = () => {
      this.clock.timeUs += 1;
      this.rules.onLook(!this.spins, this.cq.ring.length > 0);
      const { volley, lag } = this.scenario;
      if (volley > 0 && !this.peerIsAtIt && this.clock.timeUs % lag === 0) this.peerTakesIn();
      const count = receive();
      if (count > 0) {
        this.rules.onCame();
        this.lastPacketUs = this.clock.timeUs;
        this.came = coming.splice(0, count);
      }
      return count;
    };
    const send = port.send.bind(port);
    port.send = (from, to) => {
      const before = this.messagesOut;
      const sent = send(from, to);
      if (this.messagesOut > before) this.rules.onMessagesSent();
      return sent;
    };
    port.filter = (packet) => {
      const isAck = packet[0] === ACKNOWLEDGE;
      if (!isAck) this.messagesOut += 1;
      this.rules.onPacket(isAck, this.received > 0);
      return [packet];
    };
    peer.port.filter = (packet) => {
      coming.push(packet[0]!);
      return [packet];
    };
  }
}

interface LoopState {
  readonly pumpQueued: boolean;
  readonly goesOn: boolean;
  readonly pacer: {
    readonly pollUntilUs: number;
    readonly sliceUntilUs: number;
    readonly pumpsThisTurn: number;
    readonly toldSeveral: boolean;
  };
}
