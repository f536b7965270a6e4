/** Rows that show that everything works: each program and peer once, and each place and row. */
import { type Row, ROWS } from './rows.js';

/** Where a row is not the first of its programs. */
const FEW = ['easy-shm', 'easy-udp', 'tcp'];

/** The first row with all its programs, and relays; of the others, and elsewhere, few. */
export function shortRows(): Row[] {
  const [first, ...others] = ROWS as [Row, ...Row[]];
  const few = (programs: readonly string[] = []): string[] =>
    FEW.filter((each) => programs.includes(each));
  const { idle = [], busy, net } = first.programs;
  const rest = others.map((row) => {
    const own = row.programs.idle ?? [];
    const isRelayed = own.includes('relays');
    return {
      ...row,
      programs: { idle: isRelayed ? own : few(own).slice(0, 1), flow: few(row.programs.flow) },
    };
  });
  return [{ ...first, programs: { idle, busy: few(busy), net: few(net) } }, ...rest];
}
