/**
 * Time of the processor. On a machine that others use too it says what a case costs; the clock on
 * the wall says how much of the machine was left for it.
 */
import { readFileSync } from 'node:fs';

/** Of a process and of its children that have ended. 0 if there is no such process. */
export function cpuSeconds(pid: number | 'self' | undefined): number {
  if (pid === undefined) return 0;
  try {
    return cpuSecondsIn(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return 0;
  }
}

/** USER_HZ, which is 100 for every program on x86-64. */
const TICKS_PER_SECOND = 100;

/** @param stat a line of /proc/PID/stat, see proc(5); the name in it may have any characters */
export function cpuSecondsIn(stat: string): number {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  // utime, stime, cutime and cstime: fields 14 to 17, of which the first two are cut off here.
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
  return ticks / TICKS_PER_SECOND;
}
