/**
 * The domain in its host process: the regions and receive queues of each opener, and the targets it
 * holds. A table has one function for each request of openers; the objects themselves are the
 * device's (HostObjects). No I/O: messages are passed in and out.
 */
import {
  type AsyncEventType,
  type CmEvent,
  type HandedRequest,
  QpState,
  SpiError,
  type XrcTargetOwner,
} from '../../../core/spi/index.js';
import {
  type HandedAnswer,
  handedRequestOf,
  type Note,
  type Op,
  type Request,
} from './messages.js';

type Of<Name extends Op> = Extract<Request, { readonly op: Name }>;

/** An object that can be ended. */
export interface HostedObject {
  destroy(): void;
}

export interface HostedQueue extends HostedObject {
  /** Receives have been posted. @throws SpiError an entry that is refused */
  look(): void;
  setLimit(limit: number): void;
  /** A completion of it was lost at the opener: nothing more is taken from it. */
  fail(): void;
}

export interface HostedTargetObject extends HostedObject {
  readonly qpn: number;
  modify(attributes: object): void;
  /** State and attributes. */
  query(): { readonly state?: QpState };
  /** Accepts a connection request. @throws SpiError of the CM */
  accept(request: HandedRequest, answer: HandedAnswer, onEvent: (event: CmEvent) => void): void;
}

/** A protection zone of an opener: where its regions and queues belong. */
export interface HostedSpace extends HostedObject {
  /** @param descriptor the caller's to close, as that of a queue */
  addRegion(request: Of<'addRegion'>, descriptor: number): HostedObject;
  addQueue(request: Of<'addQueue'>, descriptor: number, events: QueueEvents): HostedQueue;
}

export interface QueueEvents {
  onCompletions(): void;
  onEvent(event: AsyncEventType): void;
}

export interface HostObjects {
  createSpace(): HostedSpace;
  createTarget(onEvent: (event: AsyncEventType) => void): HostedTargetObject;
  /** A request that has been accepted has come again. */
  repeat(request: HandedRequest): void;
}

/** Sends notes to an opener. */
export type Tell = (note: Note) => void;

interface Target {
  readonly object: HostedTargetObject;
  /** `domain`: it ends with the domain, whatever is held. */
  readonly owner: XrcTargetOwner;
  /** Openers, with the number of their holds. */
  readonly holds: Map<Opener, number>;
}

/** An object in a zone. */
interface Placed<T extends HostedObject> extends HostedObject {
  readonly object: T;
}

/** A zone is there while something is in it. */
class Zones {
  private readonly spaces = new Map<number, { readonly space: HostedSpace; users: number }>();

  constructor(private readonly objects: Pick<HostObjects, 'createSpace'>) {}

  /** @throws SpiError of `make` */
  add<T extends HostedObject>(zone: number, make: (space: HostedSpace) => T): Placed<T> {
    const entry = this.spaces.get(zone) ?? { space: this.objects.createSpace(), users: 0 };
    this.spaces.set(zone, entry);
    entry.users += 1;
    const letGo = (): void => {
      entry.users -= 1;
      if (entry.users > 0) return;
      this.spaces.delete(zone);
      entry.space.destroy();
    };
    try {
      const object = make(entry.space);
      return {
        object,
        destroy: () => {
          object.destroy();
          letGo();
        },
      };
    } catch (error) {
      letGo();
      throw error;
    }
  }
}

export class Opener {
  isOpen = false;
  readonly zones: Zones;
  readonly regions = new Map<number, Placed<HostedObject>>();
  readonly queues = new Map<number, Placed<HostedQueue>>();

  constructor(
    readonly tell: Tell,
    objects: Pick<HostObjects, 'createSpace'>,
  ) {
    this.zones = new Zones(objects);
  }
}

export class HostDomain {
  private readonly openers = new Set<Opener>();
  private readonly targets = new Map<number, Target>();

  constructor(private readonly objects: HostObjects) {}

  get size(): number {
    return this.openers.size;
  }

  /** True if a caller has opened it; false if it is only connected. */
  get isOpen(): boolean {
    return [...this.openers].some(({ isOpen }) => isOpen);
  }

  enter(tell: Tell): Opener {
    const opener = new Opener(tell, this.objects);
    this.openers.add(opener);
    return opener;
  }

  /**
   * @param descriptors that came with it: the caller's to close
   * @returns the value of the answer
   * @throws SpiError that the opener gets instead
   */
  request(opener: Opener, request: Request, descriptors: readonly number[]): unknown {
    if (request.op !== 'open' && !opener.isOpen) {
      throw new SpiError('EINVAL', `${request.op} before open`);
    }
    const run = this.actions[request.op] as (
      opener: Opener,
      request: Request,
      descriptors: readonly number[],
    ) => unknown;
    return run(opener, request, descriptors);
  }

  /** @throws SpiError what the opener has written is no good */
  look(opener: Opener): void {
    for (const { object } of opener.queues.values()) object.look();
  }

  /** Unregisters an opener everywhere: it has closed the domain, or has been killed. */
  leave(opener: Opener): void {
    if (!this.openers.delete(opener)) return;
    for (const [qpn, target] of [...this.targets]) {
      if (target.holds.delete(opener) || !this.isOpen) this.endIfUnheld(qpn, target);
    }
    for (const queue of opener.queues.values()) queue.destroy();
    for (const region of opener.regions.values()) region.destroy();
  }

  private readonly actions: {
    readonly [Name in Op]: (
      opener: Opener,
      request: Of<Name>,
      descriptors: readonly number[],
    ) => unknown;
  } = {
    open: (opener, { mode }) => {
      if (mode === 'exclusive' && this.isOpen) throw new SpiError('EINVAL', 'it exists already');
      if (mode === 'existing' && !this.isOpen) throw new SpiError('ENODEV', 'there is none');
      opener.isOpen = true;
    },
    addRegion: (opener, request, [descriptor]) => {
      if (descriptor === undefined) throw new SpiError('EINVAL', 'addRegion without its memory');
      const region = opener.zones.add(request.zone, (space) =>
        space.addRegion(request, descriptor),
      );
      opener.regions.set(request.key, region);
    },
    removeRegion: ({ regions }, { key }) => {
      regions.get(key)?.destroy();
      regions.delete(key);
    },
    addQueue: (opener, request, [descriptor]) => {
      if (descriptor === undefined) throw new SpiError('EINVAL', 'addQueue without its memory');
      const { zone, srqn } = request;
      const events: QueueEvents = {
        onCompletions: () => opener.tell({ note: 'look' }),
        onEvent: (event) => opener.tell({ note: 'queueEvent', srqn, event }),
      };
      const queue = opener.zones.add(zone, (space) => space.addQueue(request, descriptor, events));
      opener.queues.set(srqn, queue);
    },
    removeQueue: ({ queues }, { srqn }) => {
      queues.get(srqn)?.destroy();
      queues.delete(srqn);
    },
    failQueue: ({ queues }, { srqn }) => queues.get(srqn)?.object.fail(),
    limit: (opener, { srqn, limit }) => queueOf(opener, srqn).setLimit(limit),
    createTarget: (opener, { owner }) => {
      const holds = new Map([[opener, 1]]);
      const object = this.objects.createTarget((event) => {
        for (const holder of [...holds.keys()]) {
          holder.tell({ note: 'targetEvent', qpn: object.qpn, event });
        }
      });
      this.targets.set(object.qpn, { object, owner, holds });
      return object.qpn;
    },
    hold: (opener, { qpn }) => {
      const { holds } = this.target(qpn);
      holds.set(opener, (holds.get(opener) ?? 0) + 1);
    },
    release: (opener, { qpn }) => {
      const target = this.target(qpn);
      const left = (target.holds.get(opener) ?? 0) - 1;
      if (left > 0) target.holds.set(opener, left);
      else target.holds.delete(opener);
      this.endIfUnheld(qpn, target);
    },
    accept: (opener, { qpn, ...message }) =>
      this.target(qpn).object.accept(handedRequestOf(message), message, (event) => {
        opener.tell({ note: 'connectionEvent', qpn, event });
      }),
    repeat: (_opener, message) => this.objects.repeat(handedRequestOf(message)),
    modify: (_opener, { qpn, attributes }) => this.target(qpn).object.modify(attributes),
    query: (_opener, { qpn }) => this.target(qpn).object.query(),
  };

  /** @throws SpiError('EINVAL') */
  private target(qpn: number): Target {
    const found = this.targets.get(qpn);
    if (found === undefined) throw new SpiError('EINVAL', `no target ${qpn} in the domain`);
    return found;
  }

  /**
   * One that the domain owns ends with the last opener; and with the one that made it, if that has
   * not come to make it ready.
   */
  private endIfUnheld(qpn: number, { object, owner, holds }: Target): void {
    if (holds.size > 0) return;
    if (owner === 'domain' && this.isOpen && isReady(object)) return;
    this.targets.delete(qpn);
    object.destroy();
  }
}

function isReady(target: HostedTargetObject): boolean {
  const { state } = target.query();
  return state !== QpState.RESET && state !== QpState.INIT;
}

/** @throws SpiError('EINVAL') */
function queueOf({ queues }: Opener, srqn: number): HostedQueue {
  const found = queues.get(srqn);
  if (found === undefined) throw new SpiError('EINVAL', `no receive queue ${srqn} of this opener`);
  return found.object;
}
