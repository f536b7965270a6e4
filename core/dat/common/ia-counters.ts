/** Counters of an interface adapter: those of DAT_IA_COUNTERS that have an event here. */
import { Counters } from '../../evd/index.js';

/** Objects whose creation and freeing are counted. */
const KINDS = ['pz', 'lmr', 'rmr', 'srq', 'evd', 'cno', 'ep', 'psp', 'rsp', 'csp'] as const;
type Kind = (typeof KINDS)[number];

const OTHERS = [
  /** Connection requests, and how they were answered. */
  'cr',
  'crAccepted',
  'crRejected',
  /** Memory that the adapter has allocated: calls, and bytes. */
  'memoryAllocate',
  'memoryAllocateData',
  /** Events on the asynchronous EVD; of these, broken endpoints and overflows. */
  'asyncError',
  'asyncEpBroken',
  'asyncEvdOverflow',
] as const;

type CounterName = `${Kind}Create` | `${Kind}Free` | (typeof OTHERS)[number];
/** Counts, exact up to 2^53. Those named Data are bytes. */
export type IaCounterValues = Readonly<Record<CounterName, number>>;

const NAMES: readonly CounterName[] = [
  ...KINDS.flatMap((kind): CounterName[] => [`${kind}Create`, `${kind}Free`]),
  ...OTHERS,
];

export class IaCounters extends Counters<CounterName> {
  constructor() {
    super(NAMES);
  }

  /** Counts an object of that kind (DAT_HANDLE_TYPE in any case), created or freed. */
  object(handleType: string, what: 'Create' | 'Free'): void {
    const kind = KINDS.find((known) => known === handleType.toLowerCase());
    if (kind !== undefined) this.count(`${kind}${what}`);
  }

  /** Counts allocated memory. */
  allocated(lengthBytes: number): void {
    this.count('memoryAllocate');
    this.bump(NAMES.indexOf('memoryAllocateData'), lengthBytes);
  }
}
