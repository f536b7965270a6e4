// One script of operations, by a seed, for two HCAs of ours and for one of them with rxe: alike?
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';

import { differences } from '../differential/compare.js';
import { type LifeRecord, playScript } from '../differential/play.js';
import { playReference } from '../differential/reference.js';
import { makeScript, scriptWithoutFences } from '../differential/script.js';
import type { Lab, PathMtu } from '../lab.js';
import { hexOf, rocePackets } from '../roce.js';
import type { Case } from '../suite.js';
import { openEnds } from '../verbs/manual-pair.js';
import {
  addressOf,
  deviceEnd,
  type Family,
  kernelEnd,
  type Requester,
  REQUESTERS,
  withEnds,
} from '../verbs/scene.js';
import { capturedFile } from './captured.js';

/** A seed in this variable takes the place of all others. */
export const SEED_VARIABLE = 'DAPL_GUEST_SEED';
const FIXED_SEEDS = [1, 2, 3];
const MORE_SEEDS = Array.from({ length: 20 }, (_, index) => 100 + index);
const FRESH_SEEDS = 10;
/** For each seed, on a machine that is busy. */
const SEED_TIMEOUT_MS = 60_000;

interface Setting {
  readonly requester: Requester;
  readonly family: Family;
  readonly mtuBytes: PathMtu;
}

export function differentialCases(lab: Lab, version: string): Case[] {
  const asked = process.env[SEED_VARIABLE];
  const given = asked === undefined ? undefined : [Number(asked)];
  const fresh = Array.from({ length: FRESH_SEEDS }, () => randomInt(2 ** 32));
  const settings = REQUESTERS.flatMap((requester): Setting[] => [
    { requester, family: 'IPv4', mtuBytes: 1024 },
    { requester, family: 'IPv6', mtuBytes: 4096 },
  ]);
  return settings.flatMap((setting) => {
    const isQuick = (setting.requester === 'softroce') === (setting.family === 'IPv4');
    const make = (what: string, seeds: readonly number[], full: boolean): Case =>
      differentialCase(lab, version, setting, { what, seeds, full });
    if (given !== undefined) return [make('the seed that was asked for', given, false)];
    return [
      make('fixed seeds', FIXED_SEEDS, !isQuick),
      make('more seeds', MORE_SEEDS, true),
      make('fresh seeds', fresh, true),
    ];
  });
}

function differentialCase(
  lab: Lab,
  version: string,
  setting: Setting,
  { what, seeds, full }: { what: string; seeds: readonly number[]; full: boolean },
): Case {
  const { requester, family, mtuBytes } = setting;
  return {
    name: `differential: ${requester} asks, ${family}, MTU ${mtuBytes}, ${what}`,
    ...(full && { full }),
    timeoutMs: SEED_TIMEOUT_MS * seeds.length,
    row: {
      counterpart: 'verbs-peer (libibverbs)',
      version,
      role: requester === 'softroce' ? 'requester' : 'responder',
      transport: `RC, ${family}, random operations and errors as between two of ours, ${what}`,
      mtuBytes,
    },
    run: async () => {
      await lab.setPathMtu(mtuBytes);
      for (const seed of seeds) {
        const found = await play(lab, setting, seed);
        assert.deepEqual(found, [], `seed ${seed}; to repeat: ${commandFor(seed)}`);
      }
    },
  };
}

function commandFor(seed: number): string {
  return `npm run test:guest -- cases differential --seed ${seed}`;
}

async function play(lab: Lab, setting: Setting, seed: number): Promise<string[]> {
  const { requester, family, mtuBytes } = setting;
  const guest = lab.guest(0);
  const script = makeScript(seed, mtuBytes);
  let records: LifeRecord[] = [];
  const name = `differential-${requester}-${family}-${seed}`;
  const file = await capturedFile(lab, guest, name, () =>
    withEnds(deviceEnd(lab, family), kernelEnd(guest, family), async (ours, kernel) => {
      const isOurs = requester === 'softroce';
      const ends = await (isOurs ? openEnds(ours, kernel) : openEnds(kernel, ours));
      records = await playScript(ends, isOurs ? script : scriptWithoutFences(script));
    }),
  );
  const answers = hexOf(addressOf(requester === 'softroce' ? guest : lab.host, family));
  const acknowledgements = rocePackets(file).filter(
    ({ source, syndrome }) => source === answers && syndrome !== undefined,
  );
  const other = requester === 'softroce' ? 'rxe' : 'softroce';
  const played = { asks: requester, answers: other, records, acknowledgements };
  return differences(await playReference(script), played);
}
