/** Rows that show that everything works: each program once, and each place. */
import { type Row, ROWS } from './rows.js';

/** Where there is more than one row, that of these programs. */
const ELSEWHERE = ['easy-shm', 'easy-udp', 'tcp'];

/** Each row where the machine is idle, with all its programs; elsewhere few programs and rows. */
export function shortRows(): Row[] {
  return ROWS.map((row, i) => {
    const { idle = [], net = [], busy = [], flow = [] } = row.programs;
    const isFirst = i === 0;
    const some = (programs: readonly string[]): string[] =>
      isFirst ? programs.filter((each) => ELSEWHERE.includes(each)) : [];
    return { ...row, programs: { idle, busy: some(busy), net: some(net), flow } };
  });
}
