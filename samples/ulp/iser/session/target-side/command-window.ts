/**
 * The command window of a target (RFC 7143, 4.2.2.1): the next expected CmdSN, the limit for
 * initiators, and the order in which commands are delivered.
 */
import { serialAdd, serialDistance } from '../../wire/index.js';

/** The decision on a received command. */
export type Admission =
  /** It is the next one, or an immediate one. */
  | 'deliver'
  /** Others are missing before it; `next` gives it when its turn has come. */
  | 'hold'
  /** Outside of the window, or there already: ignored without a word, as RFC 7143 has it. */
  | 'ignore';

/** @typeParam T what is held of a command that came before its turn */
export class CommandWindow<T> {
  private expected: number;
  private highest: number;
  private readonly held = new Map<number, T>();

  /**
   * @param first CmdSN of the login request: the first command has the same
   * @param depth commands that may be under way: 1 to 2^31 - 1
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

  /** Commands that wait for others before them. */
  get heldCount(): number {
    return this.held.size;
  }

  /** A command has come. */
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

  /** Something else is held of a command that waits. */
  replace(cmdSn: number, command: T): void {
    if (this.held.has(cmdSn)) this.held.set(cmdSn, command);
  }

  /** The command whose turn has come behind the one that has been delivered. */
  next(): T | undefined {
    const command = this.held.get(this.expected);
    if (command === undefined) return undefined;
    this.held.delete(this.expected);
    this.expected = serialAdd(this.expected, 1);
    return command;
  }

  /** A command that took a CmdSN has been answered: there is room for another one. */
  open(): void {
    this.highest = serialAdd(this.highest, 1);
  }

  /**
   * An immediate command carries the CmdSN of the next command at the time that it was sent. So it
   * is at most a window away from what is expected: one that is not belongs to something else.
   */
  private isNear(cmdSn: number): boolean {
    return Math.abs(serialDistance(cmdSn, this.expected)) <= this.depth;
  }
}
