/**
 * The command window of a target (RFC 7143, 4.2.2.1): the next expected CmdSN, the limit for
 * initiators, and the order in which commands are delivered.
 */
import { serialAdd, serialDistance } from '../../wire/index.js';

/** The decision on a received command. */
export type Admission =
  /** It is the next one, or an immediate one. */
  | 'deliver'
  /** Earlier commands are missing; `next` returns it in its turn. */
  | 'hold'
  /** Outside the window, or a duplicate: silently ignored, as RFC 7143 requires. */
  | 'ignore';

/** @typeParam T the record of a command that waits for its turn */
export class CommandWindow<T> {
  private expected: number;
  private highest: number;
  private readonly held = new Map<number, T>();

  /**
   * @param first CmdSN of the login request: the first command has the same
   * @param depth commands in flight: 1 to 2^31 - 1
   */
  constructor(
    first: number,
    readonly depth: number,
  ) {
    this.expected = first;
    this.highest = serialAdd(first, depth - 1);
  }

  /** CmdSN of the command that is delivered next. */
  get expCmdSn(): number {
    return this.expected;
  }

  /** The highest CmdSN that may be sent; one below `expCmdSn` while the window is closed. */
  get maxCmdSn(): number {
    return this.highest;
  }

  /** Number of commands that wait for earlier ones. */
  get heldCount(): number {
    return this.held.size;
  }

  /** Decides on a received command. */
  admit(cmdSn: number, isImmediate: boolean, command: T): Admission {
    const isInside =
      serialDistance(cmdSn, this.expected) >= 0 && serialDistance(this.highest, cmdSn) >= 0;
    if (isImmediate) return this.isNear(cmdSn) ? 'deliver' : 'ignore';
    if (!isInside || this.held.has(cmdSn)) return 'ignore';
    if (cmdSn !== this.expected) {
      this.held.set(cmdSn, command);
      return 'hold';
    }
    this.expected = serialAdd(this.expected, 1);
    return 'deliver';
  }

  /** Replaces the record of a waiting command. */
  replace(cmdSn: number, command: T): void {
    if (this.held.has(cmdSn)) this.held.set(cmdSn, command);
  }

  /** The command that follows the one just delivered, if it has arrived. */
  next(): T | undefined {
    const command = this.held.get(this.expected);
    if (command === undefined) return undefined;
    this.held.delete(this.expected);
    this.expected = serialAdd(this.expected, 1);
    return command;
  }

  /** A command that took a CmdSN was answered: there is room for another one. */
  open(): void {
    this.highest = serialAdd(this.highest, 1);
  }

  /**
   * True if an immediate command's CmdSN is plausible. It carries the CmdSN of the next command at
   * the time of sending, so it is at most a window away from the expected one.
   */
  private isNear(cmdSn: number): boolean {
    return Math.abs(serialDistance(cmdSn, this.expected)) <= this.depth;
  }
}
