/**
 * Counters of a port as sysfs has them: `counters` (IBTA PortCounters) and `hw_counters` (the
 * driver's own). Others on the machine count in the same.
 */
import { join } from 'node:path';
import { namesIn, textOf } from './sysfs.js';

const DIRECTORIES = ['counters', 'hw_counters'];
/** Milliseconds for which a driver caches the counters: a setting among them. */
const SETTING = 'lifespan';

/**
 * Every counter that can be read, by its name; none of a device that sysfs does not know.
 * @param sysfs tests bring their own tree
 */
export function readSysfsCounters(
  device: string,
  port: number,
  sysfs = '/sys',
): Readonly<Record<string, number>> {
  const counters: Record<string, number> = {};
  for (const directory of DIRECTORIES) {
    const path = `${sysfs}/class/infiniband/${device}/ports/${port}/${directory}`;
    for (const name of namesIn(path)) {
      // A counter that the driver lacks cannot be read, or its file contains words.
      const value = Number.parseInt(textOf(join(path, name)), 10);
      if (name !== SETTING && !Number.isNaN(value)) counters[name] = value;
    }
  }
  return counters;
}
