/** The pages of docs/ that are generated, by their file names. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { remadeInteropPage } from '../guest/interop-table.js';
import { cmStatesPage } from './cm-states-page.js';
import { statesPage } from './states-page.js';

const interop = join(import.meta.dirname, '../../../docs/interop.md');

export const GENERATED_PAGES: Readonly<Record<string, () => string>> = {
  'cm-states.md': cmStatesPage,
  // Its cases are recorded by runs of test/guest; all else of it follows from them.
  'interop.md': () => remadeInteropPage(readFileSync(interop, 'utf8')),
  'states.md': statesPage,
};
