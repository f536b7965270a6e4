/** The scenarios, in the order of the page. */
import type { Scenario } from '../run/scenario.js';
import { earlyData } from './early-data.js';
import { hello } from './hello.js';
import { lossyWrite } from './lossy-write.js';
import { lostRtu } from './lost-rtu.js';
import { manyTeardown } from './many-teardown.js';
import { postedSends } from './posted-sends.js';
import { rearm } from './rearm.js';
import { rnr } from './rnr.js';
import { xrcCounted } from './xrc-counted.js';
import { xrcOutlives } from './xrc-outlives.js';

export const SCENARIOS: readonly Scenario[] = [
  hello,
  lossyWrite,
  rnr,
  lostRtu,
  postedSends,
  earlyData,
  xrcOutlives,
  xrcCounted,
  rearm,
  manyTeardown,
];
