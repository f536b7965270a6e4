/** The pages of docs/ that are generated, by their file names. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { remadeInteropPage } from '../guest/interop-table.js';
import { cmStatesPage } from './cm-states-page.js';
import { pacingPage, remadeEvdPage } from './pacing-page.js';
import { statesPage } from './states-page.js';

const evd = join(import.meta.dirname, '../../../docs/evd.md');
const interop = join(import.meta.dirname, '../../../docs/interop.md');

export const GENERATED_PAGES: Readonly<Record<string, () => string>> = {
  'cm-states.md': cmStatesPage,
  // All of it but what each polling mode promises is written by hand.
  'evd.md': () => remadeEvdPage(readFileSync(evd, 'utf8')),
  // Its cases are recorded by runs of test/guest; all else of it follows from them.
  'interop.md': () => remadeInteropPage(readFileSync(interop, 'utf8')),
  'pacing.md': pacingPage,
  'states.md': statesPage,
};
