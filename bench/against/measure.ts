/** This build and another commit's, in one interleaved run. */
import type { Cell } from '../compare/cells.js';
import { CONTENDERS, OURS } from '../compare/contender.js';
import { NodeJobs } from '../compare/node-jobs.js';
import type { Style } from '../compare/report.js';
import type { Row } from '../compare/rows.js';
import { type Open, type RunOptions, runBench } from '../compare/run.js';
import { MissingPeer } from '../peers/build.js';
import { type Change, changeTable, changesOf, conclusion } from './changes.js';
import { type Worktree, buildWorktree } from './worktree.js';

/** Marks the contenders of the other commit. */
const BEFORE = 'before:';

interface Comparison {
  readonly report: string;
  readonly data: { readonly against: string; readonly changes: readonly Change[] };
}

/** @throws Error when there is no such commit, or when it does not build */
export async function measureAgainst(
  revision: string,
  options: RunOptions,
  style: Style,
): Promise<Comparison> {
  const before = buildWorktree(revision);
  try {
    const rows = options.rows.map(againstBefore);
    const changes = changesOf(await runBench({ ...options, rows, open: opener(before) }));
    const report = `${changeTable(changes, style)}\n\n${conclusion(changes)}`;
    return { report, data: { against: before.commit, changes } };
  } finally {
    before.remove();
  }
}

/** Each of our cells against the same of the other commit; goals are not the matter here. */
function againstBefore({ label, unit, ours }: Row): Row {
  const contender = BEFORE + ours.contender;
  const cell: Cell = { ...ours, contender, name: BEFORE + ours.name };
  return { label, unit, ours, rivals: [{ cell }] };
}

/**
 * Processes of the other commit run this benchmark's worker over that commit's library; one that
 * has not the entry which a contender is written with leaves it out.
 */
export function opener({ worker, commit, entries }: Omit<Worktree, 'remove'>): Open {
  return async (contender, local, remote) => {
    const id = contender.replace(BEFORE, '');
    if (!contender.startsWith(BEFORE)) return CONTENDERS[id]!.open(local, remote);
    const { kind, entry } = CONTENDERS[id]!;
    if (!OURS.includes(id) || kind === undefined) throw new Error(`${id} has no former build`);
    if (entry !== undefined && !entries.includes(entry)) {
      throw new MissingPeer(`${commit} has no ${entry}`);
    }
    return NodeJobs.open(kind, local, remote, worker);
  };
}
