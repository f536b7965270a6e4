/**
 * Remote memory region (dat_rmr): a window that grants peers a part of a region. Granting and
 * revoking is in the order of an endpoint's requests.
 */
import { DatError, spiCall } from '../../errors/index.js';
import { EvdFlags } from '../../evd/index.js';
import { showAs } from '../../spi/checks/index.js';
import { type MemoryWindow, nextRkey, WrOpcode } from '../../spi/index.js';
import type { AdapterState } from '../common/adapter-state.js';
import { CompletionFlags, flagNames, MemPrivileges, VaType } from '../common/constants.js';
import { begin, checkHandle, Handle } from '../common/handle.js';
import { Symbolic } from '../common/trace.js';
import type { EndpointState } from '../endpoint/endpoint-state.js';
import { Ep } from '../endpoint/ep.js';
import { privilegesText } from '../memory/lmr-options.js';
import type { Lmr } from '../memory/lmr.js';
import { Pz } from '../memory/pz.js';
import type { LmrSegment } from '../memory/segment.js';
import { type BindWork, RmrBinding } from '../work/binds.js';
import { checkCookie, checkFlags } from '../work/post-checks.js';
import { bindWords, checkBindOptions, type RmrBindOptions } from './rmr-options.js';
import type { Ia } from '../ia/ia.js';
import { notSupported, OUT_OF } from '../common/unsupported.js';

/** Posts binds: `rmr.bind` and `rmr.unbind` on an endpoint. */
const { SUPPRESS, UNSIGNALLED, BARRIER_FENCE } = CompletionFlags;

/**
 * Checks that a bind may be posted now, and that there is room for its entries.
 * @throws DatError
 */
function checkBind(
  record: EndpointState,
  operation: string,
  cookie: number,
  flags: number,
  entries: number,
): void {
  record.assertLive(operation);
  record.checkLegal(operation, 'bindRmr');
  checkCookie(operation, cookie);
  const unsignalled = record.attributes.requestCompletionFlags & UNSIGNALLED;
  checkFlags(operation, flags, SUPPRESS | BARRIER_FENCE | unsignalled);
  checkBindEvd(record, operation);
  const { sends } = record.queues;
  if (sends.free < entries) record.takeInCompletions();
  if (sends.free >= entries) return;
  throw new DatError('DAT_INSUFFICIENT_RESOURCES', {
    subtype: 'DAT_RESOURCE_CREDITS',
    operation,
    message: `it takes ${entries} entries of the request queue; ${sends.free} are free`,
    hint: 'wait for completions, or ask for more in the endpoint attributes',
    value: sends.free,
  });
}

function checkBindEvd({ init }: EndpointState, operation: string): void {
  const { requestEvd } = init;
  if ((requestEvd.streams & EvdFlags.RMR_BIND) !== 0) return;
  throw new DatError('DAT_INVALID_STATE', {
    subtype: 'DAT_INVALID_STATE_EP_EVD_REQUEST',
    operation,
    message: `event dispatcher ${requestEvd.id} of the endpoint was made without EvdFlags.RMR_BIND`,
    hint: 'give the endpoint a requestEvd whose streams have EvdFlags.RMR_BIND',
    value: requestEvd,
  });
}

/** Endpoints that may use a window: any of its zone, or the one that it was bound through. */
export type RmrScope = 'PZ' | 'EP';

/** Result of `rmr.query()` (DAT_RMR_PARAM); an unbound window has only the first three. */
export interface RmrParameters {
  readonly ia: Ia;
  readonly pz: Pz;
  readonly scope: RmrScope;
  readonly lmr: Lmr | undefined;
  readonly address: bigint | undefined;
  readonly lengthBytes: number | undefined;
  readonly rmrContext: number | undefined;
  /** Bit set of MemPrivileges; 0 when it is unbound. */
  readonly privileges: number;
  /** A number of VaType. */
  readonly vaType: number;
}

/** Made by `ia.createRmr()` or `ia.createRmrForEp()`. */
export class Rmr extends Handle {
  static {
    showAs(this, 'Rmr', ({ id, scope, newest: bound, isFreed: freed }) => {
      if (bound === undefined) return { id, scope, unbound: true, freed };
      const privileges = new Symbolic(flagNames(MemPrivileges, bound.privileges));
      return { id, scope, lmr: bound.lmr, privileges, freed };
    });
  }

  readonly handleType = 'RMR';
  /** The newest bind that has succeeded. */
  private settled: RmrBinding | undefined = undefined;
  /** Binds posted and not completed, oldest first; undefined is an unbind. */
  private readonly pending: (RmrBinding | undefined)[] = [];
  /** Key of the newest bind posted, or the window's own. */
  private key: number;
  private isGone = false;

  /** @internal */
  constructor(
    /** @internal */
    readonly core: AdapterState,
    readonly pz: Pz,
    readonly scope: RmrScope,
    private readonly window: MemoryWindow,
  ) {
    super();
    this.key = window.rkey;
    pz.users++;
  }

  get ia(): Ia {
    return this.core.ia;
  }

  /** Context that peers use (rkey), from the post of the bind on; undefined when unbound. */
  get rmrContext(): number | undefined {
    return this.newest?.rmrContext;
  }

  /** Address of the first byte for peers; undefined when unbound. */
  get address(): bigint | undefined {
    return this.newest?.address;
  }

  /**
   * Binds the window to a part of a region, in place of its present binding (dat_rmr_bind). Takes
   * effect in the order of the endpoint's requests: later requests begin when it is done, so a send
   * behind it may carry the new context. The completion is an RMR bind event on the request EVD; a
   * failure breaks the connection.
   * @param segment what peers may reach; of length 0, this is `unbind`
   * @param options privileges (default REMOTE_READ), cookie, flags, vaType
   * @returns the new context (rkey); the old one is dead when the bind is done. Undefined when it
   * was an unbind
   * @throws DatError DAT_INVALID_STATE unless the endpoint is CONNECTED, COMPLETION_PENDING or
   * DISCONNECTED (it is flushed); DAT_INVALID_STATE_EP_EVD_REQUEST when its request EVD lacks
   * EvdFlags.RMR_BIND; DAT_PROTECTION_VIOLATION (zones differ); DAT_PRIVILEGES_VIOLATION (remote
   * read needs LOCAL_READ of the region, remote write and atomics LOCAL_WRITE);
   * DAT_INSUFFICIENT_RESOURCES / DAT_RESOURCE_CREDITS; DAT_INVALID_HANDLE, DAT_INVALID_PARAMETER;
   * DAT_MODEL_NOT_SUPPORTED (VaType.ZB but for an endpoint's window)
   */
  bind(segment: LmrSegment, ep: Ep, options: RmrBindOptions = {}): number | undefined {
    const operation = 'rmr.bind';
    this.traceBind(operation, ep, segment, options);
    const { cookie, flags, privileges, zeroBased } = this.checkBind(
      operation,
      segment,
      ep,
      options,
    );
    if (segment.lengthBytes === 0) {
      this.postUnbind(operation, ep, cookie, flags);
      return undefined;
    }
    const replaced = this.scope === 'EP' ? this.newest : undefined;
    checkBind(ep.record, operation, cookie, flags, replaced === undefined ? 1 : 2);
    if (replaced !== undefined) this.checkSameEndpoint(operation, ep, replaced);
    this.key = this.nextKey();
    const words = bindWords(this.window.handle, segment, privileges, zeroBased, this.key);
    const work = { opcode: WrOpcode.BIND_MW, words, replaces: replaced?.rmrContext };
    const { queues } = ep.record;
    const binding = new RmrBinding(segment, privileges, zeroBased, this.key, queues);
    this.pending.push(binding);
    queues.binds.post(this, binding, work, cookie, flags);
    return this.key;
  }

  /**
   * Revokes the window, in the order of the endpoint's requests (dat_rmr_bind of length 0). The
   * completion is an RMR bind event.
   * @throws DatError as `bind`
   */
  unbind(ep: Ep, options: Pick<RmrBindOptions, 'cookie' | 'flags'> = {}): void {
    const operation = 'rmr.unbind';
    this.traceBind(operation, ep, undefined, options);
    const { cookie, flags } = this.checkBind(operation, undefined, ep, options);
    this.postUnbind(operation, ep, cookie, flags);
  }

  /** dat_rmr_query: its binding, including pending binds. */
  query(): RmrParameters {
    begin(this, 'rmr.query');
    this.core.takeInCompletions();
    const { ia, pz, scope, newest } = this;
    return {
      ia,
      pz,
      scope,
      lmr: newest?.lmr,
      address: newest?.address,
      lengthBytes: newest?.lengthBytes,
      rmrContext: newest?.rmrContext,
      privileges: newest?.privileges ?? MemPrivileges.NONE,
      vaType: newest?.zeroBased === true ? VaType.ZB : VaType.VA,
    };
  }

  /**
   * Frees the window (dat_rmr_free), unbinding it first: immediately, so a peer's transfer in
   * progress is cut off. While binds of it are pending, it is freed when the last has completed.
   */
  free(): void {
    const operation = begin(this, 'rmr.free');
    this.core.takeInCompletions();
    this.markFreed(operation);
    if (this.pending.length === 0) this.end(operation);
  }

  [Symbol.dispose](): void {
    if (!this.isFreed) this.free();
  }

  /** @internal teardown: endpoints have ended, with all pending binds */
  destroy(by: string): void {
    this.markFreed(by);
    this.end(by);
  }

  /** @internal a bind (or, without a binding, an unbind) has completed, in the order of posting */
  onBindDone(binding: RmrBinding | undefined, done: boolean): void {
    const at = this.pending.indexOf(binding);
    if (at >= 0) this.pending.splice(at, 1);
    if (done) {
      this.settled?.end();
      this.settled = binding?.isInvalidated === true ? undefined : binding;
    } else {
      binding?.end();
    }
    if (this.isFreed && this.pending.length === 0) this.end('rmr.free');
  }

  /** @internal the device has closed the window */
  onClosed(): void {
    this.settled?.end();
    this.settled = undefined;
  }

  /** @internal the peer has invalidated a key: false when it is not this window's */
  closeIf(rkey: number): boolean {
    const early = this.pending.find((binding) => binding?.rmrContext === rkey);
    if (early !== undefined) {
      early.isInvalidated = true;
      early.end();
      return true;
    }
    if (this.settled?.rmrContext !== rkey) return false;
    this.onClosed();
    return true;
  }

  /** @internal */
  get isOpen(): boolean {
    return this.settled !== undefined;
  }

  /** Key of the next bind. The window's key changes when the queue pair of its bind ends. */
  private nextKey(): number {
    return nextRkey(this.pending.length > 0 ? this.key : this.window.rkey);
  }

  /** The binding after all posted binds complete. */
  private get newest(): RmrBinding | undefined {
    const newest = this.pending.length > 0 ? this.pending.at(-1) : this.settled;
    return newest?.isInvalidated === true ? undefined : newest;
  }

  private postUnbind(operation: string, ep: Ep, cookie: number, flags: number): void {
    checkBind(ep.record, operation, cookie, flags, 1);
    const { newest } = this;
    let work: BindWork = { opcode: WrOpcode.RDMA_WRITE };
    if (this.scope === 'PZ') {
      this.key = this.nextKey();
      const words = bindWords(this.window.handle, undefined, 0, false, this.key);
      work = { opcode: WrOpcode.BIND_MW, words };
    } else if (newest !== undefined) {
      this.checkSameEndpoint(operation, ep, newest);
      work = { opcode: WrOpcode.LOCAL_INV, rkey: newest.rmrContext };
    }
    this.pending.push(undefined);
    ep.record.queues.binds.post(this, undefined, work, cookie, flags);
  }

  private checkBind(
    operation: string,
    segment: LmrSegment | undefined,
    ep: Ep,
    options: RmrBindOptions,
  ): ReturnType<typeof checkBindOptions> {
    this.assertLive(operation);
    checkHandle(operation, Ep, 'EP', ep, this.core);
    // The peer may have invalidated it meanwhile.
    if (this.scope === 'EP') this.core.takeInCompletions();
    return checkBindOptions(operation, this, segment, ep, options);
  }

  /** Queues of different endpoints have no common order. */
  private checkSameEndpoint(operation: string, ep: Ep, binding: RmrBinding): void {
    if (binding.queues === ep.record.queues) return;
    throw new DatError('DAT_INVALID_STATE', {
      operation,
      message: `window ${this.id} is bound through another endpoint, and only open to that`,
      hint: 'unbind it there first, or use ia.createRmr() for a window of the whole zone',
      value: ep,
    });
  }

  private traceBind(
    operation: string,
    ep: unknown,
    segment: LmrSegment | undefined,
    options: RmrBindOptions | undefined,
  ): void {
    this.core.context.trace?.(operation, {
      rmr: this.id,
      ep,
      lmr: segment?.lmr,
      lengthBytes: segment?.lengthBytes,
      ...(segment !== undefined && {
        privileges: privilegesText(options, MemPrivileges.REMOTE_READ),
      }),
      cookie: options?.cookie,
      flags: new Symbolic(flagNames(CompletionFlags, options?.flags ?? CompletionFlags.DEFAULT)),
    });
  }

  private end(by: string): void {
    if (this.isGone) return;
    this.isGone = true;
    spiCall({ operation: by }, () => this.window.destroy());
    this.onClosed();
    this.pz.users--;
    this.core.forget(this);
  }
}

export function createRmr(core: AdapterState, operation: string, pz: Pz, scope: RmrScope): Rmr {
  core.begin(operation, { pz });
  const { device } = core.context;
  checkHandle(operation, Pz, 'PZ', pz, core);
  if (device.createMemoryWindow === undefined) {
    const hint = 'give peers the rmrContext of a region of its own';
    throw notSupported(operation, 'this provider has no memory windows', hint);
  }
  const type = scope === 'PZ' ? 1 : 2;
  const window = spiCall({ operation, map: OUT_OF.windows }, () =>
    device.createMemoryWindow?.(pz.pd, type),
  );
  return core.adopt(new Rmr(core, pz, scope, window as MemoryWindow));
}
