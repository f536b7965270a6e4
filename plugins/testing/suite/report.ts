/** Results of a suite as a JSON document, and as a table. */
import type { BehaviourResult } from './run-plan.js';

/** The results of a run, for `JSON.stringify`. */
export interface ReportDocument {
  readonly subject: string;
  readonly counts: Readonly<Record<BehaviourResult['outcome'], number>>;
  /** The number of behaviours that were not applicable, by missing capability. */
  readonly missing: Readonly<Record<string, number>>;
  readonly results: readonly BehaviourResult[];
}

/** @param subject the name of what was tested */
export function reportOf(subject: string, results: readonly BehaviourResult[]): ReportDocument {
  const counts = { passed: 0, failed: 0, deviates: 0, 'not-applicable': 0 };
  const missing: Record<string, number> = {};
  for (const { outcome, lacks } of results) {
    counts[outcome]++;
    for (const capability of lacks) missing[capability] = (missing[capability] ?? 0) + 1;
  }
  return { subject, counts, missing, results };
}

const WORDS = {
  passed: 'passed',
  failed: 'FAILED',
  deviates: 'deviates',
  'not-applicable': 'not applicable',
} as const;

/**
 * The results as text: a row for each group, then each behaviour that has not passed, with its
 * message or the capabilities that it lacks.
 */
export function tableOf({ subject, counts, results }: ReportDocument): string {
  const groups = [...new Set(results.map(({ group }) => group))];
  const rows = groups.map((group) => {
    const of = results.filter((result) => result.group === group);
    const count = (outcome: BehaviourResult['outcome']): string =>
      String(of.filter((result) => result.outcome === outcome).length);
    return [group, ...OUTCOMES.map(count)];
  });
  const all = [
    ['group', ...OUTCOMES.map((outcome) => WORDS[outcome])],
    ...rows,
    ['all', ...OUTCOMES.map((outcome) => String(counts[outcome]))],
  ];
  const widths = all[0]!.map((_, i) => Math.max(...all.map((row) => row[i]!.length)));
  const lines = all.map((row) =>
    row
      .map((cell, i) => (i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!)))
      .join('  '),
  );
  const rest = results.filter(({ outcome }) => outcome !== 'passed').map(lineOf);
  return [subject, '', ...lines, ...(rest.length > 0 ? ['', ...rest] : [])].join('\n');
}

const OUTCOMES = ['passed', 'failed', 'deviates', 'not-applicable'] as const;

/** Lines of a message that are shown. An assertion starts with the difference. */
const MESSAGE_LINES = 12;

function lineOf({ group, name, outcome, lacks, message }: BehaviourResult): string {
  const why = outcome === 'not-applicable' ? `needs ${lacks.join(', ')}` : (message ?? '');
  const [first = '', ...rest] = why.split('\n').filter((line) => line.trim() !== '');
  const more = rest.length < MESSAGE_LINES ? rest : [...rest.slice(0, MESSAGE_LINES - 1), '...'];
  const lines = more.map((line) => `\n    ${line}`);
  return `${WORDS[outcome]}  ${group}: ${name} (${first})${lines.join('')}`;
}
