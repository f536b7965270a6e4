// The first section of docs/interop.md: a line for each counterpart, made of its cases' lines.
import { table } from '../docs/markdown.js';

/** A line of the lists, and the day of the run that it is of. */
export interface RecordedCase {
  readonly counterpart: string;
  readonly version: string;
  readonly role: string;
  readonly transport: string;
  readonly mtu: string;
  readonly result: string;
  /** ISO 8601, day only; empty for a case that has not run. */
  readonly date: string;
}

const COLUMNS = ['Counterpart', 'Version', 'Roles', 'Transports', 'MTU', 'Passed', 'Last run'];
/** The words of a line's transport that are transports, in the order in which they are listed. */
const TRANSPORTS = ['rdma_cm', 'queue pairs by hand', 'SIDR', 'RC', 'UC', 'UD', 'MAD', 'RMPP'];
const NETWORKS = ['IPv4', 'IPv6'];
/** Of cases whose own end is the verbs provider over an rxe device; all others have softroce. */
const OVER_VERBS = 'our verbs provider on rxe';
const ANY = [...TRANSPORTS, ...NETWORKS, OVER_VERBS];
const NONE = '–';

/** The table, sorted by counterpart. */
export function summaryTable(cases: readonly RecordedCase[]): string {
  const counterparts = new Map<string, RecordedCase[]>();
  for (const one of cases) {
    counterparts.set(one.counterpart, [...(counterparts.get(one.counterpart) ?? []), one]);
  }
  const rows = [...counterparts].map(([name, itsCases]) => [name, ...cellsOf(itsCases)]);
  return table(
    COLUMNS,
    rows.sort(([a = ''], [b = '']) => a.localeCompare(b, 'en')),
  );
}

function cellsOf(cases: readonly RecordedCase[]): string[] {
  // The line of a case that has not run names the version that it would meet: it proves nothing.
  const run = cases.filter(({ date }) => date !== '');
  const mtus = unique(cases.map(({ mtu }) => mtu)).sort((a, b) => Number(a) - Number(b));
  return [
    unique(run.map(({ version }) => version)).join('; ') || NONE,
    unique(cases.map(({ role }) => role)).join('; '),
    transportsOf(cases).join(', '),
    mtus.join(', '),
    passedOf(cases),
    daysOf(run.map(({ date }) => date)),
  ];
}

function transportsOf(cases: readonly RecordedCase[]): string[] {
  return ANY.filter((name) =>
    cases.some(({ transport }) => new RegExp(`\\b${name}\\b`).test(transport)),
  );
}

function passedOf(cases: readonly RecordedCase[]): string {
  const count = (result: string): number => cases.filter((one) => one.result === result).length;
  const others = ['FAIL', 'not run'].filter((result) => count(result) > 0);
  const rest = others.map((result) => `${count(result)} ${result}`);
  return [`${count('pass')} of ${cases.length}`, ...rest].join(', ');
}

function daysOf(dates: readonly string[]): string {
  const days = unique(dates).sort();
  const [first = NONE] = days;
  const last = days.at(-1) ?? NONE;
  return first === last ? first : `${first} to ${last}`;
}

function unique(texts: readonly string[]): string[] {
  return [...new Set(texts)];
}
