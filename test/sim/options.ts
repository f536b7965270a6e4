/** What a run of the simulator is made of. Everything else follows from the seed. */
export interface SimOptions {
  readonly seed: number;
  /** Steps of virtual time after which no more work is posted. */
  readonly steps: number;
  /** Send work requests to post in all. */
  readonly ops: number;
  /** Number of HCAs; 0 lets the seed choose 2 to 4. */
  readonly nodes: number;
  /** Through the whole DAT API; otherwise at the verbs level. */
  readonly dat: boolean;
  /** Fixed fault rates in percent of packets, in place of changing ones. */
  readonly loss?: number;
  readonly duplicate?: number;
  readonly reorder?: number;
  readonly corrupt?: number;
  /** Faults between ports and fabric besides: refused packets, small MTUs, forged ICMP. */
  readonly ports: boolean;
  /** No faults at all. */
  readonly quiet: boolean;
  /** Name of a deliberate bug (test/sim/plants.ts). */
  readonly plant?: string;
  /** Called with one line for each event. */
  readonly log?: (line: string) => void;
}

export const defaultOptions: SimOptions = {
  seed: 1,
  steps: 2_000_000,
  ops: 4000,
  nodes: 0,
  dat: false,
  ports: false,
  quiet: false,
};

/** The command that repeats a run. */
export function commandOf(options: SimOptions): string {
  const parts = [`npm run sim -- --seed ${options.seed}`];
  for (const name of ['steps', 'ops', 'nodes'] as const) {
    if (options[name] !== defaultOptions[name]) parts.push(`--${name} ${options[name]}`);
  }
  for (const name of ['loss', 'duplicate', 'reorder', 'corrupt', 'plant'] as const) {
    const value = options[name];
    if (value !== undefined) parts.push(`--${name} ${value}`);
  }
  if (options.dat) parts.push('--dat');
  if (options.ports) parts.push('--ports');
  if (options.quiet) parts.push('--quiet');
  return parts.join(' ');
}
