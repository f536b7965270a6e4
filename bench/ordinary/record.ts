/** The tables in docs/performance.md. */
import type { RunDescription } from '../compare/describe-run.js';

const BEGIN = '<!-- bench:ordinary -->';
const END = '<!-- /bench:ordinary -->';

/**
 * The page with other tables between its two marks.
 * @throws Error for a page without them
 */
export function record(
  page: string,
  tables: string,
  { revision, node, machine }: RunDescription,
): string {
  const [from, to] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (from < 0 || to < from) throw new Error(`the page has no ${BEGIN} and ${END}`);
  const { cpus, cpu, kernel } = machine;
  const about = `Revision ${revision}, Node ${node}, ${cpus} cores of ${cpu}, Linux ${kernel}.`;
  return `${page.slice(0, from)}${BEGIN}\n\n${about}\n\n${tables}\n\n${page.slice(to)}`;
}
