/**
 * Cases of a quick file that take long, such as further rows of a table. `npm test` leaves them
 * out; `npm run test:all`, `npm test -- PATH` and mocha itself run them.
 */
import { LANE_VARIABLE } from '../lanes/lanes.js';

export const hasLongCases = process.env[LANE_VARIABLE] !== String(process.ppid);

/** `it`, for a long case. Mocha has another `it` for each file: it is looked up when called. */
export function longIt(title: string, run: Mocha.AsyncFunc): void {
  if (hasLongCases) it(title, run);
}
