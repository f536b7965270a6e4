/** What the benchmark of many endpoints asks of its two processes. */

/** An endpoint's size: what is left out is the default. */
export interface Shape {
  readonly name: string;
  readonly requests?: number;
  readonly receives?: number;
  readonly segments?: number;
}

export type Call =
  | { readonly call: 'create'; readonly shape: Shape; readonly count: number }
  | { readonly call: 'listen' }
  | { readonly call: 'connect' }
  | { readonly call: 'memory' }
  /** Registers memory until there are `count` regions. */
  | { readonly call: 'regions'; readonly count: number }
  /** Sends 64 B messages over the first `spread` endpoints, `inFlight` of them at a time. */
  | {
      readonly call: 'send';
      readonly spread: number;
      readonly inFlight: number;
      readonly seconds: number;
    }
  | { readonly call: 'disconnect' }
  | { readonly call: 'disconnected' }
  | { readonly call: 'free' }
  | { readonly call: 'close' };

/** Bytes of the process after a collection. */
export interface Memory {
  readonly heap: number;
  readonly arrayBuffers: number;
  /** Outside of the heap, array buffers not counted. */
  readonly external: number;
  readonly resident: number;
}

export interface Work {
  /** Endpoints connected or freed, or messages sent. */
  readonly count: number;
  readonly seconds: number;
}

export interface Answer {
  readonly value?: Memory | Work;
  readonly error?: string;
  /** User and system time of the process, in seconds. */
  readonly cpuSeconds: number;
}
