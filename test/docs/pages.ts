/** The pages of docs/ that are generated from the code, by their file names. */
import { cmStatesPage } from './cm-states-page.js';
import { statesPage } from './states-page.js';

export const GENERATED_PAGES: Readonly<Record<string, () => string>> = {
  'cm-states.md': cmStatesPage,
  'states.md': statesPage,
};
