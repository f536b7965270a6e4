/**
 * Grants the target access to the memory of a command. A memory window is bound before the command
 * and opens nothing else; the target closes it by SEND with invalidate, or this side does. A device
 * without windows uses the region itself, and offers no invalidation.
 */
import {
  CompletionFlags,
  type Ep,
  type Ia,
  type LmrSegment,
  MemPrivileges,
  type Pz,
  type Rmr,
} from 'dapl';

const { SUPPRESS } = CompletionFlags;

/** Memory that is open to the target. */
export interface Opened {
  /** The RMR context (rkey). */
  readonly stag: number;
  readonly address: bigint;
}

export interface Access {
  /** True if the target may end an access by SEND with invalidate. */
  readonly takesInvalidate: boolean;
  /** Entries of the request queue that a command takes, besides its SEND. */
  readonly requestsPerTask: number;
  open(segment: LmrSegment, direction: 'in' | 'out'): Opened;
  /** @param isInvalidated true if the target has closed it */
  close(opened: Opened, isInvalidated: boolean): void;
  /** The endpoint is gone. */
  free(): void;
}

interface OpenedWindow extends Opened {
  readonly rmr: Rmr;
}

/** Access by a memory window for each command in flight. */
export class WindowAccess implements Access {
  readonly takesInvalidate = true;
  readonly requestsPerTask = 2;
  private readonly unbound: Rmr[] = [];
  private readonly all: Rmr[] = [];

  constructor(
    private readonly ia: Ia,
    private readonly pz: Pz,
    private readonly ep: Ep,
  ) {}

  open(segment: LmrSegment, direction: 'in' | 'out'): OpenedWindow {
    const rmr = this.unbound.pop() ?? this.make();
    const privileges = direction === 'in' ? MemPrivileges.REMOTE_WRITE : MemPrivileges.REMOTE_READ;
    const stag = rmr.bind(segment, this.ep, { privileges, flags: SUPPRESS })!;
    return { rmr, stag, address: rmr.address! };
  }

  close(opened: Opened, isInvalidated: boolean): void {
    const { rmr } = opened as OpenedWindow;
    if (!isInvalidated) rmr.unbind(this.ep, { flags: SUPPRESS });
    this.unbound.push(rmr);
  }

  free(): void {
    for (const rmr of this.all) if (!rmr.isFreed) rmr.free();
  }

  private make(): Rmr {
    const rmr = this.ia.createRmrForEp(this.pz);
    this.all.push(rmr);
    return rmr;
  }
}

/** Access by the key of the region. */
export class RegionAccess implements Access {
  readonly takesInvalidate = false;
  readonly requestsPerTask = 0;

  open({ lmr, offsetBytes }: LmrSegment): Opened {
    return { stag: lmr.rmrContext!, address: lmr.address + BigInt(offsetBytes) };
  }

  close(): void {
    // The region stays open for as long as there are connections.
  }

  free(): void {
    // Nothing has been made.
  }
}
