/** A portal for iSER initiators: a service point of an adapter. */
import { type Cr, DatError, type DatEvent, type Evd, type Ia, type ServicePoint } from 'dapl';
import { leaveUnhandled } from 'dapl/spi';
import { iserCmHeader } from '../../wire/index.js';
import type { SetAlarm, TargetNode } from '../../session/target-side/index.js';
import { EventDrain } from './event-drain.js';
import { IserMover } from './iser-mover.js';
import { RegisteredMemory } from './registered-memory.js';

export interface IserPortalParts {
  readonly target: TargetNode;
  readonly ia: Ia;
  /** Port in rdma_cm's TCP port space: 1 to 65535. */
  readonly port: number;
  /** `address:port`, as in SendTargets. */
  readonly name: string;
  /** Memory for the disk's bytes while they are moved. */
  readonly memory: Uint8Array;
  /** Bytes of a chunk that a command borrows. */
  readonly chunkBytes: number;
  readonly alarm: SetAlarm;
  /** Receives a sentence when a connection was not established, or a request was refused. */
  readonly onNote: (note: string) => void;
}

const BACKLOG = 128;
/** Receives for immediate commands, and for PDUs beyond the window. */
const SPARE_RECEIVES = 24;

export class IserPortal {
  readonly name: string;
  private readonly evd: Evd;
  private readonly psp: ServicePoint;
  private readonly drain: EventDrain;
  private readonly memory: RegisteredMemory;
  private readonly movers = new Set<IserMover>();

  /** @throws DatError DAT_CONN_QUAL_IN_USE; errors of creating memory and dispatchers */
  constructor(private readonly parts: IserPortalParts) {
    const { ia, port, name, memory, chunkBytes, target } = parts;
    this.name = name;
    this.memory = new RegisteredMemory(ia, memory, chunkBytes);
    this.evd = ia.createEvd({ qlen: BACKLOG });
    try {
      this.psp = ia.createPsp({ connQual: port, evd: this.evd });
    } catch (error) {
      leaveUnhandled(this.evd.free());
      throw error;
    }
    this.drain = new EventDrain(this.evd, (event) => this.take(event), queueMicrotask);
    this.drain.start();
    target.addPortal(name, true);
  }

  /** Stops listening; open connections continue. */
  async closeListener(): Promise<void> {
    await this.drain.tearDown();
    // An adapter that is closed has freed it, and then the dispatcher.
    this.psp[Symbol.dispose]();
    if (this.evd.isFreed) return;
    for (let event = this.evd.dequeue(); event !== undefined; event = this.evd.dequeue()) {
      if (event.type === 'connection-request') event.cr.reject();
    }
    await this.evd.free();
  }

  /** Resolves when all connections are closed, and frees the memory. */
  async free(): Promise<void> {
    await Promise.all([...this.movers].map((mover) => mover.freed));
    this.memory.free();
  }

  private take(event: DatEvent): void {
    if (event.type === 'connection-request') this.meet(event.cr);
  }

  private meet(request: Cr): void {
    const { ia, target, alarm, onNote } = this.parts;
    const { remoteAddress, remotePort, privateData } = request.query();
    const peer = `${bracketed(remoteAddress)}:${remotePort}`;
    let mover: IserMover | undefined;
    try {
      const takesInvalidate = invalidates(privateData);
      mover = new IserMover({
        ...{ target, ia, alarm, peer, takesInvalidate },
        memory: this.memory,
        portal: this.name,
        receives: target.options.commandDepth + SPARE_RECEIVES,
      });
      this.enter(mover);
      mover.accept(request, answerTo(takesInvalidate));
    } catch (error) {
      if (!DatError.isDatError(error)) throw error;
      if (!request.isFreed) request.reject();
      mover?.abandon(error.message);
      onNote(`${peer} is refused: ${error.message}`);
    }
  }

  private enter(mover: IserMover): void {
    this.movers.add(mover);
    leaveUnhandled(mover.freed.then(() => this.movers.delete(mover)));
  }
}

/**
 * True if the initiator accepts SEND with invalidate. It must say so: its private data has the
 * header of iSER, with the flag against it clear. Without private data the answer is no.
 */
function invalidates(privateData: Uint8Array): boolean {
  if (privateData.length < iserCmHeader.lengthBytes) return false;
  const header = iserCmHeader.view(privateData);
  return header.zbvaNotSupported && !header.sendWithInvalidateNotSupported;
}

function answerTo(takesInvalidate: boolean): Uint8Array {
  return iserCmHeader.make({
    zbvaNotSupported: true,
    sendWithInvalidateNotSupported: !takesInvalidate,
  }).bytes;
}

/** Formats an address for use before a port. */
export function bracketed(address: string): string {
  return address.includes(':') ? `[${address}]` : address;
}
