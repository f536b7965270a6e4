/**
 * Shares the completions of an endpoint's private event dispatcher among those that want some of
 * them. It takes events while there is a taker. Events that no taker wanted are put back, in order,
 * when the last taker has left.
 */
import {
  checkSubscriber,
  type DatEvent,
  DatDto,
  type DtoCompletionEvent,
  type Evd,
  type EventSink,
  type RmrBindCompletionEvent,
} from '../evd/index.js';
import type { Ep } from '../dat/endpoint/ep.js';
import { checkPrivate } from '../dat/common/private-evd.js';

/** Completions with a cookie. */
export type RequestCompletion = DtoCompletionEvent | RmrBindCompletionEvent;

/** Waits for one completion of a request. */
export interface Claim {
  completed(event: RequestCompletion): void;
  /** The dispatcher has been freed: the completion will not come. */
  lost(): void;
}

/** Takes completions of the receives that it has posted. */
export interface Receiver {
  takes(event: DatEvent): event is DtoCompletionEvent;
  received(event: DtoCompletionEvent): void;
  /** The dispatcher has been freed. */
  ended(): void;
}

const RECEIVES: readonly DatDto[] = [
  DatDto.RECEIVE,
  DatDto.RECEIVE_WITH_INVALIDATE,
  DatDto.RECV_IMMED,
  DatDto.RECV_MSG_IMMED,
];

function isReceive(event: DatEvent): boolean {
  return event.type === 'dto' && RECEIVES.includes(event.operation);
}

export class Completions implements EventSink {
  private receiver: Receiver | undefined = undefined;
  /** By cookie, in the order of asking. */
  private readonly claims = new Map<number, Claim[]>();
  private unclaimed: DatEvent[] = [];
  private detach: (() => void) | undefined = undefined;

  constructor(private readonly evd: Evd) {}

  /**
   * Takes receives. While there is a receiver, completions of requests that no claim waits for are
   * dropped.
   * @returns ends it
   * @throws DatError DAT_INVALID_STATE when there is one, or something else takes the events
   */
  receive(receiver: Receiver): () => void {
    checkSubscriber('receives', this.receiver !== undefined);
    this.attach();
    this.receiver = receiver;
    return () => {
      if (this.receiver !== receiver) return;
      this.receiver = undefined;
      this.leaveIfIdle();
    };
  }

  /** Hands the receiver the completions queued for it. */
  catchUp(receiver: Receiver): void {
    while (this.receiver === receiver) {
      const at = this.unclaimed.findIndex((event) => receiver.takes(event));
      if (at < 0) return;
      receiver.received(this.unclaimed.splice(at, 1)[0] as DtoCompletionEvent);
    }
  }

  /**
   * Waits for the next completion with this cookie that no earlier claim waits for.
   * @returns ends it
   * @throws DatError DAT_INVALID_STATE when something else takes the events
   */
  claim(cookie: number, claim: Claim): () => void {
    this.attach();
    const present = this.claims.get(cookie);
    if (present === undefined) this.claims.set(cookie, [claim]);
    else present.push(claim);
    const at = this.unclaimed.findIndex((event) => cookieOf(event) === cookie);
    if (at >= 0 && present === undefined) this.next(this.unclaimed.splice(at, 1)[0]!);
    return () => {
      this.drop(cookie, claim);
      this.leaveIfIdle();
    };
  }

  next(event: DatEvent): void {
    const { receiver } = this;
    if (receiver?.takes(event) === true) {
      receiver.received(event);
      return;
    }
    const cookie = cookieOf(event);
    const claim = cookie === undefined ? undefined : this.claims.get(cookie)?.[0];
    if (cookie !== undefined && claim !== undefined) {
      this.drop(cookie, claim);
      claim.completed(event as RequestCompletion);
      this.leaveIfIdle();
    } else if (receiver === undefined || cookie === undefined) this.unclaimed.push(event);
  }

  complete(): void {
    const { receiver } = this;
    const claims = [...this.claims.values()].flat();
    this.receiver = undefined;
    this.claims.clear();
    this.unclaimed = [];
    this.detach = undefined;
    for (const claim of claims) claim.lost();
    receiver?.ended();
  }

  private attach(): void {
    this.detach ??= this.evd.attachSink(this);
  }

  private drop(cookie: number, claim: Claim): void {
    const rest = this.claims.get(cookie)?.filter((each) => each !== claim) ?? [];
    if (rest.length === 0) this.claims.delete(cookie);
    else this.claims.set(cookie, rest);
  }

  private leaveIfIdle(): void {
    if (this.receiver !== undefined || this.claims.size > 0) return;
    this.detach?.();
    this.detach = undefined;
    const { unclaimed } = this;
    this.unclaimed = [];
    if (unclaimed.length > 0) this.evd.putBack(unclaimed);
  }
}

/** Cookie of a request's completion; undefined for all other events. */
function cookieOf(event: DatEvent): number | undefined {
  const isRequest = (event.type === 'dto' && !isReceive(event)) || event.type === 'rmr-bind';
  return isRequest ? event.cookie : undefined;
}

const present = new WeakMap<Evd, Completions>();

/**
 * Completions of receives or of requests; of both if they share a dispatcher.
 * @throws DatError DAT_INVALID_STATE when those go to a dispatcher of the consumer's
 */
export function completionsOf(
  operation: string,
  ep: Ep,
  kind: 'recvEvd' | 'requestEvd',
): Completions {
  ep.record.assertLive(operation);
  const { init } = ep.record;
  const evd = init[kind];
  checkPrivate(operation, evd, init.privateEvds.includes(evd));
  let completions = present.get(evd);
  if (completions === undefined) present.set(evd, (completions = new Completions(evd)));
  return completions;
}
