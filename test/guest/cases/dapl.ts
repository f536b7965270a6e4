// uDAPL in a guest: its test programs, over libdaplofa, on the guest's rxe0.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

import type { RunningCommand } from '../command.js';
import type { Guest } from '../guest.js';
import type { Lab } from '../lab.js';
import { repositoryRoot } from '../paths.js';

/** The name of the interface adapter. */
export const DEVICE = 'ofa-v2-rxe';
const DAT_CONF = '/tmp/dat.conf';
/** libdaplofa takes the IPv4 address of the interface, and knows no other kind. */
const LINE = `${DEVICE} u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "eth0 0" ""`;

/** The beginning of a command line that runs a program of uDAPL in a guest. */
export async function udapl(guest: Guest): Promise<string> {
  await guest.run(`echo '${LINE}' > ${DAT_CONF}`);
  return `DAT_OVERRIDE=${DAT_CONF} stdbuf -oL`;
}

/**
 * As rows of the table name it; the guest has the host's packages. Names of cases are read on
 * machines without the package, too.
 */
export function daplVersion(kernelVersion: string): string {
  const query = ['-W', '-f', '${Version}', 'dapl2-utils'];
  const { status, stdout } = spawnSync('dpkg-query', query, { encoding: 'utf8' });
  const version = status === 0 ? stdout : 'not installed';
  return `dapl ${version}, ${/Linux .*/.exec(kernelVersion)?.[0] ?? kernelVersion}`;
}

/** Starts a sample on the host. */
export function startSample(lab: Lab, sample: string, words: string): RunningCommand {
  const main = join(repositoryRoot, 'dist', 'samples', sample, 'main.js');
  return lab.host.spawn(`exec '${process.execPath}' --enable-source-maps '${main}' ${words}`);
}
