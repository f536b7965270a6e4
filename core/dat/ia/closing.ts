/** The close of an interface adapter: begun once, from an upcall or not, with a time limit. */
import { tearDown, type TeardownStep } from '../../di/index.js';
import { DatError } from '../../errors/index.js';
import type { Cno, Evd, Upcall } from '../../evd/index.js';
import type { DeviceLease, DeviceRelease, IaChild, AdapterState } from '../common/adapter-state.js';
import type { CloseFlag } from '../common/constants.js';
import { ServicePoint } from '../connect/service-point.js';
import { UdEp } from '../datagram/endpoint.js';
import { Ep } from '../endpoint/ep.js';
import type { IaMad } from '../mad/calls.js';
import { Lmr } from '../memory/lmr.js';
import { Pz } from '../memory/pz.js';
import { Srq } from '../srq/srq.js';
import { Rmr } from '../window/rmr.js';
import { XrcDomain } from '../xrc/domain.js';

/** Resources that a close gives back, and its timeout. */
export interface ClosingInit {
  readonly lease: DeviceLease;
  readonly mad: IaMad;
  readonly timeoutMs: number;
}

export class IaClosing {
  /** Upcalls that have closed the adapter. */
  private readonly callers = new Set<Upcall>();
  /** Event dispatchers that the close is ending. */
  private ending: readonly Evd[] = [];
  private closed: Promise<void> | undefined = undefined;
  /** Ends the adapter's own use of the asynchronous EVD, which cannot be freed before. */
  private readonly leaveAsyncEvd: () => void;

  constructor(
    private readonly core: AdapterState,
    private readonly init: ClosingInit,
  ) {
    this.leaveAsyncEvd = core.asyncEvd.feed.attach();
  }

  /**
   * @param upcall that closes the adapter; the close does not wait for it
   * @throws DatError DAT_INVALID_STATE / DAT_INVALID_STATE_IA_IN_USE; DAT_INTERNAL_ERROR
   */
  async close(flag: CloseFlag, upcall: Upcall | undefined): Promise<void> {
    if (this.closed === undefined && flag === 'graceful') this.checkUnused();
    if (upcall !== undefined) this.closedFrom(upcall);
    if (this.closed !== undefined) return this.closed;
    this.core.isClosing = true;
    for (const end of [...this.core.closers]) end();
    this.closed = this.run();
    return this.closed;
  }

  /** The close does not wait for upcalls that close the adapter, whether first or later. */
  private closedFrom(upcall: Upcall): void {
    this.callers.add(upcall);
    for (const evd of this.ending) evd.joinEnd(upcall);
  }

  private checkUnused(): void {
    const { children, evds, cnos, ia } = this.core;
    const left = children.size + evds.size - 1 + cnos.size + this.init.mad.size;
    if (left === 0) return;
    throw new DatError('DAT_INVALID_STATE', {
      subtype: 'DAT_INVALID_STATE_IA_IN_USE',
      operation: 'ia.close',
      message: `${left} objects of interface adapter ${ia.id} are left`,
      hint: 'free them first, or close abruptly',
      value: left,
    });
  }

  private async run(): Promise<void> {
    const { core, callers } = this;
    const { lease, mad, timeoutMs } = this.init;
    const { clock, timers, processHold } = core.context;
    const evds = (): readonly Evd[] => {
      this.leaveAsyncEvd();
      this.ending = [...core.evds];
      return this.ending;
    };
    const release = lease.release();
    const steps = closeSteps({
      children: core.children,
      evds,
      cnos: () => [...core.cnos],
      callers,
      endAgents: () => mad.unregisterAll(),
      release,
    });
    processHold.retain();
    try {
      await tearDown(steps, { operation: 'ia.close', clock, timers, deadlineMs: timeoutMs });
    } finally {
      processHold.release();
      core.ia.markFreed('ia.close');
      release.done();
    }
  }
}

/** The order in which an interface adapter ends its remaining objects. */
interface CloseScope {
  readonly children: ReadonlySet<IaChild>;
  /** Objects that are left when their step begins. */
  readonly evds: () => readonly Evd[];
  readonly cnos: () => readonly Cno[];
  /** Upcalls that close the adapter, which must not be waited for; more may join. */
  readonly callers: ReadonlySet<Upcall>;
  /** Unregisters the agents for management datagrams. */
  readonly endAgents: () => Promise<void>;
  readonly release: DeviceRelease;
}

/**
 * Connections first, while the peer can still be told. Then the modules, if this is the last
 * adapter of the device, with its MAD agents between CM and MAD. Then queue pairs, windows, shared
 * receive queues, completion queues, regions, zones; the device.
 */
export function closeSteps(scope: CloseScope): TeardownStep[] {
  const { children, evds, cnos, callers, release, endAgents } = scope;
  const of = <T extends IaChild>(type: abstract new (...args: never[]) => T): T[] =>
    [...children].filter((child): child is T => child instanceof type);
  const step = (name: string, run: () => void | Promise<void>): TeardownStep => ({ name, run });
  return [
    step('service points', () => each(of(ServicePoint), (point) => point.shutdown('ia.close'))),
    step('datagram services', () => each(of(UdEp), (ep) => ep.shutdown('ia.close'))),
    step('connections', () => {
      for (const srq of of(Srq)) srq.shutdown();
      each(of(Ep), (ep) => ep.shutdown());
    }),
    ...release.modules.filter(isCm),
    step('MAD agents', endAgents),
    ...release.modules.filter((module) => !isCm(module)),
    step('queue pairs', () => each([...of(Ep), ...of(UdEp)], (ep) => ep.destroy('ia.close'))),
    step('memory windows', () => each(of(Rmr), (rmr) => rmr.destroy('ia.close'))),
    step('shared receive queues', () => each(of(Srq), (srq) => srq.destroy('ia.close'))),
    step('XRC domains', () => each(of(XrcDomain), (domain) => domain.destroy('ia.close'))),
    step('event dispatchers', () => freeAll(evds(), callers)),
    step('notification objects', () => each(cnos(), (cno) => cno.close())),
    step('memory regions', () => each(of(Lmr), (lmr) => lmr.destroy('ia.close'))),
    step('protection zones', () => each(of(Pz), (pz) => pz.destroy('ia.close'))),
    ...release.device,
  ];
}

function isCm({ name }: TeardownStep): boolean {
  return name === 'CM';
}

/** A failure does not keep the others from ending. */
function each<T>(items: readonly T[], end: (item: T) => void): void {
  const failures: unknown[] = [];
  for (const item of items) {
    try {
      end(item);
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length === 1) throw failures[0];
  if (failures.length > 1) throw new AggregateError(failures, `${failures.length} objects failed`);
}

async function freeAll(evds: readonly Evd[], callers: ReadonlySet<Upcall>): Promise<void> {
  const results = await Promise.allSettled(evds.map(async (evd) => evd.end(callers)));
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}
