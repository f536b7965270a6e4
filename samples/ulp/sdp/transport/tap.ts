/** Events of a connection for an observer: a capture, or a checker of the protocol. */

export type TapEvent =
  /** A whole message, Hello and HelloAck too. */
  | { readonly kind: 'message'; readonly bytes: Uint8Array }
  | {
      readonly kind: 'rdmaRead' | 'rdmaWrite';
      readonly length: number;
      readonly remoteAddress: bigint;
      readonly rkey: number;
    }
  /** This many more receives are posted. */
  | { readonly kind: 'receivesPosted'; readonly count: number }
  /** The connection of the CM ended gracefully, or broke. */
  | { readonly kind: 'disconnected' | 'killed' };

/**
 * Receives events.
 * @param phase `sent` when this side posts it, in the order of the wire; `arrived` when this side
 * handles it
 * @param local address and port of this side, such as `192.0.2.1:7000`
 */
export type Tap = (phase: 'sent' | 'arrived', event: TapEvent, local: string) => void;
