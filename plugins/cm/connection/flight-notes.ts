/** What a connection notes of itself: numbers for the flight log, and words for them. */
import { nameOf } from '../../../core/spi/index.js';
import type { FlightLog } from '../../../core/spi/internal/index.js';
import { CM_INPUTS, CM_STATES, type CmInput, type CmState } from './states.js';
import { CM_ATTRIBUTE, type CmMessageName } from '../wire/attribute-id.js';
import { rejectReasonName } from '../wire/reject-reason.js';

const EVENT = {
  /** Bits 0 to 7: the input; a, b: the states before and after. */
  INPUT: 0,
  /** Bits 0 to 7: the input; a: the state. */
  UNEXPECTED: 1,
  /** a: what message. */
  SENT: 2,
  /** a: the reason. */
  REJ: 3,
  OTHER_MRA: 4,
} as const;
/** Of EVENT, above the input. */
const EVENT_BIT = 8;

/** How many of a connection's last notes are told. */
const NOTES = 48;

/** The last row of a connection, which its notes go on from. */
export interface Noting {
  lastNote: number;
}

/** Where the connections of a device note what people may want to know. */
export class FlightNotes {
  constructor(
    private readonly log: FlightLog,
    private readonly now: () => number,
  ) {}

  input(who: Noting, input: CmInput, from: CmState, to: CmState): void {
    const [a, b] = [CM_STATES.indexOf(from), CM_STATES.indexOf(to)];
    this.add(who, EVENT.INPUT, CM_INPUTS.indexOf(input), a, b);
  }

  unexpected(who: Noting, input: CmInput, state: CmState): void {
    this.add(who, EVENT.UNEXPECTED, CM_INPUTS.indexOf(input), CM_STATES.indexOf(state), 0);
  }

  sent(who: Noting, name: CmMessageName): void {
    this.add(who, EVENT.SENT, 0, CM_ATTRIBUTE[name], 0);
  }

  rejected(who: Noting, reason: number): void {
    this.add(who, EVENT.REJ, 0, reason, 0);
  }

  /** An MRA of a message that it has not sent. */
  otherMra(who: Noting): void {
    this.add(who, EVENT.OTHER_MRA, 0, 0, 0);
  }

  /** Oldest first, with the time since the first of them. */
  lines(who: Noting): readonly string[] {
    const rows = this.log.read(who.lastNote, NOTES);
    const firstUs = rows[0]?.timeUs ?? 0;
    return rows.map(({ timeUs, event, a, b }) => {
      return `+${((timeUs - firstUs) / 1000).toFixed(3)} ms ${describe(event, a, b)}`;
    });
  }

  private add(who: Noting, event: number, input: number, a: number, b: number): void {
    who.lastNote = this.log.add(who.lastNote, this.now(), input | (event << EVENT_BIT), a, b);
  }
}

function describe(event: number, a: number, b: number): string {
  const input = CM_INPUTS[event & ((1 << EVENT_BIT) - 1)];
  switch (event >>> EVENT_BIT) {
    case EVENT.INPUT:
      return `${input}: ${CM_STATES[a]} -> ${CM_STATES[b]}`;
    case EVENT.UNEXPECTED:
      return `${input} in ${CM_STATES[a]}: unexpected`;
    case EVENT.SENT:
      return `${nameOf(CM_ATTRIBUTE, a)} sent`;
    case EVENT.REJ:
      return `REJ: ${rejectReasonName(a)}`;
    default:
      return 'MRA of another message';
  }
}
