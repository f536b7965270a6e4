/** A run: place by place and row by row, all programs of a row in interleaved rounds. */
import type { Settling } from '../compare/settle.js';
import type { Job } from './link.js';
import type { Place, Site } from './places.js';
import { isOurs } from './programs.js';
import { CONTROL, type Group, type Row } from './rows.js';
import { type Sample, Team } from './team.js';

/** Marks the programs of another revision. */
export const BEFORE = 'before:';

export interface RunOptions {
  readonly rows: readonly Row[];
  readonly places: readonly Place[];
  /** Of those of a row, these. */
  readonly programs: readonly string[];
  readonly rounds: number;
  /** Of each measurement. */
  readonly seconds: number;
  /** Most that a warm-up may take. */
  readonly settleSeconds: number;
  /** The worker of another revision, which ours are compared with in place of peers. */
  readonly before?: string | undefined;
  readonly onProgress?: (text: string) => void;
}

/** Measurements of a program in a row and a place. */
export interface Result {
  readonly place: string;
  readonly group: Group;
  readonly row: string;
  readonly program: string;
  /** One a round, of the same rounds as those of all other programs. */
  readonly samples: readonly Sample[];
  /** Absent of a cold row. */
  readonly settling?: Settling;
  readonly failure?: string;
}

export interface Outcome {
  readonly results: readonly Result[];
  /** Places that could not be had, and why. */
  readonly leftOut: Readonly<Record<string, string>>;
}

/** A program while its row is measured. */
interface Member {
  readonly program: string;
  /** By the name of the row. */
  readonly samples: Record<string, Sample[]>;
  team: Team | undefined;
  settling: Settling | undefined;
  failure: string | undefined;
}

const FLOW: Job = {
  ...{ work: 'send', bytes: 1 << 20, depth: 1, connections: 1, rate: 0, isJson: false },
};

export async function runOrdinary(options: RunOptions): Promise<Outcome> {
  const results: Result[] = [];
  const leftOut: Record<string, string> = {};
  for (const place of options.places) {
    const lack = place.lack();
    if (lack !== undefined) {
      leftOut[place.label] = lack;
      continue;
    }
    const site = await place.open();
    try {
      const control = options.rounds > 1 ? [CONTROL] : [];
      for (const row of [...control, ...options.rows]) {
        const programs = programsOf(row, place.group, options);
        if (programs.length === 0) continue;
        options.onProgress?.(`${place.label}: ${row.label}`);
        results.push(...(await new RowRun(place, site, row, programs, options).run()));
      }
    } finally {
      site.close();
    }
  }
  return { results, leftOut };
}

function programsOf(row: Row, group: Group, options: RunOptions): readonly string[] {
  const all = row.programs[group] ?? [];
  if (row === CONTROL) return all;
  const programs = all.filter((each) => options.programs.includes(each));
  if (options.before === undefined) return programs;
  return programs.filter(isOurs).flatMap((each) => [each, BEFORE + each]);
}

class RowRun {
  private readonly members: readonly Member[];
  private readonly seconds: number;

  constructor(
    private readonly place: Place,
    private readonly site: Site,
    private readonly row: Row,
    programs: readonly string[],
    private readonly options: RunOptions,
  ) {
    // A run that only shows that everything works has no time for long rows.
    const isBrief = options.rounds === 1;
    this.seconds = Math.max(options.seconds, isBrief ? 0 : (row.seconds?.[place.group] ?? 0));
    this.members = programs.map((program) => ({
      ...{ program, samples: {}, team: undefined, settling: undefined, failure: undefined },
    }));
  }

  async run(): Promise<Result[]> {
    const { row, options } = this;
    try {
      if (row.isCold) for (let i = 0; i < options.rounds; i++) await this.coldRound(i);
      else await this.warmRounds();
    } finally {
      for (const { team } of this.members) team?.kill();
    }
    return this.members.flatMap((member) => this.resultsOf(member));
  }

  private async warmRounds(): Promise<void> {
    const { row, site, options, members } = this;
    for (const [n, member] of members.entries()) {
      await this.attempt(member, async () => {
        member.team = await this.open(member.program, n);
        await member.team.start(row.job);
        member.settling = await member.team.warm(options.settleSeconds);
      });
    }
    const flow = site.hasFlow ? await this.open('tcp', members.length) : undefined;
    await flow?.start(FLOW);
    const lift = site.burden(members.flatMap(({ team }) => team?.pids ?? []));
    try {
      for (let round = 0; round < options.rounds; round++) {
        await this.round(round, (member) => this.measure(member, flow));
      }
    } finally {
      lift();
      flow?.kill();
    }
    await Promise.all(members.map((each) => this.attempt(each, () => each.team!.close())));
  }

  private async measure({ team, samples }: Member, flow: Team | undefined): Promise<void> {
    const measuring = team!.measure(this.seconds);
    const [sample, beside] = await Promise.all([measuring, flow?.measure(this.seconds)]);
    const share = beside && sample.bytesPerSecond / (sample.bytesPerSecond + beside.bytesPerSecond);
    (samples[this.row.label] ??= []).push({ ...sample, ...(share !== undefined && { share }) });
  }

  private coldRound(round: number): Promise<void> {
    return this.round(round, async (member) => {
      const team = await this.open(member.program, this.members.indexOf(member));
      member.team = team;
      const steps = await team.measureCold(this.row.job);
      for (const [step, sample] of Object.entries(steps)) {
        (member.samples[`${this.row.label}, ${step}`] ??= []).push(sample);
      }
      await team.close();
    });
  }

  /** Every second round in the opposite order. */
  private async round(round: number, work: (member: Member) => Promise<void>): Promise<void> {
    for (const member of round % 2 === 0 ? this.members : this.members.toReversed()) {
      await this.attempt(member, () => work(member));
    }
  }

  /** A program that fails once is out. */
  private async attempt(member: Member, work: () => Promise<void>): Promise<void> {
    if (member.failure !== undefined) return;
    try {
      await work();
    } catch (error) {
      member.failure = error instanceof Error ? error.message : String(error);
      member.team?.kill();
    }
  }

  private open(program: string, n: number): Promise<Team> {
    const worker = program.startsWith(BEFORE) ? this.options.before : undefined;
    return Team.open(program.replace(BEFORE, ''), this.site.where(n), '', worker);
  }

  private resultsOf({ program, samples, settling, failure }: Member): Result[] {
    const { label: place, group } = this.place;
    const about = { place, group, program, ...(settling && { settling }) };
    if (failure !== undefined) return [{ ...about, row: this.row.label, samples: [], failure }];
    return Object.entries(samples).map(([row, all]) => ({ ...about, row, samples: all }));
  }
}
