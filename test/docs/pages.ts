/** The pages of docs/ that are generated from the code, by their file names. */
import { statesPage } from './states-page.js';

export const GENERATED_PAGES: Readonly<Record<string, () => string>> = {
  'states.md': statesPage,
};
