/** The rules of queues and completion queues, over a device that is listened to. */
import type {
  CompletionQueue,
  QueuePair,
  QueuePairInit,
  SharedReceiveQueue,
} from '../device/device.js';
import { AsyncEventType, QpState } from '../wire/ib.js';
import type { Ring } from '../layout/ring.js';
import { completionAt, indices, type ObservedCompletion, receiveAt, sendAt } from './entries.js';
import type {
  CompletionQueueTap,
  DeviceTap,
  QueuePairTap,
  SharedReceiveQueueTap,
} from './tapped-device.js';
import type { Report } from './breaches.js';
import type { CallDepth } from './call-depth.js';
import { QueueRules, SlotRules } from './queue-rules.js';

/** Of one queue pair. */
interface QueuePairRules {
  readonly context: number;
  readonly sends: QueueRules;
  readonly receives: QueueRules | SlotRules;
}

/** Of one completion queue. */
interface Losses {
  /** CQ_ERR has come: completions may be missing from now on. */
  told: boolean;
}

export class DeviceRules implements DeviceTap {
  private readonly queuePairs = new Map<number, QueuePairRules>();
  /** By queue, and by number where it has one: XRC targets are known by that. */
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
      // Of an XRC target; or of a queue pair that is gone: it stays in the ring until it is read.
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
