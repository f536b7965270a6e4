/** A guard over a provider, which names each breach of the contract. */
import { checkValue, FUNCTION } from '../checks/index.js';
import type {
  CompletionQueue,
  Device,
  QueuePair,
  QueuePairInit,
  SharedReceiveQueue,
} from '../device/device.js';
import { refusing } from '../errors/consumer-errors.js';
import type { Ring } from '../layout/ring.js';
import type {
  CmAcceptOptions,
  CmConnection,
  CmConnectOptions,
  CmEvent,
  CmModule,
  CmRequest,
} from '../modules/cm.js';
import type { MadAgent, MadModule, MadSendHandle } from '../modules/mad.js';
import type { ConfiguredProvider } from '../plugin/define-plugin.js';
import { AsyncEventType, nameOf, QpState, WcStatus } from '../wire/ib.js';
import { type Breach, BREACHES, type Report } from './breaches.js';
import { CallDepth } from './call-depth.js';
import { decorate } from './decorate.js';
import {
  completionAt,
  indices,
  type ObservedCompletion,
  type PostedRequest,
  receiveAt,
  sendAt,
} from './entries.js';
import { type Over, over } from './over.js';
import {
  type CompletionQueueTap,
  type DeviceTap,
  type QueuePairTap,
  type SharedReceiveQueueTap,
  tapDevice,
} from './tapped-device.js';

/** Stages of a connection: they decide which events may follow. */
type Stage = 'connecting' | 'established' | 'ended' | 'over';

/** A stage, its legal events, and the next stage after each; all others are breaches. */
const NEXT: Readonly<Record<Stage, { readonly [Type in CmEvent['type']]?: Stage }>> = {
  connecting: {
    established: 'established',
    rejected: 'ended',
    unreachable: 'ended',
    'timed-out': 'ended',
    'accept-failed': 'ended',
    disconnected: 'ended',
    'timewait-exit': 'over',
  },
  established: { disconnected: 'ended', 'timewait-exit': 'over' },
  ended: { 'timewait-exit': 'over' },
  over: {},
};

/** Overrides for the members of a CM module. */
function strictCm(cm: CmModule, depth: CallDepth, report: Report): Over<CmModule> {
  const connected = <O extends CmConnectOptions | CmAcceptOptions>(
    what: string,
    options: O,
    begin: (options: O) => CmConnection,
  ): CmConnection => {
    let stage: Stage = 'connecting';
    const { qpn } = options.qp;
    const onEvent = (event: CmEvent): void =>
      depth.handler(`connection event ${event.type}`, () => {
        const next = NEXT[stage][event.type];
        if (next === undefined) {
          const seen = `${event.type} of queue pair ${qpn}, whose connection is ${stage}`;
          report('connection-events', seen);
        }
        stage = next ?? stage;
        options.onEvent(event);
      });
    const connection = depth.call(what, () => begin({ ...options, onEvent }));
    return over<CmConnection>(connection, {
      disconnect: () => depth.call('disconnect', () => connection.disconnect()),
      notifyEstablished: () =>
        depth.call('notifyEstablished', () => connection.notifyEstablished()),
      abandon: () => {
        depth.call('abandon', () => connection.abandon());
        stage = 'over';
      },
    });
  };
  const request = (inner: CmRequest): CmRequest =>
    over<CmRequest>(inner, {
      accept: (options) => connected('accept', options, (each) => inner.accept(each)),
      reject: (options) => depth.call('reject', () => inner.reject(options)),
    });
  const members: Over<CmModule> = {
    connect: (options) => connected('connect', options, (each) => cm.connect(each)),
    listen: (options) => {
      const { onRequest, onResolve } = options;
      return depth.call('listen', () =>
        cm.listen({
          ...options,
          ...(onRequest && {
            onRequest: (each: CmRequest) =>
              depth.handler('connection request', () => onRequest(request(each))),
          }),
          ...(onResolve && {
            onResolve: (each) => depth.handler('service question', () => onResolve(each)),
          }),
        }),
      );
    },
    close: () => depth.call('close', () => cm.close()),
  };
  if (cm.resolve) {
    members.resolve = (options) =>
      depth.call('resolve', () =>
        cm.resolve!({
          ...options,
          onResult: (result) => depth.handler('service answer', () => options.onResult(result)),
        }),
      );
  }
  return members;
}

/** Checks which completions may follow which requests, in one queue of a queue pair. */
class QueueRules {
  /** Handed over and not completed, oldest first. */
  private outstanding: PostedRequest[] = [];
  /** Completions of requests before this index are old: the queue pair was reset since. */
  private floor = 0;
  /** Signalled requests that a later completion has overtaken. */
  private passedOver = new Set<number>();
  private failed = false;

  /**
   * @param what `send queue of queue pair 17`
   * @param mayLose true if the completion queue has reported losses
   */
  constructor(
    private readonly what: string,
    private readonly report: Report,
    private readonly mayLose: () => boolean,
  ) {}

  posted(request: PostedRequest): void {
    this.outstanding.push(request);
  }

  /** RESET discards outstanding requests. */
  reset(producer: number): void {
    this.ended();
    this.outstanding = [];
    this.passedOver = new Set();
    this.floor = producer;
    this.failed = false;
  }

  /** A stopped send queue continues. */
  resumed(): void {
    this.failed = false;
  }

  completed(completion: ObservedCompletion): void {
    const { index, status } = completion;
    const { what } = this;
    const at = this.outstanding.findIndex((request) => request.index === index);
    const request = this.outstanding[at];
    if (request === undefined) {
      // An old completion from before a reset.
      if (((index - this.floor) | 0) < 0 || this.passedOver.delete(index)) return;
      this.report('completion-unknown', `${what}: entry ${index} is not outstanding`);
      return;
    }
    this.passOver(this.outstanding.slice(0, at), completion);
    this.outstanding.splice(0, at + 1);
    this.compare(request, completion);
    const isSuccess = status === WcStatus.SUCCESS;
    if (isSuccess && this.failed) {
      this.report('success-after-failure', `${what}: entry ${index} succeeded behind a failed one`);
    }
    if (!isSuccess) this.failed = true;
  }

  /** The queue has ended: overtaken requests have never completed. */
  ended(): void {
    const [missed] = this.passedOver;
    if (missed === undefined || this.mayLose()) return;
    const count = `${this.passedOver.size} in all`;
    this.report('completion-lost', `${this.what}: entry ${missed} never completed (${count})`);
  }

  /** Earlier requests should have completed. */
  private passOver(earlier: readonly PostedRequest[], { index, status }: ObservedCompletion): void {
    const missed = earlier.filter(({ signalled }) => signalled);
    const [first] = missed;
    if (first === undefined || this.mayLose()) return;
    for (const each of missed) this.passedOver.add(each.index);
    const seen = `entry ${index} completed (${nameOf(WcStatus, status)})`;
    this.report('completion-order', `${this.what}: ${seen} before entry ${first.index}`);
  }

  private compare(request: PostedRequest, completion: ObservedCompletion): void {
    const { what } = this;
    const { index, cookie, status } = completion;
    if (cookie !== request.cookie) {
      const seen = `${what}: entry ${index} has cookie ${cookie}, was posted with`;
      this.report('completion-cookie', `${seen} ${request.cookie}`);
    }
    if (!request.signalled && status === WcStatus.SUCCESS) {
      this.report('completion-unsignalled', `${what}: entry ${index} succeeded unsignalled`);
    }
  }
}

/** Rules for a shared receive queue: slots complete in any order. */
class SlotRules {
  private readonly outstanding = new Map<number, PostedRequest>();

  constructor(
    private readonly what: string,
    private readonly report: Report,
  ) {}

  posted(request: PostedRequest): void {
    this.outstanding.set(request.index, request);
  }

  completed({ index, cookie }: ObservedCompletion): void {
    const request = this.outstanding.get(index);
    if (request === undefined) {
      this.report('completion-unknown', `${this.what}: slot ${index} is not outstanding`);
      return;
    }
    this.outstanding.delete(index);
    if (cookie === request.cookie) return;
    const seen = `${this.what}: slot ${index} has cookie ${cookie}, was posted with`;
    this.report('completion-cookie', `${seen} ${request.cookie}`);
  }
}

// The rules of queues and completion queues, over a tapped device.

/** Rules for one queue pair. */
interface QueuePairRules {
  readonly context: number;
  readonly sends: QueueRules;
  readonly receives: QueueRules | SlotRules;
}

/** Losses of one completion queue. */
interface Losses {
  /** CQ_ERR has been reported: completions may be missing from now on. */
  told: boolean;
}

class DeviceRules implements DeviceTap {
  private readonly queuePairs = new Map<number, QueuePairRules>();
  /** By queue, and by its number if it has one: XRC targets use that. */
  private readonly shared = new WeakMap<SharedReceiveQueue, SlotRules>();
  private readonly numbered = new Map<number, SlotRules>();
  private readonly losses = new WeakMap<CompletionQueue, Losses>();

  constructor(
    private readonly depth: CallDepth,
    private readonly report: Report,
  ) {}

  call<T>(what: string, run: () => T): T {
    return this.depth.call(what, run);
  }

  handler(what: string, run: () => void): void {
    this.depth.handler(what, run);
  }

  queuePair(qp: QueuePair, init: QueuePairInit): QueuePairTap {
    const { qpn, sendRing, receiveRing } = qp;
    const mayLose = (cq: CompletionQueue) => (): boolean => this.losses.get(cq)?.told ?? false;
    const queue = (name: string, cq: CompletionQueue): QueueRules =>
      new QueueRules(`${name} queue of queue pair ${qpn}`, this.report, mayLose(cq));
    const sends = queue('send', init.sendCq);
    const receives = queue('receive', init.receiveCq);
    const shared = init.srq && this.shared.get(init.srq);
    const rules: QueuePairRules = {
      context: init.context,
      sends,
      receives: shared ?? receives,
    };
    this.queuePairs.set(qpn, rules);
    return {
      sends: (from, to) => {
        for (const index of indices(from, to)) sends.posted(sendAt(qpn, sendRing, index, 0));
      },
      receives: (from, to) => {
        for (const index of indices(from, to)) {
          receives.posted(receiveAt({ qpn, srqn: 0 }, receiveRing!, index, 0));
        }
      },
      modified: ({ state }) => {
        if (state === QpState.RESET) {
          sends.reset(sendRing.producer);
          receives.reset(receiveRing?.producer ?? 0);
        }
        if (state === QpState.RTS) sends.resumed();
      },
      destroyed: () => {
        sends.ended();
        receives.ended();
        if (this.queuePairs.get(qpn) === rules) this.queuePairs.delete(qpn);
        for (const [name, ring] of [
          ['send', sendRing],
          ['receive', receiveRing],
        ] as const) {
          if (ring === undefined || ring.words.length === 0) continue;
          const seen = `the ${name} ring of queue pair ${qpn} has words after its end`;
          this.report('ring-not-ended', seen);
        }
      },
    };
  }

  completionQueue(cq: CompletionQueue): CompletionQueueTap {
    const losses: Losses = { told: false };
    this.losses.set(cq, losses);
    let armed = false;
    return {
      completions: (ring, from, to) => {
        this.checkRoom(ring);
        for (const index of indices(from, to)) this.completion(completionAt(ring, index, 0));
      },
      armed: () => {
        armed = true;
      },
      notified: () => {
        if (!armed) this.report('notify-unarmed', 'a completion queue that was not armed notified');
        armed = false;
      },
      event: (event) => {
        if (event === AsyncEventType.CQ_ERR) losses.told = true;
      },
    };
  }

  sharedReceiveQueue(srq: SharedReceiveQueue): SharedReceiveQueueTap {
    const { srqn } = srq;
    const rules = new SlotRules(`shared receive queue ${srqn}`, this.report);
    this.shared.set(srq, rules);
    if (srqn !== 0) this.numbered.set(srqn, rules);
    return {
      receives: ({ slots, submissions }, from, to) => {
        for (const index of indices(from, to)) {
          const slot = submissions.words[submissions.wordOf(index)]!;
          rules.posted(receiveAt({ qpn: 0, srqn }, slots, slot, 0));
        }
      },
      destroyed: () => {
        if (this.numbered.get(srqn) === rules) this.numbered.delete(srqn);
      },
    };
  }

  private checkRoom(ring: Ring): void {
    if (ring.length <= ring.entries) return;
    const seen = `${ring.length} completions in a ring of ${ring.entries}`;
    this.report('completion-overrun', seen);
  }

  private completion(completion: ObservedCompletion): void {
    const { kind, qpn, srqn, context } = completion;
    const rules = this.queuePairs.get(qpn);
    if (rules === undefined) {
      // An XRC target's, or one of a destroyed queue pair: it stays in the ring until it is read.
      this.numbered.get(srqn)?.completed(completion);
      return;
    }
    if (context !== rules.context) {
      const seen = `context ${context} of queue pair ${qpn}, made with ${rules.context}`;
      this.report('completion-context', seen);
    }
    (kind === 'send' ? rules.sends : rules.receives).completed(completion);
  }
}

export { type Breach, BREACHES, type BreachRule } from './breaches.js';

/**
 * The provider with a guard over its device and its modules. It is for tests of providers, and for
 * bug reports: it remembers every outstanding request.
 * @param onBreach called for each breach, where it is detected; an error that it throws goes to the
 * consumer's call, or to the provider's pump
 * @throws DatError DAT_INVALID_PARAMETER for what is no provider, or no function
 */
export function strict(
  provider: ConfiguredProvider,
  onBreach: (breach: Breach) => void,
): ConfiguredProvider {
  checkValue('onBreach', onBreach, FUNCTION, refusing('strict'));
  // Only one device of a provider is open at a time; its parts share the call depth.
  const depth = new CallDepth();
  const name = provider.instance.deviceKey;
  const report = reporter(name, onBreach);
  depth.report = report;
  const hasMad = provider.meta.provides.includes('mad');
  return decorate(
    provider,
    {
      device: (inner) => tapDevice(inner, new DeviceRules(depth, report)),
      cm: (inner) => strictCm(inner, depth, report),
      ...(hasMad && { mad: (inner) => strictMad(inner, depth, report) }),
    },
    { name: 'strict' },
  );
}

/** As above for a device alone: overrides for its members, for `over`. */
export function strictDevice(device: Device, onBreach: (breach: Breach) => void): Over<Device> {
  const depth = new CallDepth();
  const report = reporter(device.name, onBreach);
  depth.report = report;
  return tapDevice(device, new DeviceRules(depth, report));
}

function reporter(device: string, onBreach: (breach: Breach) => void): Report {
  return (rule, seen) =>
    onBreach({ rule, device, message: `${device}: ${seen}; the contract: ${BREACHES[rule]}` });
}

// Each sent MAD is reported once.

/** Overrides for the members of a MAD module. */
function strictMad(mad: MadModule, depth: CallDepth, report: Report): Over<MadModule> {
  return {
    registerAgent: (options) => {
      const { managementClass, onReceive, onSend } = options;
      const waiting = new Set<MadSendHandle>();
      let unregistered = false;
      const agent = depth.call('registerAgent', () =>
        mad.registerAgent({
          ...options,
          onReceive: (received) => depth.handler('MAD receive', () => onReceive(received)),
          onSend: (result) =>
            depth.handler('MAD send result', () => {
              if (!waiting.delete(result.handle) || unregistered) {
                const seen = `agent of class ${managementClass}: a result of no send`;
                report('mad-send-result', unregistered ? `${seen}, after its end` : seen);
              }
              onSend(result);
            }),
        }),
      );
      return over<MadAgent>(agent, {
        send: (send) => {
          const handle = depth.call('send', () => agent.send(send));
          waiting.add(handle);
          return handle;
        },
        cancel: (handle) => depth.call('cancel', () => agent.cancel(handle)),
        modify: (handle, timeoutUs) => depth.call('modify', () => agent.modify(handle, timeoutUs)),
        unregister: async () => {
          await depth.call('unregister', () => agent.unregister());
          unregistered = true;
          if (waiting.size === 0) return;
          const seen = `agent of class ${managementClass} ended with ${waiting.size} sends`;
          report('mad-send-result', `${seen} that were never reported`);
        },
      });
    },
    close: () => depth.call('close', () => mad.close()),
  };
}
