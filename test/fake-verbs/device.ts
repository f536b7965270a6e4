/** The verbs-level contract over libibverbs, as far as the rings are concerned. */
import type {
  Device,
  MemoryRegion,
  MemoryWindow,
  ProtectionDomain,
  QueuePairInit,
  SharedReceiveQueueInit,
} from '../../core/spi/device.js';
import type { AsyncEventType } from '../../core/spi/ib.js';
import { check, type Library, loadLibrary, made } from './library.js';
import { VerbsCompletionQueue } from './completion-queue.js';
import { VerbsQueuePair } from './queue-pair.js';
import { VerbsSharedReceiveQueue } from './shared-receive-queue.js';

type Proven = Pick<
  Device,
  'createCompletionQueue' | 'createProtectionDomain' | 'progress' | 'close'
>;

/** Handlers by object number; all objects of one device share the one for events. */
export interface Dispatch {
  readonly library: Library;
  readonly queues: Map<number, VerbsCompletionQueue>;
  /** Objects that events name: "queue pair 3 and SRQ 3" are told apart by the event's type. */
  readonly pairs: Map<number, VerbsQueuePair>;
  readonly shared: Map<number, VerbsSharedReceiveQueue>;
}

const FIRST_SRQ_EVENT = 14;
const LAST_SRQ_EVENT = 15;

export class VerbsDevice implements Proven {
  readonly library = loadLibrary();
  /** What handlers threw. */
  readonly thrown: unknown[] = [];
  private readonly dispatch: Dispatch = {
    library: this.library,
    queues: new Map(),
    pairs: new Map(),
    shared: new Map(),
  };
  private isOpen = true;

  constructor() {
    const onNotify = (cq: number): void => this.guard(() => this.dispatch.queues.get(cq)?.notify());
    const onEvent = (type: number, object: number): void =>
      this.guard(() => this.deliver(type as AsyncEventType, object));
    check('ibv_open_device', this.library.open(onNotify, onEvent));
  }

  createProtectionDomain(): VerbsProtectionDomain {
    return new VerbsProtectionDomain(this.library);
  }

  createCompletionQueue(
    init: ConstructorParameters<typeof VerbsCompletionQueue>[1],
  ): VerbsCompletionQueue {
    return new VerbsCompletionQueue(this.dispatch, init);
  }

  createQueuePair(init: QueuePairInit): VerbsQueuePair {
    return new VerbsQueuePair(this.dispatch, init);
  }

  createSharedReceiveQueue(init: SharedReceiveQueueInit): VerbsSharedReceiveQueue {
    return new VerbsSharedReceiveQueue(this.dispatch, init);
  }

  createMemoryWindow(pd: VerbsProtectionDomain, type: 1 | 2): MemoryWindow {
    const { library } = this;
    const handle = made('ibv_alloc_mw', library.allocMw(pd.number, type));
    return {
      handle,
      get rkey() {
        return library.mwRkey(handle);
      },
      destroy: () => check('ibv_dealloc_mw', library.deallocMw(handle)),
    };
  }

  /** Hardware needs no driving. */
  progress(): boolean {
    return false;
  }

  async close(): Promise<void> {
    if (!this.isOpen) return;
    this.isOpen = false;
    check('ibv_close_device', this.library.close());
  }

  /** What a handler throws stops nothing. */
  private guard(handler: () => void): void {
    try {
      handler();
    } catch (error) {
      this.thrown.push(error);
    }
  }

  private deliver(type: AsyncEventType, object: number): void {
    if (type === 0) this.dispatch.queues.get(object)?.init.onEvent(type);
    else if (type >= FIRST_SRQ_EVENT && type <= LAST_SRQ_EVENT) {
      this.dispatch.shared.get(object)?.init.onEvent(type);
    } else this.dispatch.pairs.get(object)?.eventHandler(type);
  }
}

export class VerbsProtectionDomain implements ProtectionDomain {
  readonly number: number;

  constructor(private readonly library: Library) {
    this.number = made('ibv_alloc_pd', library.allocPd());
  }

  registerMemory(memory: ArrayBufferView, access: number, iova?: bigint): MemoryRegion {
    const bytes = new Uint8Array(memory.buffer, memory.byteOffset, memory.byteLength);
    const out = new Uint32Array(4);
    const region = made(
      'ibv_reg_mr_iova',
      this.library.regMr(this.number, bytes, access, iova, out),
    );
    const [lkey = 0, rkey = 0, low = 0, high = 0] = out;
    return {
      lkey,
      rkey,
      lengthBytes: bytes.length,
      iova: (BigInt(high) << 32n) | BigInt(low),
      destroy: () => check('ibv_dereg_mr', this.library.deregMr(region)),
    };
  }

  destroy(): void {
    check('ibv_dealloc_pd', this.library.deallocPd(this.number));
  }
}
