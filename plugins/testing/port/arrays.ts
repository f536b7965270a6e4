import { checkPort } from 'dapl/providers/hca';
import { portGroup } from './bench-pair.js';

/** The upper limit of the software HCA's parameter. */
const MAX_SGE = 255;

export const arrays = portGroup('Arrays', (claim) => {
  claim('hold what the software HCA needs, of whatever parameters', ({ a, b }) => {
    for (const port of [a, b]) checkPort(port, { maxSge: MAX_SGE });
  });
});
