/** Scenarios: short programs on a stage, which the page plays and the tests assert. */
import type { Stage } from './stage.js';

export interface Settings {
  readonly seed: number;
  /** Percent of the packets that the network loses. */
  readonly loss: number;
  /** Mean delay of a packet on its way, in microseconds. */
  readonly delay: number;
  /** Percent of the packets that later ones overtake. */
  readonly reorder: number;
  /** When the network between the two nodes is cut, in microseconds; 0 for never. */
  readonly cutAt: number;
  readonly cutFor: number;
  /** When the server is killed; 0 for never. */
  readonly killAt: number;
}

export const DEFAULT_SETTINGS: Settings = {
  seed: 1,
  loss: 0,
  delay: 10,
  reorder: 0,
  cutAt: 0,
  cutFor: 1000,
  killAt: 0,
};

export interface Scenario {
  /** Its name in an address: lower-case letters and dashes. */
  readonly name: string;
  readonly title: string;
  /** Sentences about what it shows. */
  readonly text: readonly string[];
  /** The part of docs/discussions.md that it plays; undefined for none. */
  readonly discussion?: { readonly title: string; readonly anchor: string };
  readonly settings?: Partial<Settings>;
  /** Plays it. What it claims holds with the settings above, whatever the seed. */
  play(stage: Stage): Promise<void>;
}

export function settingsOf(scenario: Scenario): Settings {
  return { ...DEFAULT_SETTINGS, ...scenario.settings };
}

// Settings in the address of the page.

interface Range {
  readonly label: string;
  readonly unit: string;
  readonly most: number;
  readonly step: number;
}

/** The sliders, in their order. */
export const RANGES: Readonly<Record<keyof Omit<Settings, 'seed'>, Range>> = {
  loss: { label: 'Packets lost', unit: '%', most: 50, step: 1 },
  delay: { label: 'Delay, one way', unit: 'µs', most: 500, step: 5 },
  reorder: { label: 'Packets overtaken', unit: '%', most: 50, step: 1 },
  cutAt: { label: 'Cut the cable at', unit: 'µs', most: 2000, step: 10 },
  cutFor: { label: 'Cut it for', unit: 'µs', most: 20_000, step: 100 },
  killAt: { label: 'Kill the server at', unit: 'µs', most: 2000, step: 10 },
};

const MOST_SEED = 2 ** 32 - 1;

/** Reads settings from the parameters of an address; what is missing or no number is `base`'s. */
export function settingsFrom(parameters: URLSearchParams, base: Settings): Settings {
  const read = (name: keyof Settings, most: number): number => {
    const text = parameters.get(name);
    const value = text === null ? NaN : Number(text);
    return Number.isFinite(value) ? Math.min(Math.max(value, 0), most) : base[name];
  };
  const names = Object.keys(RANGES) as (keyof typeof RANGES)[];
  const ranged = names.map((name) => [name, read(name, RANGES[name].most)] as const);
  return {
    ...DEFAULT_SETTINGS,
    ...Object.fromEntries(ranged),
    seed: Math.floor(read('seed', MOST_SEED)),
  };
}

/** The parameters that make `settings` of `base`: those that differ. */
export function parametersOf(settings: Settings, base: Settings): [string, string][] {
  return Object.entries(settings)
    .filter(([name, value]) => value !== base[name as keyof Settings])
    .map(([name, value]) => [name, String(value)]);
}
