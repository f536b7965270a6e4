/** Entries of the flight log for connections: recorded as numbers, printed as text. */
import { nameOf } from '../../../core/spi/index.js';
import type { FlightLog } from '../../../core/spi/internal/index.js';
import { CM_INPUTS, CM_STATES, type CmInput, type CmRole, type CmState } from './states.js';
import { CM_ATTRIBUTE, type CmMessageName } from '../wire/cm-codec.js';
import { rejectReasonName } from '../wire/rej.js';

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
/** The position of the event code, above the 8 bits of the input. */
const EVENT_BIT = 8;

/** The most entries of one connection that are printed, the latest ones. */
const NOTES = 48;

/** A connection that the log is about. */
export interface Noting {
  /** Its last row, to which the next one links. */
  lastNote: number;
  readonly role: CmRole;
  readonly localCommId: number;
}

/** An input that a connection has taken. */
export interface CmStateChange {
  readonly localCommId: number;
  readonly role: CmRole;
  readonly input: CmInput;
  readonly from: CmState;
  readonly to: CmState;
}

/** Writes and reads the flight log of a device's connections. */
export class FlightNotes {
  constructor(
    private readonly log: FlightLog,
    private readonly now: () => number,
    private readonly onState?: (change: CmStateChange) => void,
  ) {}

  input(who: Noting, input: CmInput, from: CmState, to: CmState): void {
    const [a, b] = [CM_STATES.indexOf(from), CM_STATES.indexOf(to)];
    this.add(who, EVENT.INPUT, CM_INPUTS.indexOf(input), a, b);
    const { localCommId, role } = who;
    this.onState?.({ localCommId, role, input, from, to });
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

  /** Records an MRA about a message that the connection has not sent. */
  otherMra(who: Noting): void {
    this.add(who, EVENT.OTHER_MRA, 0, 0, 0);
  }

  /** The entries, oldest first, each with the time since the first one. */
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
