/** What the benchmark asks of its processes. */

/** An XRC queue in a hosted domain, one in a domain of the process, and plain RC with an SRQ. */
export const KINDS = ['hosted', 'own', 'rc'] as const;
export type Kind = (typeof KINDS)[number];

export type Call =
  /** Answers the number of the queue. */
  | { readonly call: 'receive' }
  | { readonly call: 'connect'; readonly to: string; readonly srqn: number }
  | { readonly call: 'ping'; readonly seconds: number }
  /** Answers how many seconds it took. */
  | { readonly call: 'flood'; readonly bytes: number; readonly seconds: number }
  /** Median, since the last call, from the post to the event of the receiver. */
  | { readonly call: 'delayUs' }
  /** Messages since the last call. */
  | { readonly call: 'received' };
