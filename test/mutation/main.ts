/**
 * Which changes to the program no quick test notices. A survivor that is not in survivors.json,
 * with the reason why it may survive, fails the command.
 *
 *   npm run mutants -- [--only AREA,...] [--sample PERCENT] [--seed N] [--minutes N] [--jobs N]
 *                      [--note]   writes those without a reason there, as `open`
 *
 * Areas are those of areas.ts, and `plugins/cm`: the rows of its state tables.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { AREAS } from './areas.js';
import { type Options, tryArea } from './program.js';
import { tryRows } from './rows.js';

const ROWS = 'plugins/cm';
const NAMES = [ROWS, ...Object.keys(AREAS)];
const JUDGED = join(import.meta.dirname, '../../../test/mutation/survivors.json');

/** By area and file: name of the mutant, and the reason why it may survive. */
type Judged = Record<string, Record<string, string>>;

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: NAMES.join() },
    sample: { type: 'string', default: '100' },
    seed: { type: 'string', default: '1' },
    minutes: { type: 'string', default: 'Infinity' },
    jobs: { type: 'string', default: '2' },
    note: { type: 'boolean', default: false },
  },
});
const unknown = values.only.split(',').filter((name) => !NAMES.includes(name));
if (unknown.length > 0) throw new Error(`no area ${unknown.join()}: ${NAMES.join(', ')}`);
const options: Options = {
  sample: Number(values.sample) / 100,
  seed: Number(values.seed),
  jobs: Number(values.jobs),
  deadlineMs: performance.now() + Number(values.minutes) * 60_000,
};
const judged = JSON.parse(readFileSync(JUDGED, 'utf8')) as Judged;

let unjudged = 0;
for (const name of values.only.split(',')) {
  const begun = performance.now();
  const survivors = new Set(await trial(name));
  const news = [...survivors].filter((one) => !isJudged(one));
  for (const one of news) {
    console.log(`survives: ${one}`);
    const [file, mutant] = partsOf(one);
    if (values.note) (judged[file] ??= {})[mutant] = 'open';
  }
  const seconds = Math.round((performance.now() - begun) / 1000);
  console.log(`${name}: ${survivors.size} survivors, ${news.length} not judged; ${seconds} s`);
  unjudged += news.length;
}
if (values.note) writeFileSync(JUDGED, `${JSON.stringify(sorted(judged), undefined, 2)}\n`);
process.exitCode = unjudged === 0 || values.note ? 0 : 1;

/** Survivors, as `file: name`. */
async function trial(name: string): Promise<string[]> {
  const area = AREAS[name];
  if (area === undefined) {
    const { tried, survivors } = await tryRows();
    console.log(`${name}: ${tried} mutants of rows`);
    return survivors.map((one) => `${name}: ${one}`);
  }
  const { tried, survivors, killed, atLoad, notTried } = await tryArea(area, options);
  console.log(
    `${name}: ${tried} mutants tried, ${atLoad} of what runs at load left out, ` +
      `${notTried} left for want of time`,
  );
  for (const { file, name: mutant } of killed) {
    if (judged[file]?.[mutant] !== undefined) console.log(`noticed by now: ${file}: ${mutant}`);
  }
  return survivors.map(({ file, name: mutant }) => `${file}: ${mutant}`);
}

function isJudged(survivor: string): boolean {
  const [file, mutant] = partsOf(survivor);
  return judged[file]?.[mutant] !== undefined;
}

function partsOf(survivor: string): [file: string, mutant: string] {
  const at = survivor.indexOf(': ');
  return [survivor.slice(0, at), survivor.slice(at + 2)];
}

function sorted(whole: Judged): Judged {
  const byName = <T>(record: Record<string, T>): Record<string, T> =>
    Object.fromEntries(Object.entries(record).sort(([one], [other]) => (one < other ? -1 : 1)));
  return byName(Object.fromEntries(Object.entries(whole).map(([file, of]) => [file, byName(of)])));
}
