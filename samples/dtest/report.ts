/** The figures that dtest prints: microseconds, and MB/s of 10^6 bytes. */
import type { Steps } from './options.js';

export type Print = (line: string) => void;

export function reportWrites(print: Print, steps: Steps, ms: number): void {
  const { burst, lengthBytes, unidirectional } = steps;
  const writes = unidirectional ? burst : 2 * burst;
  const us = ms * 1000;
  const direction = unidirectional ? 'uni-direction' : 'bi-direction';
  const perWrite = (us / writes).toFixed(2);
  const rate = ((writes * lengthBytes) / us).toFixed(2);
  print(
    `RDMA write (${direction}): Total=${us.toFixed(2)} usec, itime=${perWrite} us, ` +
      `${writes} x ${lengthBytes}, ${rate} MB/sec`,
  );
}

export function reportRounds(
  print: Print,
  what: string,
  rounds: number,
  lengthBytes: number,
  ms: number,
): void {
  const us = ms * 1000;
  print(
    `${what} PingPong: (${rounds} x ${lengthBytes}) Total ${us.toFixed(2)} us: ` +
      `latency ${(us / rounds / 2).toFixed(2)} us, ` +
      `BW ${((2 * rounds * lengthBytes) / us).toFixed(2)} MB/s`,
  );
}
