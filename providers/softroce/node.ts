/**
 * A softroce device of this process: the software HCA on a socket port, driven by the event loop. A
 * doorbell rung in consumer code leaves at the end of the present task (one microtask), so what a
 * task posts goes out in one burst; packets and deadlines wake the loop.
 */
import type { Logger, PacketPort, Scheduler, TimerEntry, Timers } from '../../core/spi/index.js';
import { type HcaDevice, HcaDriver, type HcaParameters } from '../hca/index.js';
import {
  type HostNode,
  ProcessHoldCounter,
  NextTurn,
  RealTimer,
  SystemRandom,
  monotonicClock,
  onExit,
} from '../host/index.js';
import { SOCKET_PORT_COUNTERS, type SocketPort } from './port-options.js';

/** How long the port is polled after activity while an EVD asks for `adaptive`. */
const ADAPTIVE_POLL_US = 200;
/** Of that, without a turn of the event loop, and for the first message at most. */
const POLL_SLICE_US = 60;
const IDLE_SLICE_US = 20;
/**
 * Pumps that microtasks may ask for before the event loop has its turn: each may bring what wakes
 * the next, and no timer or socket of the application would ever be served.
 */
const MAX_PUMPS_A_TURN = 32;
/**
 * Completions of a pump that are one message and an ACK at most. A consumer that is told of more
 * may answer them one by one, each in a microtask of its own: all answers are to leave together.
 */
const TOLD_OF_ONE_MESSAGE = 2;

/** When the process ends: so long for goodbyes, and for sending what they have come to. */
const GOODBYES_US = 500_000;
const LAST_SENDS_US = 500_000;

/** Its reactions are microtasks, at a third of what `queueMicrotask` costs. */
const SETTLED = Promise.resolve();

export interface SoftroceNodeOptions {
  readonly name: string;
  readonly port: SocketPort;
  /** What the device reaches that port by; default the port itself. */
  readonly through?: PacketPort;
  readonly logger: Logger;
  readonly parameters: Partial<HcaParameters>;
}

export class SoftroceNode implements HostNode {
  readonly port: PacketPort;
  readonly device: HcaDevice;
  readonly scheduler: Scheduler;
  readonly random = new SystemRandom();
  readonly processHold: ProcessHoldCounter;
  /** The device's wheel; a start outside of the pump moves the real timer too. */
  readonly timers: Timers;
  private readonly driver: HcaDriver;
  private readonly timer: RealTimer;
  /** Pumps again after the event loop has had its turn. */
  private readonly nextTurn = new NextTurn(() => this.onTurn());
  private pumpQueued = false;
  private pumpsThisTurn = 0;
  /** Completions that the last pump has brought. */
  private told = 0;
  /** `goOn` is going to run. */
  private goesOn = false;
  private pollUntilUs = 0;
  /** Until then the port may be looked at without a turn of the event loop. */
  private sliceUntilUs = 0;
  private seenPackets = 0;
  private closed = false;
  private noExit: (() => void) | undefined = undefined;

  constructor(options: SoftroceNodeOptions) {
    const { name, port: socketPort, logger, parameters } = options;
    const { mapFile, shareMemory, allocate } = socketPort;
    const port = options.through ?? socketPort;
    this.port = port;
    this.driver = new HcaDriver({
      name,
      port,
      clock: monotonicClock,
      random: this.random,
      logger,
      parameters,
      requestPump: () => this.queuePump(),
      hooks: {
        portCounters: SOCKET_PORT_COUNTERS,
        onClosed: () => this.close(),
        ...(mapFile && { mapFile: mapFile.bind(socketPort) }),
        ...(shareMemory && { shareMemory: shareMemory.bind(socketPort) }),
        ...(allocate && { allocate: allocate.bind(socketPort) }),
      },
    });
    this.scheduler = this.driver;
    this.timer = new RealTimer(monotonicClock, () => this.onWake());
    this.processHold = new ProcessHoldCounter((alive) => this.setProcessHold(alive));
    this.timers = {
      start: (timer: TimerEntry, deadlineUs: number) => {
        this.driver.timers.start(timer, deadlineUs);
        this.timer.arm(this.driver.nextDeadlineUs());
      },
      stop: (timer: TimerEntry) => this.driver.timers.stop(timer),
    };
    port.watch(this.driver.portHandlers(() => this.onWake()));
    this.device = this.driver.device;
  }

  private queuePump(): void {
    if (this.pumpQueued || this.closed) return;
    this.pumpQueued = true;
    const one = this.told <= TOLD_OF_ONE_MESSAGE;
    void SETTLED.then(one ? this.onMicrotask : this.onLastMicrotask);
  }

  /** A tick that a microtask asks for comes when all microtasks have run. */
  private readonly onLastMicrotask = (): void => process.nextTick(this.onMicrotask);

  private readonly onMicrotask = (): void => {
    if (!this.pumpQueued || this.closed) return;
    if (this.pumpsThisTurn >= MAX_PUMPS_A_TURN) {
      this.nextTurn.request();
      return;
    }
    this.pumpsThisTurn += 1;
    const before = this.answers;
    this.pump();
    if (this.answers !== before && this.pollsOnWithinSlice()) this.goOnInMicrotask();
  };

  /**
   * When all microtasks have run, which a tick asked for by one of them waits for. From the tick it
   * takes a further one, for what that wakes comes right behind it.
   */
  private goOnInMicrotask(): void {
    if (this.goesOn) return;
    this.goesOn = true;
    void SETTLED.then(this.askForTick);
  }

  private readonly askForTick = (): void => process.nextTick(this.onTick);

  private readonly onTick = (): void => void SETTLED.then(this.goOn);

  private readonly goOn = (): void => {
    this.goesOn = false;
    if (this.pollsOnWithinSlice()) this.converse();
  };

  private onWake(): void {
    this.pumpsThisTurn = 0;
    this.pump();
  }

  private onTurn(): void {
    this.pumpsThisTurn = 0;
    this.sliceUntilUs = this.device.hca.nowUs + POLL_SLICE_US;
    this.converse();
  }

  /** Goes on with a consumer that answers what comes. */
  private converse(): void {
    let before: number;
    let came: boolean;
    do {
      before = this.answers;
      came = this.pollUntilUs > 0 && this.poll();
      this.pump(came);
    } while (this.answers !== before && this.pollsOnWithinSlice());
    if (came && this.pollsOnWithinSlice()) this.goOnInMicrotask();
  }

  /** Packets sent but for ACKs, which leave whatever the consumer does. */
  private get answers(): number {
    return this.port.counters.sentPackets - this.device.hca.counters.acksSent;
  }

  /** Looks at the port until something comes, for a slice of the time that it is polled. */
  private poll(): boolean {
    const { device } = this;
    this.pumpQueued = true;
    const untilUs = Math.min(device.hca.nowUs + IDLE_SLICE_US, this.pollUntilUs);
    // A port that closes tells no time any more, and needs a turn of the event loop to end.
    while (!device.progress()) {
      if (device.isClosing || device.hca.nowUs >= untilUs) return false;
    }
    return true;
  }

  /**
   * Whether the consumer, which has just answered, may get the next message before the event loop
   * has its turn, which would cost it as much as five looks at the port.
   */
  private pollsOnWithinSlice(): boolean {
    const { nowUs } = this.device.hca;
    const untilUs = Math.min(this.sliceUntilUs, this.pollUntilUs);
    return !this.closed && !this.driver.acksWait && nowUs < untilUs;
  }

  private pump(untilHandlers = false): void {
    this.pumpQueued = false;
    if (this.closed) return;
    const { counters } = this.device.hca;
    const before = counters.completions;
    const busy = this.driver.pump(untilHandlers);
    this.told = counters.completions - before;
    // A handler has closed the device: a port that is gone has no time that could pass.
    if (this.closed) return;
    const polls = this.pollsOn();
    if (busy || polls) this.nextTurn.request();
    else this.timer.arm(this.driver.nextDeadlineUs());
  }

  /** Whether the port is looked at again at once, without waiting for the system to wake us. */
  private pollsOn(): boolean {
    const { adaptiveCqs, readStreams, nowUs } = this.device.hca;
    const { receivedPackets } = this.port.counters;
    if (adaptiveCqs === 0) this.pollUntilUs = readStreams.nextUs(nowUs);
    else if (receivedPackets !== this.seenPackets) this.pollUntilUs = nowUs + ADAPTIVE_POLL_US;
    this.seenPackets = receivedPackets;
    return nowUs < this.pollUntilUs;
  }

  /**
   * When the process exits with the device open, peers get to know: what `goodbyes` posts leaves
   * before the process ends, within a second.
   */
  atExit(goodbyes: (mayGoOn: () => boolean) => void): void {
    this.noExit = onExit(() => {
      const startUs = monotonicClock.now();
      goodbyes(() => monotonicClock.now() < startUs + GOODBYES_US);
      this.driver.sendLast(startUs + GOODBYES_US + LAST_SENDS_US);
    });
  }

  private setProcessHold(alive: boolean): void {
    this.port.setProcessHold(alive);
    this.timer.setProcessHold(alive);
    this.nextTurn.setProcessHold(alive);
  }

  private close(): void {
    this.closed = true;
    this.noExit?.();
    this.timer.close();
    this.nextTurn.cancel();
  }
}
