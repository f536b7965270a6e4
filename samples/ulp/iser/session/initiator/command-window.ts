/** Numbers of a session: CmdSN and the target's window, StatSN (RFC 7143, 4.2.2). */
import { serialAdd, serialBefore, serialDistance } from '../../wire/index.js';
import { protocolError } from './iscsi-error.js';

/** Numbers in every PDU of a target. */
export interface TargetNumbers {
  readonly statSn: number;
  readonly expCmdSn: number;
  readonly maxCmdSn: number;
}

export class CommandWindow {
  constructor(
    /** CmdSN of the next command. */
    public cmdSn: number,
    public expStatSn: number,
    private maxCmdSn: number,
  ) {}

  /** Commands that may be sent now. */
  get room(): number {
    return Math.max(0, serialDistance(this.maxCmdSn, this.cmdSn) + 1);
  }

  /** The number of a command that is sent now, which uses it up. */
  take(): number {
    const { cmdSn } = this;
    this.cmdSn = serialAdd(cmdSn, 1);
    return cmdSn;
  }

  /**
   * The window that a PDU tells; what contradicts itself is ignored (RFC 7143, 4.2.2.1).
   * @throws IscsiError for a CmdSN that has not been sent
   */
  update({ expCmdSn, maxCmdSn }: TargetNumbers): void {
    if (serialBefore(maxCmdSn, serialAdd(expCmdSn, -1))) return;
    if (serialBefore(this.cmdSn, expCmdSn)) {
      throw protocolError(`ExpCmdSN is ${expCmdSn}, and the next to be sent is ${this.cmdSn}`);
    }
    if (serialBefore(this.maxCmdSn, maxCmdSn)) this.maxCmdSn = maxCmdSn;
  }

  /**
   * A PDU with a StatSN of its own. Without error recovery none may be missing.
   * @throws IscsiError for another one than is expected
   */
  takeStatus(statSn: number): void {
    if (statSn !== this.expStatSn) {
      throw protocolError(`StatSN is ${statSn}, must be ${this.expStatSn}`);
    }
    this.expStatSn = serialAdd(statSn, 1);
  }
}
