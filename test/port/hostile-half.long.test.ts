import { describeHostileHalf } from './hostile-half-suite.js';

describe('a port whose peer writes what it likes to a channel, for long', () =>
  describeHostileHalf(1_000_000));
