/** One session with its connection, from the connection request to the end of both. */
import type { InitiatorMover, MakeMover, Portal } from '../mover/initiator/index.js';
import {
  InitiatorSession,
  type IscsiError,
  type LoginOptions,
  type ScsiCommandRequest,
  type ScsiTask,
  type SessionParameters,
  type SessionTimes,
} from '../session/initiator/index.js';
import type { Timing } from './options.js';

export interface LinkHost {
  onUp(parameters: SessionParameters): void;
  /** The target asks for the end of the session within this time. */
  onLogoutAsked(withinMs: number): void;
  /** The session has ended. Commands in flight were reported before. */
  onEnd(error: IscsiError): void;
}

export interface LinkOptions {
  readonly makeMover: MakeMover;
  readonly portal: Portal;
  readonly login: Omit<LoginOptions, 'initiatorTaskTag'>;
  readonly times: SessionTimes;
  readonly timing: Timing;
  readonly maxTasks: number;
}

export class Link {
  readonly session: InitiatorSession;
  readonly mover: InitiatorMover;
  private cancel: (() => void) | undefined;
  private armedMs = Infinity;

  /** @throws errors of the mover if no connection can be requested */
  constructor(
    private readonly options: LinkOptions,
    host: LinkHost,
  ) {
    const { makeMover, portal, login, times, timing, maxTasks } = options;
    const session = new InitiatorSession(
      {
        now: () => timing.nowMs(),
        send: (pdu) => this.mover.send(pdu),
        prepare: () => this.mover.prepare(),
        release: (task, bytes) => this.mover.release(task, bytes),
        onLoggedIn: (parameters) => {
          this.arm();
          host.onUp(parameters);
        },
        onLogoutAsked: (withinMs) => host.onLogoutAsked(withinMs),
        onEnd: (error) => {
          this.disarm();
          this.mover.close('graceful');
          host.onEnd(error);
        },
      },
      login,
      times,
      maxTasks,
    );
    this.session = session;
    session.connecting();
    this.mover = makeMover(portal, {
      onConnected: () => {
        session.connected();
        this.arm();
      },
      onPdu: (pdu) => session.receive(pdu),
      onLost: (error) => session.lost(error),
    });
  }

  submit(request: ScsiCommandRequest): ScsiTask {
    const task = this.session.submit(request);
    if (task.deadlineMs < this.armedMs) this.arm();
    return task;
  }

  /** Sets the timer for the session's next deadline. Received data can only postpone it. */
  arm(): void {
    this.disarm();
    const { timing } = this.options;
    const { deadlineMs } = this.session;
    if (deadlineMs === Infinity) return;
    this.armedMs = deadlineMs;
    this.cancel = timing.after(Math.max(1, deadlineMs - timing.nowMs()), () => {
      this.cancel = undefined;
      this.armedMs = Infinity;
      this.session.tick(timing.nowMs());
      this.arm();
    });
  }

  private disarm(): void {
    this.cancel?.();
    this.cancel = undefined;
    this.armedMs = Infinity;
  }
}
