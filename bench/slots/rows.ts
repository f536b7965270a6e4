/** What two processes do on one address that they share, beside the same on two addresses. */
import type { Cell } from '../compare/cells.js';
import type { Open } from '../compare/run.js';
import { CONTENDERS } from '../compare/contender.js';
import { NodeJobs } from '../compare/node-jobs.js';
import { ROWS, type Row } from '../compare/rows.js';

/** What the worker knows the same by, on one address. */
const SHARED: Readonly<Record<string, string>> = { softroce: 'slots', shm: 'slots-shm' };

/** Rows of the benchmark that have what a shared address could change: the network or memory. */
export const SLOT_ROWS: readonly Row[] = ROWS.filter(isCompared).map(besideAddresses);

function isCompared({ ours }: Row): boolean {
  const isPlain = ours.arrangement === 'pinned' && ours.workingSetBytes === 0;
  return ours.contender in SHARED && isPlain && ours.mtuBytes === 0 && ours.workload !== 'idle';
}

function besideAddresses({ label, unit, ours }: Row): Row {
  const contender = SHARED[ours.contender]!;
  const onOne: Cell = { ...ours, contender, name: `${contender}: ${ours.name}` };
  return { label, unit, ours: onOne, rivals: [{ cell: ours }] };
}

/** Both processes of those that share are on the second address. */
export const openOnOne: Open = (contender, local, remote) =>
  Object.values(SHARED).includes(contender)
    ? NodeJobs.open(contender, remote, remote)
    : CONTENDERS[contender]!.open(local, remote);
