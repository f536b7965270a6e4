/** States of service points and connection requests, as data. */
/**
 * LISTENING takes requests. PENDING takes none, and waits for answers to those handed out. FREE is
 * the end.
 */
export type SpStateName = 'LISTENING' | 'PENDING' | 'FREE';

/** Triggers of a service point's transitions. */
export type SpTrigger =
  /** The consumer frees it, or the adapter is closed. */
  | 'free'
  /** A reserved service point has handed out its one request. */
  | 'one-shot'
  /** The last request handed out has been answered. */
  | 'answered';

interface SpTransition {
  readonly from: readonly SpStateName[];
  /** With requests handed out and not answered, and without. */
  readonly to: { readonly unanswered: SpStateName; readonly answered: SpStateName };
}

export const SP_TRANSITIONS: Readonly<Record<SpTrigger, SpTransition>> = {
  free: { from: ['LISTENING'], to: { unanswered: 'PENDING', answered: 'FREE' } },
  'one-shot': { from: ['LISTENING'], to: { unanswered: 'PENDING', answered: 'FREE' } },
  answered: { from: ['PENDING'], to: { unanswered: 'PENDING', answered: 'FREE' } },
};

/** States of a request; all but PENDING are final for the handle. */
export type CrStateName = 'PENDING' | 'ACCEPTED' | 'REJECTED' | 'HANDED_OFF';

/** Effect of a request on the endpoint that it holds, if it holds one. */
export type HeldEndpoint =
  /** Continues by itself: COMPLETION_PENDING. */
  | 'accepts'
  /**
   * Goes back to UNCONNECTED if it is a reserved service point's; freed if the provider made it.
   */
  | 'returns';

/** The calls of a request: the next state, and the effect on its endpoint. */
export const CR_TRANSITIONS: Readonly<
  Record<
    'accept' | 'reject' | 'handoff',
    { readonly from: 'PENDING'; readonly to: CrStateName; readonly endpoint: HeldEndpoint }
  >
> = {
  accept: { from: 'PENDING', to: 'ACCEPTED', endpoint: 'accepts' },
  reject: { from: 'PENDING', to: 'REJECTED', endpoint: 'returns' },
  handoff: { from: 'PENDING', to: 'HANDED_OFF', endpoint: 'returns' },
};
