/** Sends a target's PDUs, each with its numbers (RFC 7143, 4.2.2). */
import {
  asyncMessage,
  BHS_BYTES,
  type Format,
  loginResponse,
  logoutResponse,
  nopIn,
  reject,
  scsiResponse,
  serialAdd,
  taskManagementResponse,
  textResponse,
} from '../../wire/index.js';
import type { CommandWindow } from './command-window.js';
import type { Datamover, SequenceNumbers, TransferTask } from './datamover.js';

const NO_DATA = new Uint8Array(0);
/** Header formats of PDUs with a status. */
const FORMATS = {
  asyncMessage,
  loginResponse,
  logoutResponse,
  nopIn,
  reject,
  scsiResponse,
  taskManagementResponse,
  textResponse,
} as const;
type Formats = typeof FORMATS;
type ValuesOf<F> = F extends Format<infer T> ? Parameters<Format<T>['make']>[0] : never;

/** Fields that all responses have. */
type Numbers = Record<'dataSegmentLength' | 'statSn' | 'expCmdSn' | 'maxCmdSn', number>;

/** StatSN of the first response: any number will do. */
const FIRST_STAT_SN = 1;

export class Responder implements SequenceNumbers {
  private nextStatSn = FIRST_STAT_SN;
  /** The command window. Login has none: its answers use `cmdSn`. */
  private window: CommandWindow<unknown> | undefined = undefined;
  private loginCmdSn = 0;

  constructor(private readonly mover: Datamover) {}

  get statSn(): number {
    return this.nextStatSn;
  }

  get expCmdSn(): number {
    return this.window?.expCmdSn ?? this.loginCmdSn;
  }

  get maxCmdSn(): number {
    return this.window?.maxCmdSn ?? this.loginCmdSn;
  }

  /** Begins the answer to a login request with this CmdSN. */
  startLogin(cmdSn: number): void {
    this.loginCmdSn = cmdSn;
  }

  /** Opens the window: commands are counted from now on. */
  open(window: CommandWindow<unknown>): void {
    this.window = window;
  }

  /** Sends a PDU that takes a StatSN. @param task the task that it answers */
  send<K extends keyof Formats>(
    type: K,
    values: ValuesOf<Formats[K]>,
    data: Uint8Array = NO_DATA,
    task?: TransferTask,
  ): void {
    this.emit(type, values, data, task);
    this.nextStatSn = serialAdd(this.nextStatSn, 1);
  }

  /** Sends a NOP-In that requests an answer: it carries the next StatSN without consuming it. */
  ping(values: ValuesOf<typeof nopIn>): void {
    this.emit('nopIn', values, NO_DATA, undefined);
  }

  private emit<K extends keyof Formats>(
    type: K,
    values: ValuesOf<Formats[K]>,
    data: Uint8Array,
    task: TransferTask | undefined,
  ): void {
    const header = new Uint8Array(BHS_BYTES);
    // The formats differ in their fields, and share these.
    const view = (FORMATS[type] as Format<never>).emit(values as never, header) as Numbers;
    view.dataSegmentLength = data.length;
    view.statSn = this.nextStatSn;
    view.expCmdSn = this.expCmdSn;
    view.maxCmdSn = this.maxCmdSn;
    this.mover.sendControl(header, data, task);
  }
}
